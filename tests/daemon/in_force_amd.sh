#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What gpreempt set says is in force on a device whose driver refuses: "in force" only where the
# process is held, or could be held, as the policy wants it.
set -u
# shellcheck source=tests/daemon/amd.bash
. "$SRC/tests/daemon/amd.bash"
begin_amd --gpu mi250
start_kfd_load --queues 1
first=$LOAD
start_kfd_load --queues 1
second=$LOAD
start_daemon --policy priority

# sets PID CLASS CLAIM: the answer in $out, "" on standard error.
sets() {
	expect 0 '' "$3" "$GPREEMPT" set "$1" --class "$2"
}
not_in_force() { # PID CLASS: the reason in JSON
	"$GPREEMPT" set "$1" --class "$2" --json | jq -r '.devices[0].not_in_force'
}

# A debugger traces the process, so that it cannot be held when the policy will want it.
in_background tracer python3 -c 'import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
print("traces" if libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0 else "refused", flush=True)
time.sleep(600)' "$second"
tracer=$JOB
until_true said tracer 'traces\|refused' || fail "the tracer: $(<"$work/tracer")"
if said tracer traces; then
	sets "$second" be 'set of a process that a debugger traces'
	[[ $out == "$second (kfd-load): class be, "*'; accepted, not in force on device 0: '*traced* ]] ||
		fail "a process that a debugger traces: $out"
	[[ $(not_in_force "$second" be) == *traced* ]] || fail 'a process that a debugger traces: JSON'
	sets "$second" unmanaged 'set --class unmanaged'
	[[ $out == *'; in force on 1 device' ]] || fail "unmanaged: $out"

	# A gang is held as a whole or not at all.
	for pid in "$first" "$second"; do
		"$GPREEMPT" set "$pid" --class be --gang both >"$work/set" || fail "a gang: $(<"$work/set")"
	done
	try "$GPREEMPT" suspend "$first"
	[[ $status == 1 && $out == '' && $err == *'another process of its gang cannot be held: '*"$second"* ]] ||
		fail "a gang of which one process cannot be held: exit $status, '$out', '$err'"
	until_true is_running "$first" || fail 'one process of the gang is left held'
	for pid in "$first" "$second"; do
		expect 0 '' 'no gang' "$GPREEMPT" set "$pid" --class unmanaged --gang none
	done
else
	echo 'skipped: processes cannot be traced here'
fi
kill_job "$tracer"

# The policy wants the process held, and the driver refuses.
sets "$first" lc 'set --class lc'
[[ $out == *'; in force on 1 device' ]] || fail "lc: $out"
kfd_emu 'errno suspend_queues 5 100000'
sets "$second" be 'set of a process that cannot be held'
[[ $out == *'; accepted, not in force on device 0: '* ]] || fail "a process that cannot be held: $out"
[[ $(not_in_force "$second" be) == *"$second"* ]] || fail 'a process that cannot be held: JSON'
! is_held "$second" || fail 'it is held: this tests nothing'
kfd_emu clear_faults
until_true is_held "$second" || fail 'attributes that were accepted take no effect'
sets "$second" be 'set of a held process'
[[ $out == *'; in force on 1 device' ]] || fail "held: $out"
[[ $(not_in_force "$second" be) == null ]] || fail 'held: JSON'
sets "$second" unmanaged 'set --class unmanaged'
is_running "$second" || fail 'unmanaged, and held'

# It is held when the answer comes.
sets "$second" be 'set --class be'
[[ $out == *'; in force on 1 device' ]] || fail "be: $out" "$(<"$work/daemon")"
is_held "$second" || fail 'it says in force, and the process is not held'

# A user's hold ends, and the policy holds the process all the time: it is not said to be released.
# On a busy machine the service can be without work for a moment.
ends_under_the_policy() {
	try "$GPREEMPT" suspend "$second" --for 100ms
	[[ $status == 0 && $out == *"$second (kfd-load) stays held by the policy of gpreemptd; this one held it for "* ]]
}
until_true ends_under_the_policy || fail "the end of a hold under the policy's hold: $out"
expect 0 '' 'suspend --json' "$GPREEMPT" suspend "$second" --for 100ms --json
jq -es 'map([.event, .by_policy]) == [["held", null], ["kept", true]]' "$work/out" >/dev/null || fail "JSON: $out"
expect 0 '' 'suspend' "$GPREEMPT" suspend "$second"
expect 0 '' 'resume' "$GPREEMPT" resume "$second"
[[ $out == "$second (kfd-load) is not held by a user any more; the policy of gpreemptd holds it" ]] || fail "resume: $out"
until_true is_held "$second" || fail 'the policy does not hold it: this tests nothing'
end_daemon
ends_right "$first"
ends_right "$second"
finish
