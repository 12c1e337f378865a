#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may do what on the emulated NVIDIA driver: others' processes, one's own, servers of many, single
# devices and queues, containers.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 2
chmod 755 "$EMU_TMP" "$work"

nobody=65534
as_nobody() {
	GPREEMPT_UNDO=$work/nobody/undo setpriv --reuid $nobody --regid $nobody --clear-groups "$@"
}
mkdir "$work/nobody"
chown $nobody "$work/nobody"

start_load --gpus 2 --contexts 2
load=$LOAD
if as_nobody test -x "$GPREEMPT"; then
	# Someone else's process.
	for verb in queues monitor suspend resume bench; do
		try as_nobody "$GPREEMPT" $verb "$load"
		exits 3 "gpreempt: process $load belongs to user 0; run as root (or with CAP_SYS_PTRACE and *)" \
			"$verb of someone else's process"
	done
	is_running "$load" || fail 'someone else could hold it'
	expect 0 '' 'ps as nobody' as_nobody "$GPREEMPT" ps --for 1ms
	[[ $out == *'processes of other users are not shown'* && $out != *"$load "* ]] || fail "ps: $out"
	# Records of root are not for everybody.
	suspend_in_background held_by_root "$load"
	GPREEMPT_UNDO=$work/undo try setpriv --reuid $nobody --regid $nobody --clear-groups \
		"$GPREEMPT" resume "$load"
	exits 3 '*' "resume with root's records"
	is_held "$load" || fail 'nobody released what root holds'
	end_job INT "$JOB"
	# One's own.
	start_load --drop-to $nobody
	own=$LOAD
	if [[ $(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0) == 0 ]]; then
		expect 0 '' "suspend of one's own process" as_nobody "$GPREEMPT" suspend "$own" --for 100ms
	fi
	stop_load "$own"
fi

# gpreempt's own processes have files of other programs for a moment, and are never targets. The
# name is believed of root's programs, not of others: they could escape the scheduler with it.
mkdir "$work/bin"
cp "$RM_LOAD" "$work/bin/gpreemptd"
RM_LOAD=$work/bin/gpreemptd start_load
ours=$LOAD
RM_LOAD=$work/bin/gpreemptd start_load --drop-to $nobody
theirs=$LOAD
expect 0 '' 'ps' "$GPREEMPT" ps --for 1ms --json
holds "any(.[]; .pid == $theirs) and all(.[]; .pid != $ours)" 'of two with the name of gpreempt only the foreign one is listed'
expect 4 "gpreempt: process $ours *" "suspend of gpreempt's own process" "$GPREEMPT" suspend "$ours"
stop_load "$ours"
stop_load "$theirs"

# A server of many programs.
start_load --mps
server=$LOAD
try "$GPREEMPT" suspend "$server"
exits 3 "gpreempt: process $server (nvidia-cuda-mps*) works for many programs*--force*" 'an MPS server'
expect 3 "gpreempt: process $server *--force*" 'bench of an MPS server' "$GPREEMPT" bench "$server"
expect 3 "gpreempt: process $server *--force*" 'a device with an MPS server' "$GPREEMPT" suspend --device 0
is_running "$load" || fail 'half of a device is held'
try "$GPREEMPT" ps --for 1ms
[[ $out == *'(a server)'*"$server works for many programs"* ]] || fail "ps of a server: $out"
expect 0 '' 'suspend --force' "$GPREEMPT" suspend "$server" --force --for 50ms
stop_load "$server"

# --device: one GPU of a process; without a PID, everybody there.
start_load
second=$LOAD
gpu_held() { # GPU: the pids that are held on it
	jq -c "[.clients[].groups[] | select(.gpu == $1 and .held) | .pid] | unique" "$EMU/state"
}
suspend_in_background on_device "$load" --device 1
[[ $(gpu_held 1) == "[$load]" && $(gpu_held 0) == '[]' ]] || fail "--device 1: $(gpu_held 0) $(gpu_held 1)"
end_job INT "$JOB"
suspend_in_background on_device --device 0
until_true eval "[[ \$(gpu_held 0) == \"\$(jq -nc '[$load,$second] | sort')\" ]]" ||
	fail "suspend --device 0 holds $(gpu_held 0)"
[[ $(gpu_held 1) == '[]' ]] || fail 'suspend --device 0 holds on device 1, too'
end_job INT "$JOB"
[[ $(gpu_held 0) == '[]' ]] || fail 'suspend --device 0 left something held'
try "$GPREEMPT" suspend "$second" --device 1
exits 4 "gpreempt: process $second has no queues on device 1" 'a device that the process does not use'
expect 4 'gpreempt: there is no device 7; the last one is 1' 'a device that is not there' "$GPREEMPT" suspend --device 7

# --queue: the others of the process run on.
start_load --contexts 2
queues=$LOAD
id=$("$GPREEMPT" queues "$queues" --json | jq '[.queues[] | select(.type == "compute")][1].id')
suspend_in_background one_queue "$queues" --queue "$id"
[[ $(jq -c "[.clients[].groups[] | select(.pid == $queues and .held) | .tsg_id]" "$EMU/state") == "[$id]" ]] ||
	fail '--queue held something else'
end_job INT "$JOB"
is_running "$queues" || fail '--queue left it held'
expect 4 "gpreempt: process $queues has no queue 4711*" 'a queue that is not there' "$GPREEMPT" suspend "$queues" --queue 4711
ends_right "$queues"

# --container: in a pid namespace and a cgroup of its own, where that can be made.
group=
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
	[[ -w $folder/cgroup.procs ]] && mkdir "$folder/gpreempt-test-$$" 2>/dev/null &&
		group=$folder/gpreempt-test-$$ && break
done
if [[ $group ]]; then
	# shellcheck disable=SC2016
	unshare --pid --fork --kill-child bash -c \
		'echo 0 >"$1/cgroup.procs"; exec "$2" --idle' - "$group" "$RM_LOAD" >"$work/inner" 2>&1 &
	outer=$!
	jobs_started+=("$outer")
	until_true said inner ready || fail "no load in the container: $(<"$work/inner")"
	inner=$(pgrep -P "$outer")
	expect 0 '' 'a pid in a container' "$GPREEMPT" queues --container "gpreempt-test-$$" 1 --json
	holds ".pid == $inner" 'the pid in the container is found'
	expect 0 '' 'suspend in a container' "$GPREEMPT" suspend --container "gpreempt-test-$$" 1 --for 50ms
	[[ $out == "held $inner (rm-load)"* ]] || fail "suspend in a container: $out"
	try "$GPREEMPT" queues --container "gpreempt-test-$$" 4711
	exits 4 'gpreempt: there is no process 4711 in a container*' 'no such pid in the container'
	kill "$inner"
	wait "$outer" 2>/dev/null
	rmdir "$group" || fail 'the cgroup stays'
fi
ends_right "$second"
ends_right "$load"
finish
