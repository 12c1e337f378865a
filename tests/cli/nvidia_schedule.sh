#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt schedule on the emulated NVIDIA driver: classes become slices and turns, and everything
# is as it was afterwards, however it ends.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1

slice_of() {
	jq "[.clients[].groups[] | select(.pid == $1 and .engine == 1) | .slice_us][0]" "$EMU/state"
}
has_slice() { # PID SLICE
	[[ $(slice_of "$1") == "$2" ]]
}
# is_back PID...: as it was found.
is_back() {
	for pid; do
		has_slice "$pid" 2048 && is_running "$pid" || return 1
	done
}
schedule_in_background() {
	in_background schedule "$GPREEMPT" schedule "$@"
	until_true said schedule '^ready$' || fail "never ready: $(<"$work/schedule")"
}

start_load --kernel-us 100 --period-us 3000
service=$LOAD
start_load --kernel-us 5000
train=$LOAD

# One service, one job: slices do it, nobody is held.
schedule_in_background --lc "$service" --be "$train"
until_true has_slice "$service" 1000000 || fail "service: $(slice_of "$service")"
until_true has_slice "$train" 1 || fail "job: $(slice_of "$train")"
end_job TERM "$JOB" || fail "exit $?"
is_back "$service" "$train" || fail 'not as it was'
said schedule "$train  be " || fail "statistics: $(<"$work/schedule")"

# Beside a process that was not named: it is left alone and keeps its share.
start_load --kernel-us 5000
other=$LOAD
schedule_in_background --lc "$service" --be "$train"
until_true has_slice "$service" 2000 || fail "service beside a stranger: $(slice_of "$service")"
has_slice "$train" 2048 || fail "job beside a stranger: $(slice_of "$train")"
is_back "$other" || fail 'a process that was not named was touched'
end_job TERM "$JOB" || fail "exit $?"
is_back "$service" "$train" "$other" || fail 'not as it was beside a stranger'

# Two jobs take turns.
schedule_in_background --lc "$service" --be "$train" --be "$other"
one_is_held() {
	[[ $(($(held "$train") + $(held "$other"))) == 1 ]]
}
for job in "$train" "$other"; do
	until_true is_held "$job" || fail "job $job is never held"
	until_true is_running "$job" || fail "job $job is never released"
done
until_true one_is_held || fail 'not one of two is held'

# Killed: whoever comes next puts it back.
kill_job "$JOB"
expect 0 '' 'resume --all' "$GPREEMPT" resume --all
is_back "$service" "$train" "$other" || fail 'resume --all left something'
schedule_in_background --be "$train" --lc "$service"
until_true has_slice "$service" 2000 || fail "service: $(slice_of "$service")"
kill_job "$JOB"
has_slice "$service" 2000 || fail 'put back by the kill: this tests nothing'
schedule_in_background --be "$other"
until_true is_back "$train" "$service" || fail 'the next scheduler does not put back what was left'
end_job INT "$JOB"

# Somebody resumes everything while it runs: it ends, and holds nothing again.
schedule_in_background --lc "$service" --be "$train" --be "$other"
try "$GPREEMPT" resume --all
wait "$JOB" || fail "resumed by another: exit $?"
said schedule 'another process released a task, .* (gpreempt resume), so this schedule has ended; all tasks were put back' || fail "$(<"$work/schedule")"
until_true is_back "$service" "$train" "$other" || fail 'held again after resume'

# It ends with the last of its processes, and with its time.
start_load --count 300 --kernel-us 1000
short=$LOAD
expect 0 '' 'the last process ends' timeout 20 "$GPREEMPT" schedule --be "$short"
expect 0 '' '--for' "$GPREEMPT" schedule --be "$train" --for 300ms --json
jq -e '.[0].tasks[0].pid == '"$train"' and .[0].policy == "priority"' "$work/out" >/dev/null ||
	fail "json: $out"

# One queue as a task of its own.
start_load --contexts 2 --kernel-us 5000
both=$LOAD
queue=$("$GPREEMPT" queues "$both" --json | jq '[.. | objects | select(.type? == "compute") | .id][0]')
schedule_in_background --lc "$both:$queue" --be "$train"
slices_are() {
	slices=$(jq -c "[.clients[].groups[] | select(.pid == $both and .engine == 1) | .slice_us] | sort" "$EMU/state")
	[[ $slices == "$1" ]]
}
until_true slices_are '[2000,2048]' || fail "one of two queues: $slices"
end_job INT "$JOB" || fail "one queue: exit $?"
slices_are '[2048,2048]' || fail "one of two queues is not as it was: $slices"

# What is said about each process reaches the policy: weights become slices, and 60 + 60 % cannot be
# promised.
schedule_in_background --policy fair --be "$train" --weight 300 --be "$other" --weight 100
ratio_is_3() {
	[[ $(($(slice_of "$train") / $(slice_of "$other"))) == 3 ]]
}
until_true ratio_is_3 || fail "weights: $(slice_of "$train") and $(slice_of "$other")"
end_job INT "$JOB" || fail "weights: exit $?"
expect 0 '' shares "$GPREEMPT" schedule --policy share --be "$train" --share 60 --be "$other" --share 60 --for 1s --json
holds '[.[].tasks[].refused] == [false,true]' 'the second share is refused'
is_back "$train" "$other" || fail 'not as it was after shares'

# Only slices, and all fail: no hold was tried, so none failed.
emu 'fault set_timeslice 0x65 100000'
try "$GPREEMPT" schedule --policy fair --be "$train" --weight 300 --be "$other" --weight 100 --for 1s
[[ $status == 1 ]] || fail "failing slices: exit $status"
[[ $err != *'could be held'* ]] || fail "failing slices: $err"
emu clear_faults

# A hold that is under way at the end: how long it kept the job off the GPU is not known.
emu 'latency disable 1500ms'
expect 0 '*' 'a slow hold' "$GPREEMPT" schedule --be "$train" --be "$other" --for 1s --json
holds 'all(.[].tasks[]; .held_ns != 0 or .preemptions == 0) and any(.[].tasks[]; .held_ns == null)' \
	'the time of a hold under way is unknown'
emu 'latency disable 0'

# Wrong arguments.
expect 2 '*--share must follow the process that it is for*' 'a share of nobody' "$GPREEMPT" schedule --share 60
try "$GPREEMPT" schedule --lc "$train" --deadline soon
exits 2 "*--deadline takes a time above 0 such as 500us, 2ms or 1s, or none; not 'soon'*" 'no time'
expect 2 '*give processes: --lc PID and --be PID*' 'no process' "$GPREEMPT" schedule
expect 2 "*'0' is not a process id*" 'pid 0' "$GPREEMPT" schedule --lc 0
expect 2 '*named twice*' 'named twice' "$GPREEMPT" schedule --lc "$train" --be "$train"
expect 2 '*0 to 15*' 'priority 16' "$GPREEMPT" schedule --lc "$train" --priority 16
expect 4 "gpreempt: process $$ *" 'a process without queues' "$GPREEMPT" schedule --be "$$"
expect 4 "gpreempt: process $both has no compute queue 4000000*" 'no such queue' "$GPREEMPT" schedule --be "$both:4000000"
expect 2 '*nonsense*' 'no such policy' "$GPREEMPT" schedule --be "$train" --policy nonsense
for pid in "$service" "$train" "$other" "$both"; do
	ends_right "$pid"
done
finish
