#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt suspend and resume through a daemon, and in spite of one that is stuck. The daemon is a
# fake one.
set -u
# shellcheck source=tests/cli/fake.bash
. "$SRC/tests/cli/fake.bash"
begin_fake
sleep 60 &
one=$!
sleep 60 &
two=$!
jobs_started+=("$one" "$two")

# It holds until a resume.
answers '{"hold": {"tasks": 1}, "release": {"tasks": 1}}'
try "$GPREEMPT" suspend $one
exits 0 '' 'suspend'
[[ $out == "held $one (sleep) in "*', kept by the daemon until gpreempt resume' ]] || fail "suspend said '$out'"
asked ".method == \"hold\" and .params.target.pid == $one" 'suspend holds by pid'
jq -es 'any(.[]; .method == "release")' "$work/log" >/dev/null && fail 'suspend without a time releases'
try "$GPREEMPT" suspend $one $two --for 50ms --json
exits 0 '' 'suspend --for'
[[ $(jq -r '"\(.event) \(.pid)"' "$work/out" | paste -sd,) == "held $one,held $two,released $one,released $two" ]] ||
	fail "suspend --for: $out"
jq -se '.[2].held_us >= 50000' "$work/out" >/dev/null || fail "not held for so long: $out"
in_background suspend "$GPREEMPT" suspend $one --for 60s
until_true said suspend held || fail "suspend --for does not hold: $(<"$work/suspend")"
kill -INT "$JOB"
wait "$JOB" || fail "suspend --for ended by Ctrl-C: $?"
said suspend "released $one" || fail "Ctrl-C does not release: $(<"$work/suspend")"

try "$GPREEMPT" suspend $one --force
asked '.method == "hold" and .params.force == true' 'suspend --force'

# If one of several cannot be held, none is.
answers "{\"hold\": {\"tasks\": 1}, \"hold $two\": {\"error\": [\"EPERM\", \"it is not yours\"]}, \"release\": {\"tasks\": 1}}"
try "$GPREEMPT" suspend $one $two
exits 3 'gpreempt: it is not yours' 'one cannot be held'
asked ".method == \"release\" and .params.target.pid == $one" 'the other is released'
answers '{"hold": {"tasks": 0}}'
try "$GPREEMPT" suspend $one
exits 4 "gpreempt: process $one has no queues to hold" 'nothing to hold'

# Somebody resumes it, or it ends meanwhile.
answers '{"hold": {"tasks": 1}, "release": {"tasks": 0}}'
try "$GPREEMPT" suspend $one --for 1ms
[[ $out == *"$one (sleep) was released by another process"* ]] || fail "resumed meanwhile: $out"
sleep 0.3 &
try "$GPREEMPT" suspend $! --for 60s
exits 0 '' 'it ends meanwhile'
[[ $out == *'has ended; it was held for'* ]] || fail "it ends meanwhile: $out"

# A daemon that does not say whether it holds: it is told to let go.
answers '{"hold": "bye", "release": {"tasks": 1}}'
try "$GPREEMPT" suspend $one
exits 1 'gpreempt: the daemon has closed the connection' 'the daemon goes away while it holds'
asked ".method == \"release\" and .params.target.pid == $one" 'what may be held is released'

# What a daemon cannot do is done here: and here is no GPU.
for args in "$one --no-daemon" "$one --queue 1" "$one --device 0" "$one --type save"; do
	# shellcheck disable=SC2086
	try "$GPREEMPT" suspend $args
	exits 4 'gpreempt: no GPU was found*' "suspend $args"
done

# resume.
devices='"devices": {"devices": [{"device": 0, "name": "x"}]}'
mine="\"stats\": {\"daemon\": {\"pid\": $FAKE}}, \"release\": {\"tasks\": 1}"
answers "{$devices, $mine, \"tasks\": {\"tasks\": [{\"device\": 0, \"task\": 1, \"pid\": $one, \"held_by\": [\"user\"]}]}}"
try "$GPREEMPT" resume $one
exits 0 '' 'resume'
[[ $out == "released $one (sleep); python3 ($FAKE) schedules it again" ]] || fail "resume said '$out'"
answers '{"release": {"error": ["EPERM", "it is held by root"]}}'
try "$GPREEMPT" resume $one
exits 3 'gpreempt: it is held by root' 'resume refused'
answers "{$devices, \"tasks\": {\"tasks\": [{\"device\": 0, \"task\": 1, \"pid\": $one, \"held_by\": [\"policy\"]}]}, \"release_all\": {\"tasks\": 0}}"
try "$GPREEMPT" resume --all --json
exits 0 '' 'resume --all'
holds '.released == []' 'what the policy holds is not released'
asked '.method == "release_all"' 'resume --all asks the daemon'
answers "{$devices, \"tasks\": {\"tasks\": [{\"device\": 0, \"task\": 1, \"pid\": $one, \"held_by\": [\"user\"]}]}, \"release_all\": {\"tasks\": 0}}"
try "$GPREEMPT" resume --all
exits 3 'gpreempt: 1 task held by other users stays held; root can release them' 'what others hold'
try "$GPREEMPT" resume --all --no-daemon
exits 0 '' 'resume --all --no-daemon'
[[ $out == 'nothing was held' ]] || fail "resume --all --no-daemon said '$out'"

# A daemon that is stuck is not waited for: at the first word, in the middle, or stopped.
for method in hello release_all; do
	answers "{$devices, \"$method\": \"stuck\"}"
	SECONDS=0
	try "$GPREEMPT" resume --all
	exits 0 'gpreempt: *daemon*' "resume --all, stuck at $method"
	[[ $out == *'nothing was held' ]] || fail "stuck at $method: $out"
	((SECONDS < 15)) || fail "stuck at $method: it took $SECONDS s"
done
kill -STOP "$FAKE"
SECONDS=0
try "$GPREEMPT" resume --all
exits 0 'gpreempt: the daemon does not answer*' 'resume --all, the daemon is stopped'
((SECONDS < 15)) || fail "a stopped daemon: it took $SECONDS s"
try "$GPREEMPT" ps
exits 4 'gpreempt: the daemon does not answer*going on without*no GPU was found*' 'ps beside a stopped daemon'
kill -CONT "$FAKE"
finish
