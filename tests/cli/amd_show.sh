#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# doctor, ps, stats, queues and monitor on the emulated AMD driver say what it says.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi250 --gpu navi31

expect 0 '' 'ps of nobody' "$GPREEMPT" ps
[[ $out == 'no process has queues on a GPU here' ]] || fail "ps of nobody: '$out'"

# A machine without NVIDIA's driver is not a broken one.
expect 0 '' 'doctor' "$GPREEMPT" doctor
[[ $out != *missing* && $out == *'amdkfd, interface 1.17'*gfx90a*gfx1100* ]] || fail "doctor: $out"
for way in 'cu masks      not offered: they preempt nothing' 'criu pause    not offered: the queues stay paused' \
	'whole device  stopping a whole GPU is not offered: ' 'from inside   a program that links the library'; do
	[[ $out == *"$way"* ]] || fail "doctor does not say '$way': $out"
done
[[ $(tail -n 1 "$work/out") == 'ready: 2 GPUs; gpreempt ps shows the processes on them' ]] ||
	fail "verdict: $(tail -n 1 "$work/out")"
try "$GPREEMPT" doctor --json
holds '.ready == 2 and .left_behind == 0 and (.backends[] | select(.name == "nvidia") | .ready == 0 and
	all(.findings[]; .level != "missing" and .advice == null))' 'doctor --json'
try script -qec "$GPREEMPT doctor" /dev/null
(($(sed 's/\x1b\[[0-9]*m//g' "$work/out" | wc -L) <= 101)) || fail "wide lines on a terminal: $out"

start_kfd_load --queues 3 --steps 2 --priority 11
three=$LOAD
start_kfd_load --gpu 1 --idle
idle=$LOAD
start_kfd_load --type pm4 --idle --priority 3
pm4=$LOAD

expect 0 '' 'ps --json' "$GPREEMPT" ps --json
holds "length == 3 and (.[] | select(.pid == $three) | .queues == 3 and .device == 0 and
	.name == \"kfd-load\" and .user == \"root\" and (has(\"slice_us\") or has(\"slice_min_us\") or has(\"gpu_pct\") | not))" 'ps'
holds "map(select(.pid == $idle))[0].device == 1" 'the other GPU'
expect 0 '' 'ps for people' "$GPREEMPT" ps --for 1ms
[[ $out =~ $three\ +root\ +0\ +3\ .*kfd-load ]] || fail "ps: $out"
[[ $out != *SLICE* && $out != *GPU\ * ]] || fail "ps has columns that AMD GPUs have not: $out"
expect 0 '' stats "$GPREEMPT" stats --for 100ms
[[ $out == *"$three "*'device 0 (AMD gfx90a #0) has told no run times'* ]] || fail "stats: $out"
try "$GPREEMPT" stats --for 1ms --json
holds '(.tasks | length) == 3 and all(.tasks[]; has("ran_ns") or has("run_source") | not)' 'stats --json'

# queues: the driver's numbers, and what only an attached debugger knows.
expect 0 '' 'queues --json' "$GPREEMPT" queues "$three" --json
holds '[.queues[].id] == [0,1,2] and all(.queues[]; .type == "aql" and .held == false and
	.copies == false and .priority == 11 and .ring_bytes > 0 and .save_bytes > 1000000 and
	(.ring_address | startswith("0x")) and (.save_address | startswith("0x")) and .pending >= 0 and
	(has("channels") or has("slice_us") or has("client") | not)) and
	([.queues[].serial] | unique | length == 3)' 'what is known of queues'
until_true is_let_go "$three" || fail 'queues stays attached'
makes_progress "$three" || fail 'queues stopped it'
expect 0 '' queues "$GPREEMPT" queues "$three"
[[ $out == *PRIORITY*PENDING*RING*SAVE* && $out == *'3 aql queues on device 0 (AMD gfx90a #0)'* ]] ||
	fail "queues: $out"
[[ $out != *SLICE* && $out != *OWNER* && $out != *CHANNELS* ]] || fail "columns of dashes: $out"
(($(wc -L <"$work/out") <= 120)) || fail "queues is $(wc -L <"$work/out") wide"
try "$GPREEMPT" queues "$pm4"
[[ $out == *'1 pm4 queue on '* ]] || fail "queues of a pm4 program: $out"

# Queues that only copy, on whatever GPU, belong to the list; a program without others has one, too.
start_kfd_load --type sdma --queues 2 --idle --gpu 1
for how in '' --json; do
	# shellcheck disable=SC2086
	expect 0 '' "queues $how of a program that only copies" "$GPREEMPT" queues "$LOAD" $how
done
holds '.queues | length == 2 and all(.[]; .type == "sdma" and .copies and .device == 1)' 'only copies'
try "$GPREEMPT" queues "$LOAD"
[[ $out == *'2 sdma queues on device 1 (AMD gfx1100 #1)'* ]] || fail "totals of queues that copy: $out"
expect 0 '' 'monitor of a program that only copies' "$GPREEMPT" monitor "$LOAD" --for 0s --json
holds '.total.min == 2 and .queues[0].type == "sdma"' 'monitor of a program that only copies'
stop_kfd_load "$LOAD"

