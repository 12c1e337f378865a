#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt ps, stats, policy, events and trace: how a daemon's answers are shown. The daemon is a
# fake one.
set -u
# shellcheck source=tests/cli/fake.bash
. "$SRC/tests/cli/fake.bash"

# Without a daemon, and wrong usage.
export GPREEMPT_SOCKET=$work/nobody
for args in events "trace $work/trace.json" 'policy rr'; do
	# shellcheck disable=SC2086
	expect 1 'gpreempt: no daemon answers*' "$args without a daemon" "$GPREEMPT" $args
	one_sentence "$args without a daemon"
done
[[ ! -e $work/trace.json ]] || fail 'a trace of nothing'
for args in 'events now' 'events --kind hold' 'events --kind held,' 'events --for 5' trace \
	'trace a.json b.json' 'trace a.json --every 0ms' 'trace a.json --for x'; do
	# shellcheck disable=SC2086
	expect 2 'gpreempt *' "$args" "$GPREEMPT" $args
done

begin_fake
device0='{"device": 0, "name": "Simulated H200 #0", "backend": "sim", "state": "ok", "policy": "priority", "policy_wanted": "priority", "tasks": 2,
	"stats": {"ticks": 1000, "holds": 12, "releases": 11, "since_ns": 20000000000}, "times": {"hold": {"count": 12, "p50_ns": 21000, "p99_ns": 35000, "max_ns": 40000}}}'
device1='{"device": 1, "name": "Simulated H200 #1", "backend": "sim", "state": "lost", "policy": "none", "policy_wanted": "fair",
	"ejection": {"policy": "fair", "reason": "starved", "text": "task 9 got nothing for 10 s"}}'
task1='{"device": 0, "task": 7, "pid": 4712, "start_time": 1, "name": "train", "uid": 0, "user": "alice", "class": "be", "priority": 2, "weight": 100,
	"state": "held", "held_by": ["policy", "user"], "run_ns": 5000000000, "run_source": "measured", "gpu_pct": 25, "held_ns": 2000000000, "slice_us": 2000, "preemptions": 30,
	"waits": {"count": 9, "p50_ns": 1500000, "p99_ns": 4200000, "max_ns": 5000000}, "memory": 1073741824}'
task2='{"device": 0, "task": 8, "pid": 4711, "start_time": 1, "name": "serve", "uid": 0, "user": "bob", "class": "lc", "priority": 0, "weight": 100,
	"state": "running", "held_by": [], "run_ns": 10000000000, "run_source": "granted", "gpu_pct": 50, "refused": true}'
policy='{"policy": "qos", "params": {"window": 20}}'
stats="{\"daemon\": {\"pid\": 99, \"uptime_ns\": 20000000000, \"cpu_ns\": 10000000, \"rss_bytes\": 4194304, \"clients\": 1, \"requests\": 5, \"keeper\": \"running\"}, \"devices\": [$device0, $device1]}"
all="\"devices\": {\"devices\": [$device0, $device1]}, \"tasks 0\": {\"tasks\": [$task1, $task2]}, \"tasks 1\": {\"tasks\": []}, \"policy\": $policy, \"stats\": $stats"
answers "{$all}"

# shown REGEX CLAIM
shown() {
	# shellcheck disable=SC2154 # try sets it
	[[ $out =~ $1 ]] || fail "$2: $out"
}

expect 0 '' 'ps' "$GPREEMPT" ps
shown '4712 +alice +0 +be +2 +held +policy,user +2.00 ms +25 % +1.50 ms +4.20 ms +1.0 GiB +- +train' 'a task and its share of the last second'
shown '4711 +bob +0 +lc +0 +running +- +- +<= 50 % +- +- +- +refused +serve' 'what is not known is a dash'
[[ $(grep -n 4711 "$work/out" | cut -d: -f1) == 2 ]] || fail "not in the order of process ids: $out"
shown 'device 0: Simulated H200 #0, policy priority' 'the policy in force'
shown 'device 1: Simulated H200 #1, policy none instead of fair, lost' 'a device that is lost'
shown 'policy fair was ejected: task 9 got nothing for 10 s' 'why a policy was ejected'
try "$GPREEMPT" ps --json
holds 'length == 2 and .[0].pid == 4711 and .[0].device_name == "Simulated H200 #0" and .[0].gpu_pct == 50 and (.[0] | has("memory") | not) and .[1].waits.p99_ns == 4200000' 'ps --json'
asked '.method == "tasks" and .params.device == 1' 'ps asks for each device'
try "$GPREEMPT" ps --for 20ms --json
holds 'all(.[]; .gpu_pct == 0 and .ran_ns == 0 and .over_ns >= 20000000)' 'ps --for: nothing ran meanwhile'
expect 4 'gpreempt: no GPU was found*' 'ps --no-daemon' "$GPREEMPT" ps --no-daemon
answers "{\"devices\": {\"devices\": [$device0]}, \"tasks\": {\"tasks\": []}}"
try "$GPREEMPT" ps
shown 'no process has queues on a GPU here' 'ps of nobody'
try "$GPREEMPT" ps --json
holds '. == []' 'ps --json of nobody'
answers '{"devices": {"devices": 5}}'
expect 1 'gpreempt: the daemon*' 'an answer of another kind' "$GPREEMPT" ps
answers '{"devices": {"error": ["EPERM", "not for you"]}}'
expect 3 'gpreempt: not for you' 'ps refused' "$GPREEMPT" ps

