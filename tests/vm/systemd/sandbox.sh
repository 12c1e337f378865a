#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the units promise of the processes is so: capabilities, system calls, files, network.
set -u
# shellcheck source=tests/vm/systemd/guest.bash
. /tests/guest.bash
configure <<'END'
policy: none
scheduler: {realtime: 7, core: 0}
metrics: {listen: "127.0.0.1:9435"}
END
systemctl restart gpreemptd
until_true has_device || fail 'no device after a restart'

# capabilities NAME...: as the kernel writes them.
capabilities() {
	local bits=0 name
	# Their numbers in linux/capability.h.
	local -A number=([chown]=0 [dac_read_search]=2 [sys_ptrace]=19 [sys_admin]=21 [sys_nice]=23)
	for name; do
		bits=$((bits | 1 << ${number[$name]}))
	done
	printf %016x $bits
}

# status PID NAME: a line of /proc/PID/status.
status() {
	awk "/^$2:/ { print \$2 }" "/proc/$1/status"
}

# confined UNIT CAPABILITY...
confined() {
	local unit=$1 pid want name
	pid=$(pid_of "$unit")
	want=$(capabilities "${@:2}")
	for name in CapPrm CapEff CapBnd; do
		[[ $(status "$pid" $name) == "$want" ]] || fail "$unit: $name is $(status "$pid" $name), not $want"
	done
	for name in CapInh CapAmb; do
		[[ $(status "$pid" $name) == 0000000000000000 ]] || fail "$unit: $name is $(status "$pid" $name)"
	done
	[[ $(status "$pid" NoNewPrivs) == 1 ]] || fail "$unit may get new privileges"
	[[ $(status "$pid" Seccomp) == 2 ]] || fail "$unit: Seccomp is $(status "$pid" Seccomp)"
	name=$(find "/proc/$pid/root"/{home,tmp} -mindepth 1)
	[[ ! $name ]] || fail "$unit sees $name"
	for name in /etc /usr /var /home /root /sys/fs/cgroup; do
		! nsenter -t "$pid" -m -- touch "$name/written" 2>/dev/null || fail "$unit may write to $name"
	done
	nsenter -t "$pid" -m -- touch /run/gpreempt/written || fail "$unit may not write to /run/gpreempt"
	rm /run/gpreempt/written
}
touch /tmp/others /home/others
confined gpreemptd chown dac_read_search sys_ptrace sys_admin sys_nice
confined gpreempt-keeper dac_read_search sys_ptrace
[[ $(readlink "/proc/$(pid_of gpreempt-keeper)/ns/net") != $(readlink /proc/1/ns/net) ]] ||
	fail 'the keeper has a network'
[[ $(<"/proc/$(pid_of gpreempt-keeper)/oom_score_adj") == -1000 ]] || fail 'the OOM killer may take the keeper'
[[ $(awk '/^VmLck:/ { print ($2 > 0) }' "/proc/$(pid_of gpreempt-keeper)/status") == 1 ]] ||
	fail "the keeper's memory is not locked"

# Enough is left: real-time priority and a core; the metrics' port.
for thread in "/proc/$(pid_of gpreemptd)/task"/*; do
	[[ $(<"$thread/comm") == device-* ]] || continue
	# Fields 40 and 41 of stat: real-time priority and policy (1 = FIFO).
	[[ $(sed 's/.*) //' "$thread/stat" | cut -d' ' -f38,39) == '7 1' ]] || fail 'no real-time priority'
	realtime=1
done
[[ ${realtime-} ]] || fail 'no thread for the device'
exec 3<>/dev/tcp/127.0.0.1/9435 || fail 'the metrics do not answer'
printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
timeout 20 cat <&3 >"$work/page"
grep -q '^gpreempt_device_up{.*} 1' "$work/page" || fail "metrics: $(head -c 600 "$work/page")"
grep -q '^gpreempt_keeper_up 1' "$work/page" || fail 'the metrics do not know the keeper'
exec 3>&-
finish