try "$GPREEMPT" queues "$three" --min-priority 11 --json
holds '.queues | length == 3' 'a priority that is high enough'
try "$GPREEMPT" queues "$three" --min-priority 12 --json
holds '.queues == []' 'a priority that is too low'
expect 0 '' 'no queue is left' "$GPREEMPT" queues "$three" --min-priority 12
[[ $out == "process $three (kfd-load) has no queue with a priority of 12 or more" ]] || fail "said: $out"
try "$GPREEMPT" queues "$three" --min-priority 12 --c
exits 4 "gpreempt: process $three has no queue with a priority of 12 or more" 'an empty C array'
expect 2 '*0 to 15*' 'a priority that there is not' "$GPREEMPT" queues "$three" --min-priority 16
expect 2 '*either*' 'C and JSON' "$GPREEMPT" queues "$three" --c --json
GPREEMPT_KFD_DEBUGFS=$work/none try "$GPREEMPT" queues "$three" --min-priority 12 --json
exits 0 'gpreempt: the priority of 3 queues is not known; listed nevertheless' 'no debugfs'
holds '.queues | length == 3 and all(.[]; has("priority") | not)' 'a priority that is not known'
expect 0 '' 'queues --c' "$GPREEMPT" queues "$three" --c
cp "$work/out" "$work/array.c"
echo 'int main(void) { return sizeof queue_ids / sizeof *queue_ids == 3 && queue_ids[2] == 2 ? 0 : 1; }' >>"$work/array.c"
if ! "$CC" -Wall -Wextra -Werror -o "$work/array" "$work/array.c" || ! "$work/array"; then
	fail "no C array: $out"
fi

# monitor: from afar nobody is attached to; closely the types are known.
expect 0 '' monitor "$GPREEMPT" monitor "$three" --for 400ms --every 100ms --json
# shellcheck disable=SC2016
holds '.samples >= 2 and .total.min == 3 and .total.max == 3 and .total.average == 3 and .stable and
	(.ids | map(.id) == [0,1,2]) and (.samples as $n | all(.ids[]; .seen == $n)) and
	.queues == [.queues[0]] and .queues[0].type == "compute" and .queues[0].of_all_pct == 100 and
	(.advice | startswith("stable"))' 'a program whose queues stay'
[[ $(state ".processes[] | select(.process == $three) | .suspends") == 0 ]] || fail 'monitor suspends'
attached=$(kfd_count enable)
try "$GPREEMPT" monitor "$three" --for 0s --json
[[ $(kfd_count enable) == "$attached" ]] || fail 'monitor attaches without being asked to'
holds '.samples == 1 and (.advice | startswith("one sample"))' 'one sample'
expect 0 '' 'monitor --closely' "$GPREEMPT" monitor "$three" --for 300ms --every 100ms --closely --plot "$work/plot.svg"
[[ $out == *'3 queues all the time'*aql*'100 %'*' of '*'stable: no queue came or went; '* ]] || fail "monitor: $out"
grep -q '>aql on device 0 (AMD gfx90a #0)<' "$work/plot.svg" || fail "plot: $(head -c 300 "$work/plot.svg")"
python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' "$work/plot.svg" || fail 'the plot is no XML'
try "$GPREEMPT" monitor "$three" --plot "$work/no/such/folder.svg"
exits 2 'gpreempt: cannot write *folder.svg: *' 'a plot that cannot be written'
try "$GPREEMPT" monitor "$three" --for 0s --plot "$work/plot.png"
exits 2 'gpreempt: this plot is drawn as SVG: use a file name that ends with .svg*' 'a plot of another format'
[[ ! -e $work/plot.png ]] || fail 'a plot under a name that it is not'
[[ $("$GPREEMPT" monitor "$three" --for 0s --plot /dev/stdout) == *'<svg'* ]] || fail 'no plot into a pipe'
try "$GPREEMPT" monitor $$ --for 0s --plot "$work/nothing.svg"
exits 4 "gpreempt: process $$ had no queues in 1 sample" 'monitor of a process without any'
[[ ! -e $work/nothing.svg ]] || fail 'an empty plot stays'

# What the driver itself kept off the GPU, once it has let it on again.
holds_evicted() {
	try "$GPREEMPT" queues "$three" --json
	holds ".devices == [.devices[0]] and .devices[0].evicted_ms $1" "evicted_ms $1"
}
holds_evicted '== 0'
try "$GPREEMPT" queues "$three"
[[ $out != *evicted* ]] || fail "evicted, and was not: $out"
kfd_emu evict "$three"
sleep 0.05
kfd_emu restore "$three"
holds_evicted '>= 50'
try "$GPREEMPT" queues "$three"
[[ $out == *'the driver has evicted it for '*' in all on device 0, because GPU memory was short' ]] || fail "evicted: $out"

# Queues that are made again have the same ids and, as a rule, the same memory; they are others.
start_kfd_load --queues 2 --idle --churn 30
for closely in '' --closely; do
	# shellcheck disable=SC2086
	expect 0 '' "monitor $closely of queues that are made again" "$GPREEMPT" monitor "$LOAD" --for 1s --every 20ms $closely --json
	holds '(.stable | not) and (.queues[0] | .came > 0 and .went > 0) and all(.ids[]; .id < 2) and
		(.ids | length > 2 and (map(.serial) | unique | length) == length)' "made again $closely"
done
stop_kfd_load "$LOAD"

# The process ends meanwhile: what was seen is said.
in_background watched "$GPREEMPT" monitor "$idle" --every 50ms --json
sleep 0.5
stop_kfd_load "$idle"
wait "$JOB" || fail "monitor and the end of the process: exit $?"
jq -e '.ended and (.advice == "the process has ended")' "$work/watched" >/dev/null || fail "$(<"$work/watched")"

# Progress is for terminals, and leaves nothing behind.
try script -qec "$GPREEMPT monitor $three --for 500ms --every 100ms" /dev/null
[[ $out == *'sample 1: 3 queues'*$'\r\033[K'* ]] || fail "no progress on a terminal: $out"
ends_right "$three"
ends_right "$pm4"
finish
