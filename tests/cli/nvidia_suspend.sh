#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt suspend on the emulated NVIDIA driver: what is held stands still, is released in every
# way that suspend can end, and has the right result afterwards.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1

# Ctrl-C, SIGTERM and SIGHUP release.
start_load
load=$LOAD
for signal in INT TERM HUP; do
	suspend_in_background by_signal "$load"
	stands_still "$load" || fail 'a held process makes progress'
	[[ $(records) == 1 ]] || fail 'no record while it is held'
	kill -$signal "$JOB"
	wait "$JOB" || fail "SIG$signal: exit $?"
	said by_signal '^held [0-9]* (rm-load) on .* #0 in [0-9.]* [mun]*s, until Ctrl-C$' || fail "$(<"$work/by_signal")"
	said by_signal '^released [0-9]* (rm-load) on .* after' || fail "no release: $(<"$work/by_signal")"
	makes_progress "$load" || fail "not released by SIG$signal"
	[[ $(records) == 0 ]] || fail 'the record stays'
done
# Whoever reads the output may go away: the process is not left behind.
in_background closed bash -c "\"\$GPREEMPT\" suspend $load --for 400ms | head -c 1"
until_true is_held "$load" || fail 'not held behind a pipe'
wait "$JOB"
until_true is_running "$load" || fail 'left behind when the reader had gone'
ends_right "$load"

# --for, and JSON events.
start_load
load=$LOAD
expect 0 '' 'suspend --for' "$GPREEMPT" suspend "$load" --for 200ms --json
jq -es 'map(.event) == ["held","released"] and (.[1].held_us > 190000 and .[1].held_us < 2000000)
	and all(.[]; .pid == '"$load"')' "$work/out" >/dev/null || fail "events: $out"
makes_progress "$load" || fail 'not released after --for'

# A second holder is refused, and the first is not disturbed.
suspend_in_background first "$load"
first=$JOB
try "$GPREEMPT" suspend "$load"
exits 1 "gpreempt: process $load is already held or scheduled by process $first (gpreempt)*" 'held twice'
is_held "$load" || fail 'the first hold is gone'
expect 1 "gpreempt: process $load is already held or scheduled by*" 'bench of a held process' "$GPREEMPT" bench "$load"
# A command that does not see our record releases it: held again, and the command says so.
GPREEMPT_UNDO=$work/other expect 1 "gpreempt: process $load (rm-load) was released, and is held again by a program*" \
	'resume with another undo file' "$GPREEMPT" resume "$load"
until_true said first 'holding it again' || fail "not held again: $(<"$work/first")"
until_true is_held "$load" || fail 'not held again'
end_job INT "$first"

# It is released while the holder is stopped, and cannot be held again: nothing says that it was.
suspend_in_background refused "$load"
kill -STOP "$JOB"
GPREEMPT_UNDO=$work/other expect 0 '' 'resume beside a stopped holder' "$GPREEMPT" resume "$load"
emu 'fault disable 0x65 1000'
end_job CONT "$JOB" && fail 'not held again: exit code 0'
emu clear_faults
said refused 'holding it again' || fail "not held again: $(<"$work/refused")"
said refused "released $load .*, which was not held all the time$" || fail "not held again: $(<"$work/refused")"
is_running "$load" || fail 'held: this tests nothing'
ends_right "$load"

# A process that grows a context while it is held has that one held, too.
start_load --grow 700
load=$LOAD
suspend_in_background grown "$load"
until_true eval "[[ \$(groups_of $load) == 2 ]]" || fail 'the load did not grow'
until_true is_held "$load" || fail 'the new queue runs'
end_job INT "$JOB" || fail 'held again: exit code'
said grown 'holding it again' || fail "does not say that it held it again: $(<"$work/grown")"
is_running "$load" || fail 'the new queue is left held'
ends_right "$load"

# The target ends meanwhile.
start_load
load=$LOAD
suspend_in_background ended "$load"
kill_job "$load"
wait "$JOB" || fail "the target ended: exit $?"
said ended "^$load (rm-load) .* has ended" || fail "does not say that it ended: $(<"$work/ended")"
[[ $(records) == 0 ]] || fail 'the record of a process that ended stays'

# It ends while the hold is being made: nothing was held.
start_load
load=$LOAD
emu "latency disable 300ms"
emu "kill_on disable $load"
expect 4 "gpreempt: process $load has ended" 'a target that ends during the hold' \
	"$GPREEMPT" suspend "$load" --for 1m
[[ ! $out ]] || fail "a target that ends during the hold: $out"
emu "latency disable 0"
[[ $(records) == 0 ]] || fail 'the record of a process that ended during the hold stays'

# A child that shares its queues lives on: they stay held, and are released.
start_load --fork
load=$LOAD
child=$(awk '/^child/ { print $2 }' "$EMU_TMP/$load")
jobs_started+=("$child")
suspend_in_background forked "$load"
kill_job "$load"
sleep 0.3
kill -0 "$JOB" || fail "ended with the parent: $(<"$work/forked")"
[[ $(held "$load") == 1 ]] || fail 'the queues that the child has run' # by who made them
end_job INT "$JOB" || fail "a fork: exit $?"
said forked "^released $child (rm-load)" || fail "a fork: $(<"$work/forked")"
[[ $(held "$load") == 0 ]] || fail 'the queues that the child has are left held'
kill "$child"

# What the driver refuses is a failure, and nothing stays held.
start_load
load=$LOAD
start_load
other=$LOAD
emu 'fault disable 0x65 3'
expect 1 'gpreempt: cannot hold * (driver code 0x65)*' 'a driver that refuses' "$GPREEMPT" suspend "$load" "$other" --for 100ms
until_true is_running "$load" || fail 'the first stays held'
until_true is_running "$other" || fail 'the second stays held'
ends_right "$load"
ends_right "$other"
finish
