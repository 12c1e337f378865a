#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The counters of gpreempt schedule at its end: holds and releases are equal. This includes the hold
# that is in force when the command ends and puts the process back.
set -u
# shellcheck source=tests/cli/simgpu.bash
. "$SRC/tests/cli/simgpu.bash"
start_simgpu --device mi300x --devices 2 # has no time slices
start_simload one --kernel 2ms
one=$LOAD
start_simload two --kernel 2ms
two=$LOAD
start_simload three --kernel 2ms --device 1

# Of two jobs that take turns one is always held.
expect 0 '' schedule "$GPREEMPT" schedule --policy rr --be "$one" --be "$two" --be "$LOAD" --for 1s --json
holds 'length == 2 and .[0].holds > 1 and .[0].holds == .[0].releases' 'each hold has its release'
holds '.[1].holds == 0 and .[1].releases == 0' 'no hold, no release'
for pid in "$one" "$two"; do
	is_loose "$pid" || fail "$pid is held after schedule"
done
expect 0 '' 'schedule as text' "$GPREEMPT" schedule --policy rr --be "$one" --be "$two" --for 300ms
[[ $out =~ ([0-9]+)\ holds,\ ([0-9]+)\ releases && ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]] || fail "it says: $out"

# The release of a process that has ended cannot be confirmed.
in_background killed "$GPREEMPT" schedule --policy rr --be "$one" --be "$two" --for 1m --json
sleep 1
kill_job "$one"
kill_job "$two"
wait "$JOB" || fail "schedule ends with $?: $(<"$work/killed")"
jq -e '.[0].releases <= .[0].holds' "$work/killed" >/dev/null || fail "more releases than holds: $(<"$work/killed")"
finish
