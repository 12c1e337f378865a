#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the units may do is enough for other users' programs on the emulated AMD driver.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi300x
chmod 755 "$KFD_TMP"
KIND=amd
# shellcheck source=tests/daemon/capabilities.bash
. "$SRC/tests/daemon/capabilities.bash"

strangers "$KFD_LOAD"
KFD_LOAD=$STRANGERS
start_kfd_load --queues 2 || fail "no load: $(<"$KFD_TMP/$LOAD")"
within_the_units "$LOAD"

# They are enough to see its evictions. A release meanwhile is no failure and keeps the session.
start_daemon
in_background events "$GPREEMPT" events --json --kind evicted,restored
EVENTS=$JOB
hold "$LOAD"
kfd_emu evict "$LOAD"
until_true said daemon "^warn task.evicted pid=$LOAD .*cause=memory" || fail "not told: $(<"$work/daemon")"

# task JQ-EXPRESSION: true of the task in the daemon's ps --json.
task() {
	"$GPREEMPT" ps --json | jq -e --argjson pid "$LOAD" ".[] | select(.pid == \$pid) | $1" >/dev/null
}
by_driver='evicted by the driver * ago: it runs when the driver restores it'
until_true task '.state == "suspended" and .evicted_by == "driver"' || fail "ps, held: $("$GPREEMPT" ps --json)"
expect 0 '' 'resume of an evicted program' "$GPREEMPT" resume "$LOAD"
# shellcheck disable=SC2154,SC2053 # expect sets it; it is a pattern
[[ $out == "released $LOAD "*"; "$by_driver' (only the driver confirms it, '* ]] || fail "resume says: $out"
until_true task '.state == "evicted" and .evicted_by == "driver" and .evicted_ns > 0 and .held_by == []' ||
	fail "ps, released: $("$GPREEMPT" ps --json)"
expect 0 '' 'ps' "$GPREEMPT" ps
[[ $out == *'EVICTED BY'*' evicted '*' driver '* ]] || fail "ps says: $out"
expect 0 '' 'suspend of an evicted program' "$GPREEMPT" suspend "$LOAD" --for 50ms
[[ ${out##*$'\n'} == "released $LOAD "*"; "$by_driver ]] || fail "suspend says: $out"
expect 0 '' 'suspend of an evicted program' "$GPREEMPT" suspend "$LOAD"
expect 0 '' 'resume --all' "$GPREEMPT" resume --all --json
holds '.released[0].evicted_us > 0' 'resume --all --json'
until_true said events '"event": *"evicted"' || fail "events: $(<"$work/events")"
sleep 0.6 # longer than the 250 ms after which a release without an effect is doubted
! said daemon 'session.ended-to-release\|action.failed' || fail "a failure: $(<"$work/daemon")"
kfd_emu restore "$LOAD"
until_true said daemon "^warn task.restored pid=$LOAD " || fail "not told: $(<"$work/daemon")"
goes_on "$LOAD" 'the driver'
until_true task '.state == "active" and (has("evicted_by") | not)' || fail "ps, restored: $("$GPREEMPT" ps --json)"
until_true said events '"event": *"restored"' || fail "events: $(<"$work/events")"
end_job INT "$EVENTS"
jq -se "map([.event, .pid, .evicted_by]) == [[\"evicted\", $LOAD, \"driver\"], [\"restored\", $LOAD, null]]" \
	"$work/events" >/dev/null || fail "events: $(<"$work/events")"

# A reset of the GPU takes it off for good, also from a program that was evicted before.
kfd_emu evict "$LOAD"
until_true task '.evicted_by == "driver"' || fail "ps, evicted again: $("$GPREEMPT" ps --json)"
for state in begin end; do
	kfd_emu reset 0 "$state"
	until_true said daemon "^error device.reset .*state=${state/in/un}" || fail "reset: $(<"$work/daemon")"
done
until_true task '.state == "evicted" and .evicted_by == "reset"' || fail "ps, after a reset: $("$GPREEMPT" ps --json)"
expect 0 '' 'suspend after a reset' "$GPREEMPT" suspend "$LOAD" --for 50ms
[[ $out == *'; evicted by a GPU reset '*' ago: it runs only after a restart of the program' ]] || fail "suspend says: $out"
kill_daemon
finish
