#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Verbs about processes and devices, where there is no device, no such process or no sense in what
# was said: one sentence and the documented exit code. Needs no GPU and no emulator.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
export GPREEMPT_NVIDIACTL=/nonexistent/nvidiactl GPREEMPT_KFD=/nonexistent/kfd GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/no-daemon

one_sentence() {
	[[ $(wc -l <"$work/err") == 1 && $err == gpreempt:* ]] || fail "$1: not one sentence: $err"
}

# What is not a process id is wrong usage, whatever the verb.
for verb in queues monitor suspend resume bench; do
	for pid in 0 -1 -4711 4294967296 4711x '' ' 4711' 0x12 banana 4.7 99999999999999999999999; do
		expect 2 "*'$pid' is not a process id*" "$verb '$pid'" "$GPREEMPT" $verb -- "$pid"
	done
	expect 2 '*: give *PID*' "$verb without a process" "$GPREEMPT" $verb
done
for verb in queues monitor bench; do
	expect 2 '*give one process*' "$verb with two processes" "$GPREEMPT" $verb 1 2
done
for verb in ps doctor; do
	expect 2 '*takes no argument*' "$verb with an argument" "$GPREEMPT" $verb 4711
done

# Times and numbers.
for time in 10 -1s s 1x 1.s.2 '' 1e3s 99999999999999h; do
	for args in 'suspend 1 --for' 'ps --for' 'monitor 1 --for' 'monitor 1 --every'; do
		# shellcheck disable=SC2086
		expect 2 '*takes a time such as 500ms*' "$args '$time'" "$GPREEMPT" $args "$time"
	done
done
expect 2 '*1ms or more*' 'monitor without a pause' "$GPREEMPT" monitor 1 --every 0s
for args in '--count 0' '--count x' '--hold-ms -1' '--hold-ms 99999'; do
	# shellcheck disable=SC2086
	expect 2 '*takes a whole number*' "bench $args" "$GPREEMPT" bench 1 $args
done
expect 2 '*--device takes a whole number*' 'a device that is no number' "$GPREEMPT" suspend 1 --device x
expect 2 '*--queue needs one PID*' 'a queue of two processes' "$GPREEMPT" suspend 1 2 --queue 4
expect 2 '*--queue needs one PID*' 'a queue of no process' "$GPREEMPT" suspend --device 0 --queue 4
expect 2 '*give either PIDs or --all*' 'resume all and one' "$GPREEMPT" resume --all 4711
try "$GPREEMPT" queues 1 --container ab
exits 2 "gpreempt: container name 'ab' is too short; give at least 3 characters" 'a short container name'
try "$GPREEMPT" queues 1 --container no-such-container-here
exits 4 "gpreempt: there is no process 1 in a container*'no-such-container-here'*" 'no such container'

# No device.
for args in ps 'queues 1' 'monitor 1' 'suspend 1' 'suspend --device 0' 'resume 1' 'bench 1'; do
	# shellcheck disable=SC2086
	expect 4 'gpreempt: no GPU was found*; gpreempt doctor says why' "$args without a device" "$GPREEMPT" $args
	one_sentence "$args without a device"
	[[ ! $out ]] || fail "$args without a device printed '$out'"
done
[[ ! -e $work/undo ]] || fail 'an undo file was made although nothing was changed'

expect 4 '' 'doctor without a device' "$GPREEMPT" doctor
[[ $out == *missing*driver*/nonexistent/nvidiactl* ]] || fail "doctor does not name the file: $out"
[[ $(tail -n 1 "$work/out") == 'not ready: '* ]] || fail "no verdict in the last line: $out"
[[ $out == *"$work/undo"* ]] || fail 'doctor does not say where the undo file is'
[[ $out != *$'\033'* ]] || fail 'colours without a terminal'
expect 4 '' 'doctor --json without a device' "$GPREEMPT" doctor --json
holds '.ready == 0 and (.backends[0].findings | any(.level == "missing" and .advice != null))' \
	'doctor --json names what is missing'
try env NO_COLOR=1 script -qec "$GPREEMPT doctor" /dev/null
[[ $out != *$'\033'* ]] || fail 'colours although NO_COLOR is set'
try env -u NO_COLOR script -qec "$GPREEMPT doctor" /dev/null
[[ $status == 127 || $out == *$'\033[31m'* ]] || fail 'no colours on a terminal'

# resume --all always works.
expect 0 '' 'resume --all without a device' "$GPREEMPT" resume --all
[[ $out == 'nothing was held' ]] || fail "resume --all said '$out'"
expect 0 '' 'resume --all --json' "$GPREEMPT" resume --all --json
holds '.released == [] and .ended == 0' 'resume --all --json'

# An undo file that is none.
echo garbage >"$work/undo"
expect 1 'gpreempt: *is not an undo file*' 'an undo file that is none' "$GPREEMPT" resume --all
try "$GPREEMPT" doctor
[[ $out == *warning*undo*'is not an undo file'* ]] || fail "doctor accepts a wrong undo file: $out"
finish
