#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt ps, stats, policy, events and trace with a real daemon.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
DEVICES=2
begin_daemon --policy priority

try "$GPREEMPT" ps
[[ $out == 'no process has queues on a GPU here'*'device 1: '* ]] || fail "ps of nobody: $out"
in_background events "$GPREEMPT" events --json
events=$JOB
in_background trace "$GPREEMPT" trace --for 60s "$work/trace.json" --json
trace=$JOB
load train --kernel 5ms --memory 100
train=$LOAD
load other --device 1 --kernel 1ms
"$GPREEMPT" set "$train" --class be --priority 3 >/dev/null
is "$train" '.class == "be"'
until_true eval "[[ -s \$work/events ]] || { \"\$GPREEMPT\" set $train --class be >/dev/null; false; }" # until it follows

try "$GPREEMPT" ps --for 500ms
[[ $out =~ $train\ .*be\ +3\ .*[0-9]+\ %.*100\ MiB.*train ]] || fail "ps does not show the task: $out"
[[ $out =~ 'device 0: simulated H200 #0, policy priority' ]] || fail "ps does not show the device: $out"
try "$GPREEMPT" ps --for 500ms --json
holds "any(.[]; .pid == $train and .device == 0 and .class == \"be\" and .gpu_pct > 50 and .run_source == \"measured\")" 'ps --json'
holds 'all(.[]; (.task > 0) and (.start_time > 0) and (.user | type) == "string" and (.held_by | type) == "array")' 'what every task has'
try "$GPREEMPT" ps --no-daemon --json
holds "any(.[]; .pid == $train and (has(\"class\") | not))" 'ps --no-daemon looks itself'

try "$GPREEMPT" stats --for 200ms --json
holds ".daemon.pid == $DAEMON and (.devices | length) == 2 and (.tasks | length) == 2 and .devices[0].stats.ticks > 0 and .devices[0].times.decide.count > 0" 'stats --json'
try "$GPREEMPT" stats --for 200ms
[[ $out == *"daemon $DAEMON: up "* && $out == *'device 1: simulated H200 #1'* ]] || fail "stats: $out"
try "$GPREEMPT" stats --for 200ms --no-daemon --json
holds "any(.tasks[]; .pid == $train)" 'stats --no-daemon looks itself'

try "$GPREEMPT" policy
[[ $out == *$'\nin force: priority: '*'quantum 200 ms'*$'\n  from the command line of gpreemptd (--policy)\n'* ]] || fail "policy does not say what is in force: ${out: -300}"
try "$GPREEMPT" policy fair:turn=20
[[ $out == 'in force: fair: '*'turn 20 ms'*$'\n  chosen by '* ]] || fail "policy fair said '$out'"
expect 0 '' 'policy on one device' "$GPREEMPT" policy rr --device 1
[[ $out == 'in force on device 1: rr: '*$'\n  chosen by '*"('gpreempt policy --default --device 1' returns to it)" ]] || fail "policy rr --device 1 said '$out'"
expect 0 '' 'default policy on one device' "$GPREEMPT" policy --default --device 1
[[ $out == 'in force on device 1: priority: '*$'\n  from the command line of gpreemptd'* ]] || fail "policy --default --device 1 said '$out'"
expect 0 '' 'policy on one device' "$GPREEMPT" policy rr --device 1 --json
holds '.device == 1 and .policy == "rr" and .devices == ["fair", "rr"]' 'policy rr --device 1 --json'
try "$GPREEMPT" ps
[[ $out == *'#0, policy fair'*'#1, policy rr'* ]] || fail "policies of the devices: $out"
try "$GPREEMPT" policy --json
holds '[.[] | select(.in_force != []) | [.name, .in_force]] | sort == [["fair", [0]], ["rr", [1]]]' \
	'policy --json says what is in force'
expect 4 'gpreempt: there is no device 7*' 'policy on no device' "$GPREEMPT" policy rr --device 7
try "$GPREEMPT" policy priority --json
holds '.policy == "priority" and .params.quantum == 200' 'policy --json'

"$GPREEMPT" suspend "$train" >/dev/null
stands_still "$train" || fail 'a suspended program goes on'
"$GPREEMPT" resume "$train" >/dev/null
end_job TERM "$train"
until_true said events task_out || fail "no event of the end: $(<"$work/events")"
kill -INT "$events" "$trace"
wait "$events" || fail "events: $?"
for claim in "any(.[]; .event == \"held\" and .pid == $train and .by == [\"user\"])" \
	"any(.[]; .event == \"released\" and .pid == $train)" 'any(.[]; .event == "policy" and .policy == "fair" and .device == 0)' \
	'all(.[]; .at_ns > 1e18 and (.event == "attr" or .event == "policy" or .mono_ns > 0))'; do
	jq -es "$claim" "$work/events" >/dev/null || fail "events: not so: $claim in $(<"$work/events")"
done
expect 0 '' 'events --kind' env TZ=UTC "$GPREEMPT" events --for 1ms --kind held

wait "$trace" || fail "trace: $? $(<"$work/trace")"
jq -e '.tasks == 2 and .events >= 6 and .lost == 0' "$work/trace" >/dev/null || fail "trace said $(<"$work/trace")"
expect 0 '' 'a trace that Perfetto can read' python3 "$SRC/tests/cli/check_trace.py" "$work/trace.json"
holds '.processes == ["device 0: simulated H200 #0", "device 1: simulated H200 #1"] and (.threads | length) == 4' 'a track for each device and task'
holds '.async.hold >= 1 and .us.running > 0 and .moments.task_out == 1 and .moments["policy fair"] >= 1' 'what was seen'

# The daemon ends: what follows it says so.
in_background events "$GPREEMPT" events
until_true grep -q . "/proc/$JOB/net/unix"
until_true eval "\"\$GPREEMPT\" policy fair >/dev/null; said events 'policy fair'" || fail 'events does not follow'
kill "$DAEMON"
status=0
wait "$JOB" || status=$?
[[ $status == 1 ]] || fail "events after the end of the daemon: exit $status"
said events 'gpreempt: the daemon' || fail "events says nothing of the end: $(<"$work/events")"
expect 1 'gpreempt: no daemon answers*' 'set after the end of the daemon' "$GPREEMPT" set 1 --class be
finish
