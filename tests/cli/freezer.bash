# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A cgroup that freezes a process, as `docker pause` does; after jobs.bash.
#   can_freeze    whether this machine allows it
#   freeze PID    returns when the process is frozen
#   thaw          lets it continue
#   remove_freezer  at the end of the script
for FREEZER in /sys/fs/cgroup /sys/fs/cgroup/unified; do
	FREEZER+=/gpreempt-test-$$
	mkdir "$FREEZER" 2>/dev/null && [[ -w $FREEZER/cgroup.freeze ]] && break
	rmdir "$FREEZER" 2>/dev/null
	FREEZER=
done

can_freeze() {
	[[ $FREEZER ]]
}
is_frozen() {
	grep -q '^frozen 1' "$FREEZER/cgroup.events"
}
freeze() {
	echo "$1" >"$FREEZER/cgroup.procs" && echo 1 >"$FREEZER/cgroup.freeze" && until_true is_frozen
}
thaw() {
	echo 0 >"$FREEZER/cgroup.freeze"
}
remove_freezer() {
	can_freeze || return 0
	thaw
	until_true rmdir "$FREEZER" 2>/dev/null
}
