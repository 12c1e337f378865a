#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What gpreempt says beside a daemon that uses a simulated GPU, which this user did not select. It
# must be true, and no advice may lead back to the same command.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
begin_daemon --policy priority
load one --kernel 2ms
one=$LOAD
in_background plain sleep 1000
plain=$JOB

# without COMMAND...: runs it where only the daemon can use a GPU.
without() {
	env -u GPREEMPT_GPU GPREEMPT_NVIDIACTL=/nonexistent GPREEMPT_KFD=/nonexistent \
		GPREEMPT_KFD_SYSFS=/nonexistent "$@"
}

# ---- resume of what is not held ------------------------------------------------------------------
until_true eval "task $one '.class == \"unmanaged\"' >/dev/null" || fail 'the daemon does not see the program'
expect 0 '' 'resume of an unmanaged process' without "$GPREEMPT" resume "$one"
[[ $out == 'nothing was held' ]] || fail "resume of an unmanaged process: $out"
expect 0 '' 'resume --json of an unmanaged process' without "$GPREEMPT" resume "$one" --json
holds '.released == [] and .unchanged == 1' 'an unmanaged process'
expect 0 '' 'suspend' without "$GPREEMPT" suspend "$one"
is "$one" '.state == "suspended"'
expect 0 '' 'resume' without "$GPREEMPT" resume "$one"
[[ $out == "released $one (gpreempt)"* ]] || fail "resume: $out"
expect 0 '' 'resume at once after a resume' without "$GPREEMPT" resume "$one"
[[ $out == 'nothing was held' ]] || fail "resume after a resume: $out"
expect 4 "gpreempt: gpreemptd sees no queues of process $plain" 'resume of a process without queues' \
	without "$GPREEMPT" resume "$plain"
expect 4 'gpreempt: there is no process 2147483647' 'resume of a process that does not exist' \
	without "$GPREEMPT" resume 2147483647
"$GPREEMPT" set "$one" --class be >/dev/null || fail 'set'
until_true eval "task $one '.class == \"be\"' >/dev/null" || fail 'not be'
expect 0 '' 'resume of a scheduled process' without "$GPREEMPT" resume "$one"
[[ $out == "$one is scheduled by the daemon ($DAEMON) and not held by a user; gpreempt set $one --class unmanaged ends that"* ]] ||
	fail "resume of a scheduled process: $out"
[[ $out == *$'\n''nothing was held by a user or another program' ]] || fail "resume of a scheduled process: $out"

# ---- what the daemon schedules, and a program that wants it for itself ---------------------------
load two --kernel 2ms
two=$LOAD
"$GPREEMPT" set "$two" --class be >/dev/null || fail 'set'
until_true eval "[[ \$(records) == 2 ]]" || fail "two jobs that take turns have no records: $("$GPREEMPT" ps)"
# One of them is held, by the policy.
expect 0 '' 'resume --all beside a policy that holds' "$GPREEMPT" resume --all
[[ $out == 'nothing was held by a user or another program' ]] || fail "resume --all beside a policy that holds: $out"
for args in 'suspend --no-daemon --for 1ms' 'bench -n 1' 'schedule --for 1ms --be'; do
	# shellcheck disable=SC2086
	expect 1 "gpreempt: process $one is scheduled or held by the daemon ($DAEMON); run gpreempt set $one --class unmanaged*" \
		"$args of a scheduled process" "$GPREEMPT" $args "$one"
done
# ---- a resume undoes nothing of the others, and so it is not logged -------------------------------
load three --kernel 2ms
expect 0 '' 'suspend of another' "$GPREEMPT" suspend "$LOAD"
expect 0 '' 'resume of another' "$GPREEMPT" resume "$LOAD"
suspend_in_background died "$LOAD" --no-daemon
kill_job "$JOB"
expect 0 '' 'resume after the end of a holder' "$GPREEMPT" resume "$LOAD" --no-daemon
expect 0 '' 'a request to the daemon' "$GPREEMPT" resume "$two" --no-daemon
sleep 0.5
! said daemon undone || fail "the daemon says undone: $(grep undone "$work/daemon")"

"$GPREEMPT" set "$one" --class unmanaged >/dev/null || fail 'set --class unmanaged'
is_free() {
	"$GPREEMPT" suspend --no-daemon --for 1ms "$one" >/dev/null 2>&1
}
until_true is_free || fail "the advice does not help: $("$GPREEMPT" suspend --no-daemon --for 1ms "$one" 2>&1)"
finish
