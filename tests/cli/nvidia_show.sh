#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# doctor, ps, queues, monitor and bench on the emulated NVIDIA driver say what it says.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 2

expect 0 '' 'ps of nobody' "$GPREEMPT" ps
[[ $out == 'no process has queues on a GPU here' ]] || fail "ps of nobody: '$out'"
try "$GPREEMPT" ps --json
holds '. == []' 'ps --json of nobody'
expect 4 'gpreempt: no process has queues on *' 'suspend of an empty device' "$GPREEMPT" suspend --device 0

expect 0 '' 'doctor' "$GPREEMPT" doctor
[[ $out == *'NVIDIA driver 580'*'#'* || $out == *'NVIDIA driver 580'* ]] || fail "doctor: $out"
[[ $(tail -n 1 "$work/out") == 'ready: 2 GPUs; gpreempt ps shows the processes on them' ]] ||
	fail "verdict: $(tail -n 1 "$work/out")"
try "$GPREEMPT" doctor --json
holds '.ready == 2 and .backends[0].name == "nvidia" and .left_behind == 0' 'doctor --json'

start_load --memory 2147483648
busy=$LOAD
start_load --idle --gpus 2 --contexts 3
idle=$LOAD

expect 0 '' 'ps --json' "$GPREEMPT" ps --json
holds 'length == 3' 'a line for each process and device'
holds ".[] | select(.pid == $busy) | .name == \"rm-load\" and .user == \"root\" and .device == 0 and
	.queues == 1 and .slice_us == 2048 and .state == \"active\" and .gpu_pct > 5 and
	.memory == 2147483648 and (has(\"owner\") or has(\"shared\") | not)" 'the busy process'
holds "map(select(.pid == $idle)) | map(.device) == [0,1] and map(.queues) == [2,1] and
	all(.[]; (.state | . != \"active\" and . != \"running\" and . != \"waiting\") and (.gpu_pct == null or .gpu_pct < 10))" 'the idle process'
expect 0 '' 'ps' "$GPREEMPT" ps --for 1ms
[[ $out =~ $busy\ +root\ +0\ +1\ +(active\ +)?2.05\ ms ]] || fail "ps: $out"
[[ $out == *'device 0: '*'device 1: '* ]] || fail 'ps does not name the devices'

# queues: the same numbers, handles and slices as the emulator's.
expect 0 '' 'queues --json' "$GPREEMPT" queues "$idle" --json
holds 'all(.devices[]; has("evicted_ms") | not) and all(.queues[]; has("serial") | not)' 'what NVIDIA GPUs do not tell'
jq -c '[.queues[] | [.device, .id, .channels, .slice_us, .held, .client, .object]] | sort' \
	"$work/out" >"$work/ours"
jq -c "[.clients[] | .handle as \$client | .groups[] | select(.pid == $idle) |
	[.gpu, .tsg_id, (.channels | length), .slice_us, .held, \$client, .handle]] | sort" \
	"$EMU/state" >"$work/theirs"
cmp -s "$work/ours" "$work/theirs" || fail "queues: $(<"$work/ours") instead of $(<"$work/theirs")"
holds '[.queues[] | select(.type == "compute")] | length == 3' 'three compute queues'
holds 'all(.queues[]; .interleave != 0)' 'what is not known is not 0'
expect 0 '' 'queues' "$GPREEMPT" queues "$idle"
[[ $out == *'2 compute and 6 copy queues on '*'1 compute and 3 copy queues on '* ]] || fail "totals: $out"
expect 0 '' 'queues --c' "$GPREEMPT" queues "$busy" --c
cp "$work/out" "$work/array.c"
echo 'int main(void) { return sizeof queue_ids / sizeof *queue_ids == 4 && queue_ids[3] == 3 ? 0 : 1; }' >>"$work/array.c"
if ! "$CC" -Wall -Wextra -Werror -o "$work/array" "$work/array.c" || ! "$work/array"; then
	fail "no C array: $out"
fi
try "$GPREEMPT" queues "$busy" --min-priority 3
exits 0 'gpreempt: the priority of 4 queues is not known; listed nevertheless' 'queues --min-priority'
[[ $out == *'1 compute and 3 copy queues on '* ]] || fail "queues --min-priority: $out"

# A process without queues, and none at all.
expect 4 "gpreempt: process $$ *" 'queues of a process without any' "$GPREEMPT" queues $$
for verb in queues monitor bench suspend; do
	try "$GPREEMPT" $verb 4194304
	[[ $status == 4 || $status == 2 ]] || fail "$verb of nobody: exit $status"
done

# samples_go_on: waits until the monitor, which alone asks for slices here, has looked a few times.
samples_go_on() {
	local asked
	asked=$(emu_count get_timeslice)
	until_true eval "((\$(emu_count get_timeslice) >= $asked + 40))" || fail 'monitor takes no samples'
	sleep 0.3
}

# monitor_a_change GROUPS OPTION...: a load that has 2 groups until they have been sampled, however
# long that takes, for it stands still; then what it is to do is overdue, and it has GROUPS.
monitor_a_change() {
	local groups=$1
	shift
	start_load --contexts 2 --idle "$@"
	kill -STOP "$LOAD"
	[[ $(groups_of "$LOAD") == 2 ]] || fail "$*: $(groups_of "$LOAD") groups, too early"
	in_background changes "$GPREEMPT" monitor "$LOAD" --every 50ms --json
	samples_go_on
	kill -CONT "$LOAD"
	until_true eval "[[ \$(groups_of $LOAD) == $groups ]]" || fail "$*: nothing changed"
	samples_go_on
	end_job INT "$JOB" || fail "monitor: exit $?"
	mv "$work/changes" "$work/out"
	stop_load "$LOAD"
}

# A new group has the driver's slice for a moment, until the program sets its own.
monitor_a_change 3 --grow 1000
holds '.queues[] | select(.type == "compute" and .device == 0) |
	.min == 2 and .max == 3 and .came == 1 and .went == 0 and (.slices_us - [1024]) == [2048]' 'a group came'
holds '.stable == false and (.advice | startswith("changing")) and .samples > 4' 'it is not stable'
monitor_a_change 1 --shrink 1000
holds '.queues[] | select(.type == "compute") | .min == 1 and .max == 2 and .went == 1' 'a group went'
in_background monitored "$GPREEMPT" monitor "$busy" --every 100ms
sleep 1.2
end_job INT "$JOB" || fail "monitor and Ctrl-C: exit $?"
said monitored '^stable: no queue came or went; ' || fail "monitor: $(<"$work/monitored")"
said monitored 'share of device 0 .* [0-9]* %$' || fail "monitor: $(<"$work/monitored")"

# bench: all succeed, figures in order, work is kept, nothing is left.
expect 0 '' 'bench' "$GPREEMPT" bench "$busy" --count 20 --hold-ms 2 --json
holds '.hold.tried == 20 and .hold.done == 20 and .release.done == 20' 'bench succeeds'
holds '[.hold, .release][] | .answer_us | .min > 0 and .min <= .p50 and .p50 <= .p99 and .p99 <= .max' \
	'bench: figures in order'
holds '.hold.effect_us == null and .find_us.p50 > 0' 'bench: what cannot be seen is null'
is_running "$busy" || fail 'bench leaves the process held'
in_background benched "$GPREEMPT" bench "$busy" --count 1000000
until_true eval "[[ \$(records) == 1 ]]" || fail 'bench has no record'
end_job INT "$JOB" || fail "bench and Ctrl-C: exit $?"
said benched 'success: hold 100.0 %, release 100.0 %' || fail "bench and Ctrl-C: $(<"$work/benched")"
said benched 'command to effect: not visible' || fail "bench: $(<"$work/benched")"
is_running "$busy" || fail 'bench and Ctrl-C leave the process held'
[[ $(records) == 0 ]] || fail 'bench leaves a record'
emu 'fault disable 0x65 100000'
try "$GPREEMPT" bench "$busy" --count 3
emu clear_faults
[[ $status == 1 ]] || fail "bench on a driver that refuses: exit $status ($out $err)"
try "$GPREEMPT" resume --all
ends_right "$busy"

# stats: run times with their source.
start_load --kernel-us 2000
load=$LOAD
# A run time takes two samples of the driver's, which a busy machine may not have in a second.
knows_run_time() {
	try "$GPREEMPT" stats --for 1s --json
	[[ $status != 0 ]] || jq -e ".tasks | map(select(.pid == $load))[0].ran_ns > 1000000" "$work/out" >/dev/null
}
for _ in {1..10}; do
	knows_run_time && break
done
exits 0 '' 'stats'
jq -e ".tasks | map(select(.pid == $load))[0] | .ran_ns > 1000000 and .run_source == \"measured\" and
	(has(\"scheduled\") | not)" "$work/out" >/dev/null || fail "stats: $out"
try "$GPREEMPT" stats --for 100ms
[[ $out =~ rm-load ]] || fail "stats: $out"
expect 2 '*takes no argument*' 'stats with an argument' "$GPREEMPT" stats 4711

# A program with an old client: RM has given out many numbers of clients since.
stop_load "$idle"
emu client_index 60000
expect 0 '' 'ps of a program with an old client' "$GPREEMPT" ps --json
holds "map(.pid) | index($load) != null" 'the program with an old client'
expect 0 '' 'resume --all of a program with an old client' "$GPREEMPT" resume --all

# It is not found in time, and another program is: the list says which process it leaves out.
emu client_index 900000
start_load
missing="*process $load (rm-load) may use *its queues were not found*"
expect 1 "$missing" 'ps without a program' "$GPREEMPT" ps --json
expect 1 "$missing" 'resume --all without a program' "$GPREEMPT" resume --all
expect 0 '' 'queues of the program that was found' "$GPREEMPT" queues "$LOAD"
ends_right "$LOAD"
ends_right "$load"
finish
