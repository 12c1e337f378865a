#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A driver that fails, or confirms what it does not do: what the daemon answers, shows and logs is
# what became of the process.
set -u
# shellcheck source=tests/daemon/amd.bash
. "$SRC/tests/daemon/amd.bash"
begin_amd --gpu mi250
start_kfd_load --queues 2
load=$LOAD

shown() { # STATE
	[[ $("$GPREEMPT" ps --json | jq -r ".[] | select(.pid == $load) | .state") == "$1" ]]
}
stat() { # NAME: a counter of the device
	"$GPREEMPT" stats --json | jq "[.. | objects | select(has(\"$1\")) | .$1][0]"
}

# After a hold of an unmanaged process the daemon has no claim on it: no debug session either.
is_free() {
	[[ $(state ".processes[] | select(.process == $load) | .debugged") == false ]]
}
for rule in old new; do
	kfd_emu "rule $rule"
	start_daemon --policy none
	for _ in 1 2 3; do
		expect 0 '' 'suspend of an unmanaged process' "$GPREEMPT" suspend "$load" --for 20ms
		until_true is_free || fail "rule $rule: the daemon stays attached"
		expect 0 '' 'a hold without the daemon after it' "$GPREEMPT" suspend "$load" --no-daemon --for 20ms
	done
	expect 0 '' 'resume --all after it' "$GPREEMPT" resume --all
	[[ $out == 'nothing was held' ]] || fail "rule $rule: resume --all: $out"
	expect 0 '' 'set --class be' "$GPREEMPT" set "$load" --class be
	until_true is_debugged "$load" || fail "rule $rule: no session for a process with a class"
	expect 0 '' 'set --class unmanaged' "$GPREEMPT" set "$load" --class unmanaged
	until_true is_free || fail "rule $rule: the daemon stays attached to a process without a class"
	end_daemon
done
start_daemon --policy none

# The hold is confirmed, and the program goes on.
kfd_emu 'ignore suspend_queues 2 100000'
holds=$(stat holds)
try "$GPREEMPT" suspend "$load" --for 100ms
kfd_emu clear_faults
[[ $status == 1 && $out != *held* && $err == *'goes on working'* ]] ||
	fail "a suspend without an effect: exit $status, '$out', '$err'"
[[ $(stat holds) == "$holds" ]] || fail 'a suspend without an effect counts as a hold'
until_true is_running "$load" || fail 'held by a suspend that failed'

# The same of a program that does nothing at first: "held" was said, by the driver only, before its
# work shows the contrary. Without and with the daemon, noticed at the end and at a renewal.
start_kfd_load --period 150000
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $("$GPREEMPT" ps --json | jq ".[] | select(.pid == $LOAD) | .pid") ]]' ||
	fail 'the daemon does not see the program'
kfd_emu 'ignore suspend_queues 1 100000'
for how in '--for 400ms' '--for 1s' '--for 400ms --no-daemon'; do
	# shellcheck disable=SC2086
	try "$GPREEMPT" suspend "$LOAD" $how
	[[ $status == 1 && $out == "held $LOAD "*' (only the driver confirms it'*"released $LOAD "*', which was not held all the time'* &&
		$err == "gpreempt: process $LOAD "*' although the driver said that it was held' ]] ||
		fail "a hold that is disproved later, $how: exit $status, '$out', '$err'"
	one_sentence "$how"
done
try "$GPREEMPT" suspend "$LOAD" --for 1s --json
[[ $status == 1 ]] || fail "JSON of a hold that is disproved later: exit $status, '$out', '$err'"
jq -es 'map(.event) == ["held","again","released"] and (map(.worked) == [null,true,true]) and .[2].again > 0' \
	"$work/out" >/dev/null || fail "JSON of a hold that is disproved later: $out"
kfd_emu clear_faults
until_true is_running "$LOAD" || fail 'held by a suspend that was disproved'
stop_kfd_load "$LOAD"

# The release times out once: it is repeated, and the log says so.
expect 0 '' 'suspend' "$GPREEMPT" suspend "$load"
kfd_emu 'preempt_timeout 1'
expect 0 '' 'a release that times out once' "$GPREEMPT" resume "$load"
[[ $out == "released $load "* ]] || fail "a release that timed out once: '$out'"
is_running "$load" || fail 'it says released, and the program is held'
makes_progress "$load" || fail 'no progress after a release that timed out once'
said daemon 'warn action.failed .* action=release ' || fail "no log line: $(<"$work/daemon")"

# The release fails for ever: no answer says that it was released, or that nothing was held.
in_background events "$GPREEMPT" events --json
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $("$GPREEMPT" stats --json | jq .daemon.clients) -ge 2 ]]' || fail 'no subscription'
releases=$(stat releases)
kfd_emu 'errno resume_queues 5 100000'
kfd_emu 'errno disable 5 100000'
try "$GPREEMPT" suspend "$load" --for 100ms
[[ $status == 1 && $out == "held $load "* && $out != *released* && $err == *"process $load may still be held"* ]] ||
	fail "a release that fails for ever: exit $status, '$out', '$err'"
is_held "$load" || fail 'released: this tests nothing'
! shown active || fail 'ps says that it works'
[[ $(stat releases) == "$releases" ]] || fail 'a release that failed is counted'
until_true said events '"event": *"action_failed"' || fail "no event: $(<"$work/events")"
said daemon 'warn session.ended-to-release pid=' || fail "no log line: $(<"$work/daemon")"
said daemon "error session.not-ended pid=$load" || fail "no log line: $(<"$work/daemon")"
try "$GPREEMPT" resume "$load"
[[ $status == 1 && $out == '' ]] || fail "resume: exit $status, '$out', '$err'"
kfd_emu clear_faults
until_true is_running "$load" || fail 'it stays held when the driver answers again'
makes_progress "$load" || fail 'no progress when the driver answers again'
end_daemon
ends_right "$load"
finish
