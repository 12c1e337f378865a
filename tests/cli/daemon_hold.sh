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
answers '{"hold": {"tasks": 1, "lease": 7}, "release": {"tasks": 1}}'
expect 0 '' 'suspend' "$GPREEMPT" suspend $one
[[ $out == "held $one (sleep) in "*', kept by the daemon until gpreempt resume' ]] || fail "suspend said '$out'"
asked ".method == \"hold\" and .params.target.pid == $one" 'suspend holds by pid'
jq -es 'any(.[]; .method == "release")' "$work/log" >/dev/null && fail 'suspend without a time releases'
expect 0 '' 'suspend --for' "$GPREEMPT" suspend $one $two --for 50ms --json
[[ $(jq -r '"\(.event) \(.pid)"' "$work/out" | paste -sd,) == "held $one,held $two,released $one,released $two" ]] ||
	fail "suspend --for: $out"
jq -se '.[2].held_us >= 50000' "$work/out" >/dev/null || fail "not held for so long: $out"
in_background suspend "$GPREEMPT" suspend $one --for 60s
until_true said suspend held || fail "suspend --for does not hold: $(<"$work/suspend")"
end_job INT "$JOB" || fail "suspend --for ended by Ctrl-C: $?"
said suspend "released $one" || fail "Ctrl-C does not release: $(<"$work/suspend")"

try "$GPREEMPT" suspend $one --force
asked '.method == "hold" and .params.force == true' 'suspend --force'

# If one of several cannot be held, none is.
answers "{\"hold\": {\"tasks\": 1}, \"hold $two\": {\"error\": [\"EPERM\", \"it is not yours\"]}, \"release\": {\"tasks\": 1}}"
expect 3 'gpreempt: it is not yours' 'one cannot be held' "$GPREEMPT" suspend $one $two
asked ".method == \"release\" and .params.target.pid == $one" 'the other is released'
answers '{"hold": {"tasks": 0}}'
expect 4 "gpreempt: process $one has no queues to hold" 'nothing to hold' "$GPREEMPT" suspend $one

# Somebody resumes it, or it ends meanwhile.
answers '{"hold": {"tasks": 1, "lease": 7}, "release": {"tasks": 0}}'
try "$GPREEMPT" suspend $one --for 1ms
[[ $out == *"the hold of $one (sleep) ended after "*': another process released it, '* ]] || fail "resumed meanwhile: $out"
asked '.method == "release" and .params.lease == 7' 'only the own hold is released'
answers '{"hold": {"tasks": 1, "lease": 7}, "release": {"tasks": 0, "held": true}}'
try "$GPREEMPT" suspend $one --for 1ms
[[ $out == *"$one (sleep) stays held by another command"* ]] || fail "held by another command: $out"
sleep 0.3 &
expect 0 '' 'it ends meanwhile' "$GPREEMPT" suspend $! --for 60s
[[ $out == *'has ended; it was held for'* ]] || fail "it ends meanwhile: $out"

# A daemon that does not say whether it holds: it is told to let go.
answers '{"hold": "bye", "release": {"tasks": 1}}'
expect 1 'gpreempt: the daemon has closed the connection' 'the daemon goes away while it holds' "$GPREEMPT" suspend $one
asked ".method == \"release\" and .params.target.pid == $one" 'what may be held is released'

# What a daemon cannot do is done here: and here is no GPU.
for args in "$one --no-daemon" "$one --queue 1" "$one --device 0" "$one --type save"; do
	# shellcheck disable=SC2086
	expect 4 'gpreempt: no GPU was found*' "suspend $args" "$GPREEMPT" suspend $args
done

# resume.
devices='"devices": {"devices": [{"device": 0, "name": "x"}]}'
mine="\"stats\": {\"daemon\": {\"pid\": $FAKE}}, \"release\": {\"tasks\": 1}"
answers "{$devices, $mine, \"tasks\": {\"tasks\": [{\"device\": 0, \"task\": 1, \"pid\": $one, \"held_by\": [\"user\"]}]}}"
expect 0 '' 'resume' "$GPREEMPT" resume $one
[[ $out == "released $one (sleep); python3 ($FAKE) schedules it again if it has a class" ]] || fail "resume said '$out'"
answers '{"release": {"error": ["EPERM", "it is held by root"]}}'
expect 3 'gpreempt: it is held by root' 'resume refused' "$GPREEMPT" resume $one
answers "{$devices, \"tasks\": {\"tasks\": [{\"device\": 0, \"task\": 1, \"pid\": $one, \"held_by\": [\"policy\"]}]}, \"release_all\": {\"tasks\": 0}}"
expect 0 '' 'resume --all' "$GPREEMPT" resume --all --json
holds '.released == []' 'what the policy holds is not released'
asked '.method == "release_all"' 'resume --all asks the daemon'
answers "{$devices, \"tasks\": {\"tasks\": [{\"device\": 0, \"task\": 1, \"pid\": $one, \"held_by\": [\"user\"]}]}, \"release_all\": {\"tasks\": 0}}"
expect 3 'gpreempt: 1 task held by other users stays held; root can release them' 'what others hold' "$GPREEMPT" resume --all
expect 0 '' 'resume --all --no-daemon' "$GPREEMPT" resume --all --no-daemon
[[ $out == 'nothing was held' ]] || fail "resume --all --no-daemon said '$out'"

# A daemon that is stuck is not waited for: at the first word, in the middle, or stopped.
for method in hello release_all; do
	answers "{$devices, \"$method\": \"stuck\"}"
	SECONDS=0
	expect 0 'gpreempt: *daemon*' "resume --all, stuck at $method" "$GPREEMPT" resume --all
	[[ $out == *'nothing was held' ]] || fail "stuck at $method: $out"
	((SECONDS < 15)) || fail "stuck at $method: it took $SECONDS s"
done
kill -STOP "$FAKE"
SECONDS=0
expect 0 'gpreempt: the daemon does not answer*' 'resume --all, the daemon is stopped' "$GPREEMPT" resume --all
((SECONDS < 15)) || fail "a stopped daemon: it took $SECONDS s"
expect 4 'gpreempt: the daemon does not answer*going on without*no GPU was found*' 'ps beside a stopped daemon' "$GPREEMPT" ps
kill -CONT "$FAKE"
finish
