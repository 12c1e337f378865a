#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What stands in the way on AMD GPUs: each is one sentence with the cause and what would help, and
# the documented exit code; and a process in a container is found by its number there.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi250
chmod 755 "$KFD_TMP" "$work"
start_kfd_load --queues 2 --steps 3
load=$LOAD

# refused EXIT SENTENCE VERB...: all of them, about $load.
refused() {
	local code=$1 sentence=$2
	shift 2
	for verb; do
		# shellcheck disable=SC2086
		expect "$code" "gpreempt: $sentence" "$verb" $as "$GPREEMPT" $verb "$load"
		one_sentence "$verb"
	done
}
as=
holding=('suspend --for 1s' 'bench -n 2')

# No device file; one that may not be opened; a driver that is too old.
GPREEMPT_KFD=$work/none refused 4 'no GPU was found*gpreempt doctor*' queues monitor resume "${holding[@]}"
kfd_emu version 1.12
refused 1 "*amdkfd's interface is 1.12*Linux 6.5*" queues monitor "${holding[@]}" 'schedule --be'
expect 4 '' 'doctor with an old driver' "$GPREEMPT" doctor
[[ $out == *missing*'interface is 1.12'*'-> use Linux 6.5'*'not ready: use Linux 6.5 or later' ]] || fail "doctor: $out"
kfd_emu version 1.17

# While a GPU is reset nobody can begin; who was there stays evicted, but may be held and released.
kfd_emu "reset 0 begin"
refused 1 "$KFD_MNT/kfd cannot be opened now: *reset*; try again*" queues "${holding[@]}" 'schedule --be'
expect 4 '' 'doctor during a reset' "$GPREEMPT" doctor
[[ $out == *missing*'cannot be opened now'*'-> try again'* && $out != *render* ]] || fail "doctor: $out"
kfd_emu "reset 0 end"
# The command has not seen the eviction, which began before it: it does not know why nothing moves.
expect 1 '*not known whether process*may be evicted*' 'a hold after a reset' "$GPREEMPT" suspend "$load" --for 10ms
stands_still "$load" || fail 'the emulator restores who was evicted by a reset'
kill -9 "$load" # it would wait for its packets
start_kfd_load --queues 2 --steps 3
load=$LOAD

# Not a program that uses the GPU, and none at all.
expect 4 "gpreempt: process $$ does not use an AMD GPU; gpreempt ps lists *" 'not a ROCm program' "$GPREEMPT" suspend $$
start_kfd_load --type sdma --idle
try "$GPREEMPT" suspend "$LOAD"
exits 4 "gpreempt: process $LOAD has no compute queue on this GPU, *; gpreempt queues $LOAD *" 'only copies'
one_sentence 'only copies'
stop_kfd_load "$LOAD"
sleep 0 &
gone=$!
wait "$gone"
for verb in queues monitor suspend resume bench; do
	expect 4 "gpreempt: there is no process $gone" "$verb of nobody" "$GPREEMPT" $verb "$gone"
done

# A driver that suspends the queues and then says that it may not: the process runs afterwards.
for errno in 1 3 22; do
	kfd_emu "late_errno suspend_queues $errno 1000"
	try "$GPREEMPT" suspend "$load" --for 1s
	exits 1 "gpreempt: the driver refuses to suspend process $load (*), although its debug session exists; *" \
		"suspend, and the driver answers $errno after it has done it"
	kfd_emu clear_faults
	is_running "$load" || fail "suspended by a call that answered $errno"
	makes_progress "$load" || fail "no progress after a suspend that answered $errno"
	[[ $(records) == 0 ]] || fail "a record stays after a suspend that answered $errno"
done

# A program whose runtime is not known to the driver.
start_kfd_load --no-runtime
bare=$LOAD
for verb in "${holding[@]}" 'monitor --closely'; do
	# shellcheck disable=SC2086
	expect 1 "gpreempt: process $bare cannot be suspended: its runtime*" "$verb of a program without ROCr" "$GPREEMPT" $verb "$bare"
	one_sentence "$verb of a program without ROCr"
done
expect 0 '' 'monitor of a program without ROCr' "$GPREEMPT" monitor "$bare" --for 400ms --every 100ms
[[ $out == *'stable: no queue came or went; whether the process can be held was not tried;'* && $out != *ready* ]] ||
	fail "monitor promises a hold: $out"
try "$GPREEMPT" queues "$bare" --json
exits 0 "gpreempt: some values are not known: process $bare *its runtime*" 'queues of a program without ROCr'
holds '.queues | length == 1 and .[0].ring_bytes > 0 and (.[0] | has("held") | not)' 'what can be seen from afar'
start_kfd_load --period 5000 --steps 1
service=$LOAD
try "$GPREEMPT" schedule --lc "$service" --be "$bare" --for 2s
exits 1 "gpreempt: process $bare cannot be suspended: its runtime*" 'schedule of a program without ROCr'
one_sentence 'schedule of a program without ROCr'
stop_kfd_load "$service"
stop_kfd_load "$bare"

# Traced already. A process has one tracer.
cat >"$work/trace.py" <<-'END'
	import ctypes, sys, time
	libc = ctypes.CDLL(None)
	libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
	print('traces' if libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0 else 'refused', flush=True)
	time.sleep(1000)
