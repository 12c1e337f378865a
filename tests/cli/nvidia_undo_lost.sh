#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The undo file is truncated or removed while a command without a daemon holds processes: nothing
# stays held, and no slice stays changed.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1
start_load "$@"
one=$LOAD
start_load "$@"
two=$LOAD
slices() {
	jq -c "[.clients[].groups[] | select((.pid == $one or .pid == $two) and .engine == 1) | .slice_us] | unique" "$EMU/state"
}
own=$(slices)

for loss in 'truncate -s 0' 'rm -f'; do
	in_background suspended "$GPREEMPT" suspend "$one"
	holder=$JOB
	until_true said suspended '^held' || fail "$loss: not held: $(<"$work/suspended")"
	$loss "$GPREEMPT_UNDO"
	wait "$holder"
	code=$?
	[[ $code == 1 ]] || fail "$loss: suspend ends with $code: $(<"$work/suspended")"
	said suspended '^released' || fail "$loss: not released: $(<"$work/suspended")"
	grep -q 'undo file was removed, replaced or truncated' "$work/suspended" || fail "$loss: $(<"$work/suspended")"
	is_running "$one" || fail "$loss: it stays held"

	in_background scheduled "$GPREEMPT" schedule --be "$one" --be "$two" --policy rr:quantum=30000 --for 3s
	scheduler=$JOB
	until_true said scheduled '^ready' || fail "$loss: no schedule: $(<"$work/scheduled")"
	$loss "$GPREEMPT_UNDO"
	wait "$scheduler" || fail "$loss: schedule ends with $?: $(<"$work/scheduled")"
	for pid in $one $two; do
		is_running "$pid" || fail "$loss: $pid stays held"
	done
	[[ $(slices) == "$own" ]] || fail "$loss: slices $(slices) instead of $own"
done

# No new file can be made: its folder is a file now.
mkdir "$work/folder"
GPREEMPT_UNDO=$work/folder/undo in_background scheduled "$GPREEMPT" schedule --be "$one" --be "$two" --policy rr:quantum=30000 --for 5s
until_true said scheduled '^ready' || fail "no folder: no schedule: $(<"$work/scheduled")"
until rm -r "$work/folder" && touch "$work/folder" && [[ -f $work/folder ]]; do :; done
wait "$JOB"
code=$?
[[ $code == 1 ]] || fail "no folder: schedule ends with $code: $(<"$work/scheduled")"
said scheduled 'the undo file was lost, .*; so it ends early: ' || fail "no folder: $(<"$work/scheduled")"
for pid in $one $two; do
	is_running "$pid" || fail "no folder: $pid stays held"
done
[[ $(slices) == "$own" ]] || fail "no folder: slices $(slices) instead of $own"

# bench_without LOSS ARGS...: bench releases the process and ends, as suspend does.
bench_without() {
	local loss=$1
	shift
	in_background bench timeout 20 "$GPREEMPT" bench "$one" "$@"
	# shellcheck disable=SC2016 # until_true expands it
	until_true eval '[[ $(records) == 1 ]]' || fail "$loss: bench holds nothing: $(<"$work/bench")"
	$loss "$GPREEMPT_UNDO"
	wait "$JOB"
	code=$?
	[[ $code == 1 ]] || fail "$loss: bench ends with $code: $(<"$work/bench")"
	said bench 'the undo file was removed, replaced or truncated' || fail "$loss: bench: $(<"$work/bench")"
	! said bench 'another process' || fail "$loss: bench blames another process: $(<"$work/bench")"
	is_running "$one" || fail "$loss: bench leaves it held"
}
bench_without 'truncate -s 0' -n 100000
bench_without 'rm -f' -n 100000
bench_without 'rm -f' -n 1 --hold-ms 0 --online 'exec sleep 60'
for pid in $one $two; do
	ends_right "$pid"
done
finish
