#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The verbs on a simulated GPU in real time: without one, with programs on it, and when it is gone.
set -u
# shellcheck source=tests/cli/simgpu.bash
. "$SRC/tests/cli/simgpu.bash"

# ---- nobody is there -------------------------------------------------------------------------
expect 4 'gpreempt: there is no simulated GPU at *: start one with gpreempt-simgpu' 'simload alone' "$GPREEMPT" simload --for 1s
expect 4 'gpreempt: there is no simulated GPU at *' 'ps alone' "$GPREEMPT" ps
expect 4 '' 'doctor alone' "$GPREEMPT" doctor
[[ $out == *'start one: gpreempt-simgpu'* ]] || fail "doctor alone said: $out"
expect 0 '' 'resume --all alone' "$GPREEMPT" resume --all
try env GPREEMPT_GPU=frobnicate "$GPREEMPT" ps
exits 2 "gpreempt: GPREEMPT_GPU is 'frobnicate': it can be nvidia, amd or sim" 'a wrong name'

# ---- wrong calls ------------------------------------------------------------------------------
for args in '--device h100' '--devices 0' '--devices 65' '--activity much' 'there' '--seed x'; do
	# shellcheck disable=SC2086
	expect 2 '*' "gpreempt-simgpu $args" "$SIMGPU" $args
done
for args in '--kernel 0' '--every 0' '--ahead 17' '--processes 0' 'there'; do
	# shellcheck disable=SC2086
	expect 2 '*' "simload $args" "$GPREEMPT" simload $args
done
expect 1 'gpreempt-simgpu: *too long*' 'a long name' "$SIMGPU" --socket "$(printf '%0200d' 0)"

# ---- one, with programs -----------------------------------------------------------------------
start_simgpu --devices 2 --json
expect 1 'gpreempt-simgpu: a simulated GPU is already running at *; stop it or use another --socket' 'a second one' "$SIMGPU"
expect 0 '' doctor "$GPREEMPT" doctor
[[ $out == *'simulated H200 #1'*'ready: 2 GPUs'* ]] || fail "doctor said: $out"
start_simload train --kernel 5ms --ahead 16
train=$LOAD
start_simload serve --kernel 100us --every 5ms --memory 7
serve=$LOAD
start_simload other --kernel 5ms --ahead 16 --device 1
other=$LOAD
expect 0 '' ps "$GPREEMPT" ps --json
holds 'length == 3' 'three are there'
holds ".[] | select(.pid == $serve) | .name == \"serve\" and .memory == 7340032 and .device == 0" 'serve'
holds ".[] | select(.pid == $other) | .device == 1" 'other'
holds ".[] | select(.pid == $train) | .gpu_pct > 5 and .run_source == \"measured\"" 'its share'
expect 0 '' queues "$GPREEMPT" queues "$train" --json
holds '[.. | objects | select(.type? == "compute")] | length == 1' 'one queue'
expect 0 '' stats "$GPREEMPT" stats --for 100ms --json
expect 4 "gpreempt: process $$ has no *" 'a process without a context' "$GPREEMPT" queues $$
expect 0 '' bench "$GPREEMPT" bench "$train" --count 5 --json

# ---- by hand ----------------------------------------------------------------------------------
suspend_in_background suspend "$train"
until_true is_held "$train" || fail 'suspend does not hold'
is_loose "$serve" || fail 'suspend holds others'
end_job INT "$JOB" || fail "suspend ends with $?"
is_held "$train" && fail 'held after suspend'
suspend_in_background suspend "$train" "$other"
kill_job "$JOB"
for pid in "$train" "$other"; do
	is_held "$pid" || fail 'released by a kill: this tests nothing'
done
expect 0 '' 'resume --all' "$GPREEMPT" resume --all
[[ $out == *"released $train"*'; process '*' held it and ended without releasing it'* ]] || fail "resume said: $out"
for pid in "$train" "$other"; do
	is_loose "$pid" || fail 'resume --all left something'
done
# Its record is found also where nobody selected the simulated GPU.
suspend_in_background suspend "$other"
kill_job "$JOB"
try env -u GPREEMPT_GPU GPREEMPT_NVIDIACTL=/nonexistent GPREEMPT_KFD=/nonexistent \
	GPREEMPT_KFD_SYSFS=/nonexistent "$GPREEMPT" resume --all
exits 0 '' 'resume --all without GPREEMPT_GPU'
is_loose "$other" || fail 'resume --all without GPREEMPT_GPU left something'

# Also where the socket was named from another folder, and through the library.
cd "$GPREEMPT_RUN" || fail 'no folder'
GPREEMPT_SIMGPU=simgpu.sock suspend_in_background suspend "$other"
cd /
kill_job "$JOB"
is_held "$other" || fail 'released by a kill: this tests nothing'
expect 0 '' 'resume from another folder' "$GPREEMPT" resume "$other"
is_loose "$other" || fail 'resume from another folder left it held'
expect 0 '' 'a program that uses the library' "$BUILD/tests/lib/example-list" "$other"
[[ $out == *compute* ]] || fail "the library lists: $out"

# ---- the end ----------------------------------------------------------------------------------
end_job TERM "$train" || fail "simload ends with $?: $(<"$work/train")"
grep -Eq '^[0-9]+ requests, .*/s, p50 .*, p99 .*, max .*, checksum [0-9a-f]{16}$' "$work/train" ||
	fail "simload said: $(<"$work/train")"
expect 0 '' 'three processes' timeout 60 "$GPREEMPT" simload --processes 3 --requests 5 --kernel 1ms --json
holds '.processes == 3 and .requests == 15 and .wrong == 0 and .left == 0' 'three processes'
three=$(jq -r .checksum "$work/out")
try timeout 60 "$GPREEMPT" simload --processes 3 --requests 5 --kernel 1ms --device 1 --json
[[ $(jq -r .checksum "$work/out") == "$three" ]] || fail 'the same work has another checksum'
try timeout 60 "$GPREEMPT" simload --processes 3 --requests 5 --kernel 1001us --json
[[ $(jq -r .checksum "$work/out") != "$three" ]] || fail 'other work has the same checksum'
start_simload many --processes 3 --kernel 1ms --device 1
[[ $("$GPREEMPT" ps --for 1ms --json | jq 'map(select(.name == "many")) | length') == 3 ]] ||
	fail 'three processes are not three tasks'
end_job TERM "$LOAD" || fail "three processes end with $?"
end_job TERM "$GPU" || fail "gpreempt-simgpu ends with $?"
sed -i 1d "$work/simgpu" # ready
jq -e '.wrong_packets == 0 and (.devices | length) == 2 and .devices[0].requests > 0 and
	.devices[0].holds >= 7 and .devices[1].programs == 7' "$work/simgpu" >/dev/null ||
	fail "its statistics: $(<"$work/simgpu")"
until_true said serve 'the simulated GPU is gone' || fail 'serve does not notice'
[[ ! -e $GPREEMPT_RUN/simgpu.sock ]] || fail 'the socket is left behind'
finish