answers "{$all}"
expect 0 '' 'stats' "$GPREEMPT" stats --for 10ms
shown '4712 +0 +be +0 ns +0 % +0 +2.00 s +9 +1.50 ms +4.20 ms +measured +train' 'stats of a task'
shown 'device 0: Simulated H200 #0, policy priority, since 20.0 s' 'stats of a device'
shown 'policy fair was ejected: task 9 got nothing for 10 s' 'stats: why a policy was ejected'
shown 'ticks 1000, holds 12, releases 11'$'\n' 'what is not known is not said'
shown 'hold +12 +21.0 us +35.0 us +40.0 us' 'times of a device'
shown 'daemon 99: up 20.0 s, CPU 10.0 ms, memory 4 MiB, clients 1, requests 5, keeper running' 'stats of the daemon'
try "$GPREEMPT" stats --for 10ms --json
holds '(.tasks | length) == 2 and .devices[0].stats.holds == 12 and .daemon.pid == 99' 'stats --json'

expect 0 '' 'policy' "$GPREEMPT" policy
shown 'in force: qos: window 20 ms' 'the policy in force'
shown 'device 1: Simulated H200 #1, policy none instead of fair, lost.*policy fair was ejected: task 9 got nothing for 10 s' 'a device that has another'
answers '{"policy": {"policy": "qos", "params": {"window": 20}, "device": 1}}'
try "$GPREEMPT" policy qos:window=20 --device 1
asked '.method == "policy" and .params == {"policy": "qos:window=20", "device": 1}' 'policy sets'
[[ $out == 'in force on device 1: qos: window 20 ms' ]] || fail "policy qos said '$out'"
answers "{$all}" # an older daemon does not name the device
try "$GPREEMPT" policy qos:window=20 --device 1
[[ $out == 'set on device 1' ]] || fail "policy qos of an older daemon said '$out'"
try "$GPREEMPT" policy qos --json
holds '.policy == "qos" and .params.window == 20' 'policy qos --json'
asked '.params == {"policy": "qos"}' 'policy sets on all devices'
answers '{"policy": {"error": ["EPERM", "only root changes the policy"]}}'
expect 3 'gpreempt: only root changes the policy' 'policy refused' "$GPREEMPT" policy rr
expect 0 '' 'the list comes whatever the daemon says' "$GPREEMPT" policy

# Events, then the daemon ends.
event='"jsonrpc": "2.0", "method": "event", "params": {"at_ns": 1700000000123456789, "mono_ns": 5'
notifications="[{$event, \"event\": \"held\", \"device\": 0, \"task\": 7, \"pid\": 4712, \"name\": \"train\", \"by\": [\"policy\"], \"preempted\": true}},
	{$event, \"event\": \"policy\", \"device\": 0, \"policy\": \"fair\"}},
	{\"jsonrpc\": \"2.0\", \"method\": \"lost\", \"params\": {\"count\": 17}}, {$event, \"event\": \"something new\"}}, \"end\"]"
answers "{$all, \"notifications\": $notifications}"
expect 1 'gpreempt: the daemon has closed the connection' 'the daemon ends' env TZ=UTC "$GPREEMPT" events
shown '22:13:20.123456  held +device 0  4712 \(train\)  by policy  preempted' 'held'
shown 'policy +device 0  policy fair' 'policy'
shown '17 events were lost' 'lost'
shown 'something new' 'an event that is not known'
try "$GPREEMPT" events --json --kind held,policy --kind task_in
asked '.method == "subscribe" and .params.events == ["held", "policy", "task_in"]' 'events --kind'
[[ $(jq -r .event "$work/out" | paste -sd,) == 'held,policy,lost,something new' ]] || fail "events --json: $out"
answers "{$all}"
expect 0 '' 'events --for' "$GPREEMPT" events --for 50ms
answers "{$all}"
in_background events "$GPREEMPT" events
until_true grep -q subscribe "$work/log" || fail 'events does not subscribe'
kill -INT "$JOB"
status=0
wait "$JOB" || status=$?
[[ $status == 0 ]] || fail "events ended by Ctrl-C with $status"
SECONDS=0
"$GPREEMPT" events --for 100s | true
((SECONDS < 50)) || fail 'events goes on although nobody reads any more'

# A trace: sampled states, exact holds, moments.
event='"jsonrpc": "2.0", "method": "event", "params": {"device": 0, "task": 7, "pid": 4712, "name": "train"'
notifications="[{$event, \"event\": \"released\", \"after_ns\": 300000000}}, {$event, \"event\": \"held\", \"after_ns\": 400000000}},
	{$event, \"event\": \"undone\", \"after_ns\": 400000001}}, {$event, \"event\": \"held\", \"after_ns\": 999000000000}}]"
answers "{$all, \"notifications\": $notifications}"
expect 0 '' 'trace' "$GPREEMPT" trace --for 2s --every 5ms "$work/trace.json" --json
holds '.tasks == 2 and .devices == 2 and .samples > 3 and .events == 3 and .lost == 0' 'trace --json'
expect 0 '' 'a trace that Perfetto can read' python3 "$SRC/tests/cli/check_trace.py" "$work/trace.json"
holds '.processes == ["device 0: Simulated H200 #0", "device 1: Simulated H200 #1"] and (.threads | contains(["train 4712 (be)", "serve 4711 (lc)"]))' 'a track for each device and task'
holds '.async.hold == 2 and .moments.undone == 1 and .us.running > 500000 and (.curves | length) == 2' 'holds, moments, states and curves'
try "$GPREEMPT" trace --for 10ms "$work/no/such/folder.json"
exits 2 "gpreempt: cannot write the trace to $work/no/such/folder.json: *" 'a trace that cannot be written'
answers "{$all, \"tasks 1\": \"bye\"}"
try "$GPREEMPT" trace --for 60s "$work/trace.json"
exits 1 'gpreempt: the daemon has closed the connection' 'the daemon ends while a trace is written'
expect 0 '' 'what was seen until then is a trace' python3 "$SRC/tests/cli/check_trace.py" "$work/trace.json"
finish
