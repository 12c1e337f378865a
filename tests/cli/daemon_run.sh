#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt run and set: what the daemon is asked, what becomes of the command, and what is said when
# there is no daemon or it refuses. The daemon is a fake one.
set -u
# shellcheck source=tests/cli/fake.bash
. "$SRC/tests/cli/fake.bash"

# Without a daemon.
export GPREEMPT_SOCKET=$work/nobody
try "$GPREEMPT" run --class be -- touch "$work/ran"
exits 125 "gpreempt: no daemon answers at $work/nobody; start it with *gpreemptd*" 'run without a daemon'
one_sentence 'run without a daemon'
[[ ! -e $work/ran ]] || fail 'the command ran although there is no daemon'
expect 7 '*no daemon answers*' 'run --anyway' "$GPREEMPT" run --class be --anyway -- sh -c 'echo did; exit 7'
[[ $out == did ]] || fail "run --anyway printed '$out'"
expect 1 '*no daemon answers*' 'set without a daemon' "$GPREEMPT" set $$ --class be
one_sentence 'set without a daemon'

# Wrong usage.
for args in '' '--class be' '--class be --' '-- true' '--class fast -- true' '--priority 16 -- true' \
	'--weight 0 -- true' '--share 101 -- true' '--deadline 5 -- true' '--budget soon -- true'; do
	# shellcheck disable=SC2086
	expect 125 'gpreempt run: *' "run $args" "$GPREEMPT" run $args
done
for args in '' $$ "$$ --class" "$$ --class fast" "$$ --priority -1" "$$ --weight 10001" \
	"$$ --ceiling 0" "$$ --deadline 0s" '--class be' "0 --class be" "$$ x --class be" "$$ --gang ''"; do
	eval "try \"\$GPREEMPT\" set $args"
	exits 2 'gpreempt set: *' "set $args"
done

begin_fake
set_answer='{"tasks": 0, "attr": {"class": "lc", "priority": 3, "weight": 100, "deadline_ns": 2000000}}'

# What is said, and nothing else, before the command begins.
answers "{\"set\": $set_answer}"
expect 0 '' 'run' "$GPREEMPT" run --class lc --priority 3 --deadline 2ms -- sh -c "echo \$\$; wc -l <$work/log"
pid=$(head -n 1 "$work/out")
[[ $(tail -n 1 "$work/out") == 2 ]] || fail "hello and set did not come before the command: $out"
asked '.method == "set" and .params == {"target": {"self": true}, "inherit": true, "class": "lc", "priority": 3, "deadline_ns": 2000000}' \
	'run says what was said'
try "$GPREEMPT" run --json --weight 50 --share 30 --ceiling 60 --budget 1500us --gang ranks -- sh -c 'echo $$'
asked '.params == {"target": {"self": true}, "inherit": true, "weight": 50, "share_permille": 300, "ceiling_permille": 600, "budget_ns": 1500000, "gang": "ranks"}' \
	'run with the other attributes'
jq -e ".pid == $out and .attr.class == \"lc\"" "$work/err" >/dev/null || fail "run --json said '$err'"

# The command is this process: its number, files, signals and status.
in_background run "$GPREEMPT" run --class be -- sleep 60
until_true eval "[[ \$(ps -o comm= -p $JOB) == sleep ]]" || fail "the command is not the process: $(ps -o args= -p "$JOB")"
kill -TERM "$JOB"
status=0
wait "$JOB" || status=$?
[[ $status == 143 ]] || fail "a signal to the command: status $status"
for n in 0 1 2 42 125 255; do
	try "$GPREEMPT" run --class be -- sh -c "exit $n"
	[[ $status == "$n" ]] || fail "exit $n became $status"
done
ls /proc/self/fd >"$work/files"
"$GPREEMPT" run --class be -- ls /proc/self/fd >"$work/files.run"
cmp -s "$work/files" "$work/files.run" || fail "files of the command: $(paste -sd' ' "$work/files.run") instead of $(paste -sd' ' "$work/files")"
grep 'Sig[BCIP]' /proc/self/status >"$work/signals"
"$GPREEMPT" run --class be -- grep 'Sig[BCIP]' /proc/self/status >"$work/signals.run"
cmp -s "$work/signals" "$work/signals.run" || fail "signals of the command: $(<"$work/signals.run")"
# shellcheck disable=SC2016
try "$GPREEMPT" run --class be sh -c 'echo "$0 $@"' a --class b -- c
[[ $out == 'a --class b -- c' ]] || fail "arguments of the command: '$out'"
try "$GPREEMPT" run --class be -- /nonexistent/command
exits 127 'gpreempt: cannot run /nonexistent/command: No such file*' 'no such command'
try "$GPREEMPT" run --class be -- no-such-command-anywhere
exits 127 'gpreempt: cannot run no-such-command-anywhere: *' 'no such command in PATH'
expect 126 "gpreempt: cannot run $work: Permission denied" 'a folder as a command' "$GPREEMPT" run --class be -- "$work"

# --gpu: by what each vendor's programs go. A file of NVIDIA's driver tells the id of the GPU.
devices='[{"device": 0, "name": "A", "backend": "nvidia", "bus": "0000:3b:00.0"}, {"device": 1, "name": "B", "backend": "amd"},
	{"device": 2, "name": "C", "backend": "amd"}, {"device": 3, "name": "D", "backend": "sim"}, {"device": 4, "name": "E", "backend": "other"}]'
