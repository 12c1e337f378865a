#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt resume on the emulated NVIDIA driver: whatever became of the holder, the process runs.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 2

kill_holder() {
	kill_job "$JOB"
	is_held "$1" || fail 'released by the kill: this tests nothing'
}

# kill -9 of suspend, then resume --all. The process uses both GPUs, with a record for each.
start_load --gpus 2 --contexts 2
load=$LOAD
suspend_in_background killed "$load"
kill_holder "$load"
try "$GPREEMPT" doctor
[[ $out == *warning*undo*'2 records'*'2 of them of owners that have ended'*'resume --all'* ]] || fail "doctor: $out"
try "$GPREEMPT" ps --for 1ms --json
holds "map(select(.pid == $load)) | length == 2 and all(.[]; .state == \"held\" and .owner == $JOB)" \
	'ps says who held it'
expect 0 '' 'resume --all' "$GPREEMPT" resume --all
[[ $out == "released $load (rm-load); process $JOB held it and ended without releasing it" ]] || fail "resume --all said '$out'"
is_running "$load" || fail 'resume --all left a queue held'
makes_progress "$load" || fail 'no progress after resume --all'
[[ $(records) == 0 ]] || fail 'records stay after resume --all'
expect 0 '' 'resume --all with nothing to do' "$GPREEMPT" resume --all
[[ $out == 'nothing was held' ]] || fail "resume --all with nothing to do said '$out'"

# The same by pid; another process that is held stays so.
start_load
other=$LOAD
suspend_in_background killed "$load" "$other"
until_true is_held "$other" || fail 'the other is not held'
kill_holder "$load"
expect 0 '' 'resume PID' "$GPREEMPT" resume "$load"
is_running "$load" || fail 'resume PID left a queue held'
is_held "$other" || fail 'resume PID released another process'
# ... which a new holder takes over and gives back.
expect 0 '' 'suspend of what was left behind' "$GPREEMPT" suspend "$other" --for 100ms
is_running "$other" || fail 'the new holder did not release it'

# Without any record.
suspend_in_background killed "$load"
kill_holder "$load"
rm "$work/undo"
expect 0 '' 'resume --all without records' "$GPREEMPT" resume --all --json
holds ".released == [{\"pid\":$load,\"name\":\"rm-load\"}]" 'JSON of resume'
is_running "$load" || fail 'resume --all without records left a queue held'

# A holder that lives sees it, says so, and does not hold again.
suspend_in_background living "$load"
expect 0 '' 'resume of a living holder' "$GPREEMPT" resume "$load"
[[ $out == *", which $JOB (gpreempt) held" ]] || fail "resume said '$out'"
wait "$JOB" || fail "the living holder: exit $?"
said living 'was released by another process' || fail "the living holder said: $(<"$work/living")"
is_running "$load" || fail 'the living holder held it again'

# place_of NUMBER: where it stands in the undo file, as one of its 64-bit words.
place_of() {
	od -An -v -t u8 -w8 "$work/undo" | awk -v word="$1" '$1 == word { print 8 * (NR - 1) }'
}

# A record whose pid is another process by now: dropped, and that process is not touched.
suspend_in_background reused "$other"
kill_holder "$other"
start=$(awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$other/stat")
mapfile -t places < <(place_of "$start")
((${#places[@]} == 1)) || fail "${#places[@]} records with start time $start"
for place in "${places[@]}"; do
	printf '\x01' | dd of="$work/undo" bs=1 seek="$((place + 7))" conv=notrunc status=none
done
disabled=$(emu_count disable)
expect 0 '' 'resume of a pid that was reused' "$GPREEMPT" resume "$other"
[[ $out == *'1 record of processes that have ended was dropped'* ]] || fail "a reused pid: '$out'"
[[ $(records) == 0 ]] || fail 'the record of a reused pid stays'
(($(emu_count disable) > disabled)) || fail 'resume PID does not release what has no record'
is_running "$other" || fail 'resume PID left the process held'

# A record whose process ended.
start_load
gone=$LOAD
suspend_in_background gone "$gone"
kill_holder "$gone"
kill_job "$gone"
expect 0 '' 'resume of a process that ended' "$GPREEMPT" resume --all
[[ $out == *'1 record of'*dropped* ]] || fail "a process that ended: '$out'"
expect 4 "gpreempt: there is no process $gone" 'resume of nobody' "$GPREEMPT" resume "$gone"

# A driver that does not answer: the record stays, and the next try succeeds.
suspend_in_background stuck "$load"
kill_holder "$load"
emu 'fault disable 0x65 1000'
expect 1 "gpreempt: process $load cannot be put back: *" 'a driver that refuses to release' "$GPREEMPT" resume "$load"
[[ $(records) == 2 ]] || fail 'the record is gone although nothing was undone'
emu clear_faults
expect 0 '' 'the second try' "$GPREEMPT" resume "$load"
is_running "$load" || fail 'the second try left it held'

# A driver that does nothing and confirms it: it is said that only the driver confirms it.
emu_lies() {
	emu 'ignore disable 1000000'
	emu 'read_channels enabled'
}
suspend_in_background lied "$load"
kill_holder "$load"
emu_lies
expect 0 '' 'resume with a driver that lies' "$GPREEMPT" resume "$load"
[[ $out == *'(only the driver confirms it, not every queue was seen to work since)' ]] || fail "a release that is a lie: '$out'"
is_held "$load" || fail 'it was released: this tests nothing'
emu clear_faults
expect 0 '' 'resume with an honest driver' "$GPREEMPT" resume "$load"
[[ $out == "released $load (rm-load)" ]] || fail "work confirms it: '$out'"
suspend_in_background lied "$load"
kill_holder "$load"
emu_lies
"$BUILD/gpreempt-keeper" --once >"$work/keeper" 2>&1 || fail "keeper --once: exit $?"
said keeper "undone pid=$load .* confirmed_by=driver" || fail "the keeper: $(<"$work/keeper")"
emu clear_faults
"$GPREEMPT" resume "$load" >/dev/null || fail 'resume after the keeper'
ends_right "$load"
ends_right "$other"
finish
