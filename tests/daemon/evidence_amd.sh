#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A GPU whose driver does not count waves: holds by the daemon say, as those of gpreempt suspend do,
# that only the driver confirms them.
set -u
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu navi31
export GPREEMPT_RUN=$work/run
mkdir -m 0755 "$GPREEMPT_RUN"
start_kfd_load --queues 1
load=$LOAD
only='(only the driver confirms it, no work was seen to stand still)'
expect 0 '' 'a hold without the daemon' "$GPREEMPT" suspend "$load" --for 50ms
[[ $out == "held $load "*" $only"$'\n'* ]] || fail "without the daemon: $out"

export GPREEMPT_SOCKET=$work/run/gpreemptd.sock
in_background daemon "$GPREEMPTD" --gpu amd --policy none
daemon=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
in_background events "$GPREEMPT" events --json --kind held,released
events=$JOB
sleep 0.3
expect 0 '' 'a hold by the daemon' "$GPREEMPT" suspend "$load" --for 50ms
[[ $out == "held $load "*", for 50.0 ms $only"$'\n'"released $load "* ]] || fail "by the daemon: $out"
[[ ${out##*released} != *"(only"* ]] || fail "the work after the release is seen: $out"
until_true said events '"released"' || fail "events: $(<"$work/events")"
[[ $(jq -r 'select(.event == "held").confirmed_by' "$work/events") == driver ]] || fail "events: $(<"$work/events")"
kill_job "$events"
expect 0 '' 'JSON' "$GPREEMPT" suspend "$load" --json
[[ $(jq -r .confirmed_by <<<"$out") == driver ]] || fail "JSON: $out"
[[ $("$GPREEMPT" ps --json | jq -r '.[0].confirmed_by') == driver ]] || fail "ps: $("$GPREEMPT" ps --json)"
expect 0 '' 'ps' "$GPREEMPT" ps
[[ $out == *$'\n'"process $load ("*'): only the driver confirms its last hold or release; '* ]] || fail "the table: $out"
expect 0 '' 'resume' "$GPREEMPT" resume "$load"
[[ $out != *confirm* ]] || fail "resume: $out"
[[ $("$GPREEMPT" ps) != *'only the driver'* ]] || fail "the table after the release: $("$GPREEMPT" ps)"
makes_progress "$load" || fail 'no progress'

# A queue without packets stays suspended after a RESUME that does nothing and is confirmed. The
# release is asked for again by each resume, and ends the session.
start_kfd_load --queues 1 --idle
# shellcheck disable=SC2016 # until_true expands it
until_true eval '"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $LOAD)" >/dev/null' || fail 'the daemon does not see the idle program'
expect 0 '' 'a class' "$GPREEMPT" set "$LOAD" --class be
for again in "$LOAD" --all '--all --no-daemon'; do
	expect 0 '' 'a hold of an idle program' "$GPREEMPT" suspend "$LOAD"
	kfd_emu 'ignore resume_queues 1 1'
	expect 0 '' 'a release that is a lie' "$GPREEMPT" resume "$LOAD"
	[[ $out == "released $LOAD "*'(only the driver confirms it, not every queue was seen to work since)' ]] || fail "a lie: $out"
	is_held "$LOAD" || fail 'released: this tests nothing'
	# shellcheck disable=SC2086
	expect 0 '' "resume $again after a lie" "$GPREEMPT" resume $again
	[[ $out == *"released $LOAD "*'(only the driver confirms it, '* ]] || fail "resume $again: $out"
	is_running "$LOAD" || fail "resume $again: held for good"
done
stop_kfd_load "$LOAD"
end_job TERM "$daemon" || fail "the daemon: exit $?"
ends_right "$load"
finish