END
in_background tracer python3 "$work/trace.py" "$load"
tracer=$JOB
until_true said tracer traces || fail "no tracer: $(<"$work/tracer")"
refused 1 "process $load is traced by python3 (process $tracer)*end that first" "${holding[@]}"
try "$GPREEMPT" queues "$load" --json
exits 0 "gpreempt: some values are not known: process $load is traced by *" 'queues of a traced process'
holds '[.queues[].id] == [0,1]' 'queues of a traced process'
kill_job "$tracer"
until_true "$GPREEMPT" suspend "$load" --for 10ms >/dev/null 2>&1 || fail 'not even when the tracer has gone'

# Another user's.
nobody=65534
mkdir "$work/nobody"
chown $nobody "$work/nobody"
as="setpriv --reuid $nobody --regid $nobody --clear-groups env GPREEMPT_UNDO=$work/nobody/undo"
if $as test -x "$GPREEMPT"; then
	refused 3 "*process $load belongs to user 0; run as root (or with CAP_SYS_PTRACE and *)" \
		queues resume "${holding[@]}"
	is_running "$load" || fail 'someone else could hold it'
	# shellcheck disable=SC2086
	expect 0 '' 'ps as nobody' $as "$GPREEMPT" ps --for 1ms
	[[ $out =~ $load\ +root && $out != *'are not shown'* ]] || fail "ps as nobody: $out"
	install -m 600 /dev/null "$work/secret"
	GPREEMPT_KFD=$work/secret refused 3 "$work/secret may not be opened: Permission denied*render*" queues
	# One's own.
	start_kfd_load --drop-to $nobody
	own=$LOAD
	scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
	# shellcheck disable=SC2086
	try $as "$GPREEMPT" suspend "$own" --for 50ms
	if [[ $scope == 0 ]]; then
		exits 0 '' "one's own process"
	else
		exits 3 "gpreempt: Yama (kernel.yama.ptrace_scope = $scope)*run as root" "one's own process and Yama"
	fi
	stop_kfd_load "$own"
fi
as=

# gpreempt in a pid namespace of its own: the numbers in sysfs are others' there, and nobody is taken
# for somebody else. With the emulator's sysfs where the driver's is: the variable is for tests alone.
in_foreign_namespace() {
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --mount-proc bash -c 'mount -t tmpfs none /sys/class &&
		mkdir -p /sys/class/kfd/kfd && mount --bind "$1/sysfs" /sys/class/kfd/kfd || exit 99
		unset GPREEMPT_KFD_SYSFS; shift; "$@"' - "$KFD_MNT" "$@"
}
if in_foreign_namespace true 2>/dev/null; then
	for verb in 'suspend 1 --for 10ms' 'queues 1' 'monitor 1 --for 0s' 'bench 1 -n 2' 'schedule --be 1' ps; do
		# shellcheck disable=SC2086
		try in_foreign_namespace "$GPREEMPT" $verb
		exits 3 "gpreempt: amdkfd names processes by the host's numbers*: run in the host's pid namespace" "$verb there"
		one_sentence "$verb there"
	done
	expect 4 '' 'doctor there' in_foreign_namespace "$GPREEMPT" doctor
	[[ $out == *missing*"host's numbers"*'-> run it on the host, or in a container with'* ]] || fail "doctor there: $out"
	is_running "$load" || fail 'held from a foreign namespace'
fi

# --container: in a pid namespace and a cgroup of its own, where that can be made.
group=
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
	[[ -w $folder/cgroup.procs ]] && mkdir "$folder/gpreempt-amd-$$" 2>/dev/null &&
		group=$folder/gpreempt-amd-$$ && break
done
if [[ $group ]]; then
	# shellcheck disable=SC2016
	unshare --pid --fork --kill-child bash -c \
		'echo 0 >"$1/cgroup.procs"; exec "$2" --steps 2' - "$group" "$KFD_LOAD" >"$work/inner" 2>&1 &
	outer=$!
	jobs_started+=("$outer")
	until_true said inner ready || fail "no load in the container: $(<"$work/inner")"
	inner=$(pgrep -P "$outer")
	for verb in queues 'monitor --for 0s'; do
		# shellcheck disable=SC2086
		expect 0 '' "$verb of a pid in a container" "$GPREEMPT" $verb --container "gpreempt-amd-$$" 1 --json
		holds ".pid == $inner" "$verb finds the pid in the container"
	done
	suspend_in_background contained --container "gpreempt-amd-$$" 1
	said contained "^held $inner (kfd-load)" || fail "suspend in a container: $(<"$work/contained")"
	is_held "$inner" || fail 'the process in the container is not held'
	is_running "$load" || fail 'another process is held'
	expect 0 '' 'resume in a container' "$GPREEMPT" resume --container "gpreempt-amd-$$" 1
	until_true is_running "$inner" || fail 'resume in a container does not release it'
	wait "$JOB"
	# By its number on the host; the number that it has inside is another process here.
	expect 0 '' 'by its number on the host' "$GPREEMPT" suspend "$inner" --for 10ms
	try "$GPREEMPT" suspend 1 --for 10ms
	exits 4 'gpreempt: process 1 does not use an AMD GPU; *' 'its number inside is not its number here'
	try "$GPREEMPT" queues --container "gpreempt-amd-$$" "$inner"
	exits 4 "gpreempt: there is no process $inner in a container*" 'the number on the host is not the one inside'
	kill "$inner"
	wait "$outer" 2>/dev/null
	until_true rmdir "$group" 2>/dev/null || fail 'the cgroup stays'
fi
ends_right "$load"
finish