answers "{\"set\": $set_answer, \"devices\": {\"devices\": $devices}}"
# shellcheck disable=SC2016
chosen='echo "$CUDA_VISIBLE_DEVICES|$ROCR_VISIBLE_DEVICES|$HIP_VISIBLE_DEVICES|$GPREEMPT_SIM_DEVICE"'
export CUDA_VISIBLE_DEVICES=7 HIP_VISIBLE_DEVICES=7
try "$GPREEMPT" run --class be --gpu 2 -- sh -c "$chosen"
[[ $status == 0 && $out == '7|1||' ]] || fail "run --gpu 2 (AMD): '$out' $err"
try "$GPREEMPT" run --class be --gpu 3 -- sh -c "$chosen"
[[ $status == 0 && $out == '7||7|0' ]] || fail "run --gpu 3 (simulated): '$out' $err"
try "$GPREEMPT" run --class be --gpu 4 -- touch "$work/ran"
exits 125 'gpreempt: no environment variable makes a program use E' 'run --gpu of another kind'
try "$GPREEMPT" run --class be --gpu 5 -- touch "$work/ran"
exits 125 'gpreempt: there is no GPU 5; gpreempt ps lists them' 'run --gpu of no GPU'
try "$GPREEMPT" run --class be --gpu 0 -- touch "$work/ran"
exits 125 'gpreempt: the id of A cannot be read *' 'run --gpu without the file of the driver'
[[ ! -e $work/ran ]] || fail 'the command ran although its GPU is not there'
page=/proc/driver/nvidia/gpus/0000:3b:00.0
if unshare -m mount -t tmpfs none /proc/driver 2>/dev/null; then
	try unshare -m sh -c "mount -t tmpfs none /proc/driver && mkdir -p $page &&
		printf 'Model: \\t\\t NVIDIA H200\\nGPU UUID: \\t GPU-0a1b-2c3d\\nBus Type: \\t PCIe\\n' >$page/information &&
		exec \"\$GPREEMPT\" run --class be --gpu 0 -- sh -c '$chosen'"
	[[ $status == 0 && $out == 'GPU-0a1b-2c3d||7|' ]] || fail "run --gpu 0 (NVIDIA): '$out' $err"
fi
unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES

# Refused.
answers '{"set": {"error": ["EPERM", "you may not have class lc; ask the administrator"]}}'
try "$GPREEMPT" run --class lc -- touch "$work/ran"
exits 125 'gpreempt: you may not have class lc; ask the administrator' 'run refused'
[[ ! -e $work/ran ]] || fail 'the command ran although the daemon refused'
expect 0 '*you may not have class lc*runs without*' 'run refused, anyway' "$GPREEMPT" run --class lc --anyway -- echo did
[[ $out == did ]] || fail 'a refused command did not run anyway'
expect 3 'gpreempt: you may not have class lc; ask the administrator' 'set refused' "$GPREEMPT" set $$ --class lc

# set names processes by pid and start time.
answers "{\"set\": $set_answer}"
sleep 60 &
sleeper=$!
jobs_started+=("$sleeper")
expect 0 '' 'set' "$GPREEMPT" set $sleeper --deadline none --gang none
[[ $out == "$sleeper (sleep): class lc, priority 3, weight 100, deadline 2.00 ms; not seen on a GPU yet; takes effect as soon as it is" ]] ||
	fail "set said '$out'"
asked ".params == {\"target\": {\"pid\": $sleeper, \"start_time\": $(cut -d" " -f22 /proc/$sleeper/stat)}, \"deadline_ns\": 0, \"gang\": \"\"}" 'set says what was said'
try "$GPREEMPT" set $sleeper --class be --inherit --json
holds ".pid == $sleeper and .name == \"sleep\" and .attr.priority == 3 and .tasks == 0" 'set --json'
asked '.params.inherit == true' 'set --inherit'

# One that is gone is no reason to leave out the others.
sleep 0 &
gone=$!
wait $gone
answers "{\"set\": {\"tasks\": 2, \"attr\": {\"class\": \"be\"}}}"
expect 4 "gpreempt: there is no process $gone" 'set of a process that is gone' "$GPREEMPT" set $gone $sleeper --class be
[[ $out == "$sleeper (sleep): class be; in force on 2 devices" ]] || fail "set of two said '$out'"

# Who answers may be anybody.
answers '{"hello": "noise"}'
expect 1 'gpreempt: *' 'what answers is no daemon' "$GPREEMPT" set $sleeper --class be
one_sentence 'what answers is no daemon'
answers '{"set": "bye"}'
expect 1 'gpreempt: the daemon has closed the connection' 'the daemon goes away' "$GPREEMPT" set $sleeper --class be
answers '{"hello": {"error": ["ENOTSUP", "version 1 is not spoken here"]}}'
expect 1 'gpreempt: version 1 is not spoken here' 'another version' "$GPREEMPT" set $sleeper --class be
[[ $pid -gt 1 ]] || fail "no pid in '$pid'"
finish
