#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nothing is left behind: what could not be put back keeps its record, a record has one living
# holder, and what a dead one left is put back before anything else is done.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1

slice_of() {
	jq "[.clients[].groups[] | select(.pid == $1 and .engine == 1) | .slice_us][0]" "$EMU/state"
}
is_back() {
	for pid; do
		[[ $(slice_of "$pid") == 2048 ]] && is_running "$pid" || return 1
	done
}
schedule_in_background() { # NAME ARGS...
	local name=$1
	shift
	in_background "$name" "$GPREEMPT" schedule "$@"
	until_true said "$name" '^ready$' || fail "never ready: $(<"$work/$name")"
}

start_load --kernel-us 100 --period-us 3000
service=$LOAD
start_load --kernel-us 5000
train=$LOAD
start_load --kernel-us 5000
other=$LOAD

# The driver refuses while it ends: it says so, and the records stay until it can be done.
schedule_in_background refused --lc "$service" --be "$train" --be "$other"
emu fault disable 0x65 100000
emu fault set_timeslice 0x65 100000
end_job TERM "$JOB"
[[ $? == 1 ]] || fail 'a put-back that failed is called done'
[[ $(records) -ge 1 ]] || fail 'no record of what was not put back'
emu clear_faults
expect 0 '' 'resume --all after the faults' "$GPREEMPT" resume --all
is_back "$service" "$train" "$other" || fail 'resume --all left something'
[[ $(records) == 0 ]] || fail 'records stay after resume --all'

# A channel that goes while a process is released: not taken for the end of the process.
suspend_in_background vanished "$train"
emu fault disable 0x21 2
end_job INT "$JOB"
if ! is_running "$train"; then
	[[ $(records) == 1 ]] || fail 'held, and no record'
	try "$GPREEMPT" resume "$train"
	is_running "$train" || fail 'resume does not release it'
fi
emu clear_faults
try "$GPREEMPT" resume --all

# suspend after a scheduler was killed gives the process what it had before both.
schedule_in_background killed --lc "$service" --be "$train"
kill_job "$JOB"
[[ $(slice_of "$service") != 2048 ]] || fail 'put back by the kill: this tests nothing'
expect 0 '' 'suspend after a killed scheduler' "$GPREEMPT" suspend "$service" --for 100ms
is_back "$service" "$train" || fail "slices $(slice_of "$service") $(slice_of "$train")"

# Two schedulers: the second is told who has them.
schedule_in_background first --lc "$service" --be "$train"
first=$JOB
try "$GPREEMPT" schedule --lc "$service" --be "$train" --for 1s
exits 1 "gpreempt: process $service is already held or scheduled by process $first (gpreempt)*" 'scheduled twice'
end_job TERM "$first" || fail "the first: exit $?"
is_back "$service" "$train" || fail 'not as it was'

# A child that shares the file stands for the same task as its parent.
start_load --fork --kernel-us 5000
parent=$LOAD
child=$(pgrep -P "$parent" | head -n 1)
if [[ $child ]]; then
	schedule_in_background by_child --lc "$service" --be "$child"
	[[ $(slice_of "$parent") != 2048 || $(slice_of "$service") != 2048 ]] ||
		fail 'named by its child, nothing is scheduled'
	end_job TERM "$JOB" || fail "by its child: exit $?"
	is_back "$parent" "$service" || fail 'not as it was, named by its child'
	kill -9 "$child" 2>/dev/null
fi
for pid in "$service" "$train" "$other"; do
	ends_right "$pid"
done
# A tiny slice without a record: everything that looks for changed processes sees it. Another program
# that works would keep the slice from being tiny.
kill -9 "$parent" 2>/dev/null
start_load --kernel-us 100 --period-us 3000
service=$LOAD
start_load --kernel-us 5000
train=$LOAD
schedule_in_background lost --lc "$service" --be "$train"
kill_job "$JOB"
rm -f "$GPREEMPT_UNDO"
[[ $(slice_of "$train") -le 50 ]] || fail 'no tiny slice: this tests nothing'
try "$GPREEMPT" ps
[[ $out == *"$train"* ]] || fail 'ps does not see it'
try "$GPREEMPT" doctor
[[ $out == *"$train"* ]] || fail 'doctor does not name the tiny slice'
expect 0 '' 'resume --all of a tiny slice' "$GPREEMPT" resume --all
[[ $(slice_of "$train") == 2048 ]] || fail "resume --all leaves $(slice_of "$train") us"
finish
