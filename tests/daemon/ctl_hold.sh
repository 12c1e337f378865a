#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt suspend and resume with a real daemon: held until a resume, by whom ever, whatever
# becomes of the daemon; what the policy holds is not touched.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
begin_daemon --policy priority
load one --kernel 2ms
one=$LOAD
load two --kernel 2ms
two=$LOAD

expect 0 '' 'suspend' "$GPREEMPT" suspend "$one"
is "$one" '.state == "suspended" and .held_by == ["user"]'
stands_still "$one" || fail 'a suspended program goes on'
goes_on "$two" || fail 'another program does not'
expect 0 '' 'resume of a program that is not held' "$GPREEMPT" resume "$two"
[[ $out != *released* ]] || fail "released what was not held: $out"
expect 0 '' 'resume' "$GPREEMPT" resume "$one"
[[ $out == "released $one (gpreempt); gpreemptd ($DAEMON) schedules it again if it has a class" ]] || fail "resume said '$out'"
goes_on "$one" || fail 'it does not go on after a resume'

expect 0 '' 'suspend --for' "$GPREEMPT" suspend "$one" "$two" --for 300ms --json
[[ $(jq -r .event "$work/out" | paste -sd' ') == 'held held released released' ]] || fail "suspend --for: $out"
for pid in "$one" "$two"; do
	goes_on "$pid" || fail "$pid does not go on after suspend --for"
done

# Each command ends its own hold only, and says what became of it.
events() { # FILE
	jq -r .event "$work/$1" | paste -sd' '
}
suspend_for() { # NAME TIME: in the background, until it holds $one; sets TIMED
	"$GPREEMPT" suspend "$one" --for "$2" --json >"$work/$1" 2>"$work/$1.err" &
	TIMED=$!
	until_true grep -q held "$work/$1" || fail "suspend --for $2: $(<"$work/$1.err")"
}
suspend_for overtaken 2s
overtaken=$TIMED
expect 0 '' 'a hold without a time beside one' "$GPREEMPT" suspend "$one"
wait "$overtaken" || fail "suspend --for beside another hold: $(<"$work/overtaken.err")"
[[ $(events overtaken) == 'held kept' ]] || fail "beside another hold: $(<"$work/overtaken")"
is "$one" '.state == "suspended"'
expect 0 '' 'resume of both' "$GPREEMPT" resume "$one"
[[ $out == released* ]] || fail "resume of both: $out"
suspend_for resumed 1m
expect 0 '' 'resume of a timed hold' "$GPREEMPT" resume "$one"
[[ $out == released* ]] || fail "resume of a timed hold: $out"
expect 0 '' 'a later hold' "$GPREEMPT" suspend "$one"
wait "$TIMED" || fail "suspend --for that was resumed: $(<"$work/resumed.err")"
[[ $(events resumed) == 'held resumed' ]] || fail "after a resume: $(<"$work/resumed")"
is "$one" '.state == "suspended"'
expect 0 '' 'resume of the later hold' "$GPREEMPT" resume "$one"
[[ $out == released* ]] || fail "resume of the later hold: $out"
suspend_for killed 1m
kill_job "$TIMED"
is "$one" '.state == "suspended"'
until_true said daemon 'process.lease-expired' || fail 'the hold of a killed client has no end'
until_true eval "is \$one '.state != \"suspended\"'"
goes_on "$one" || fail 'it does not go on when the client was killed'

# All, but not what the policy holds: of three busy jobs beside a service two wait for their turn.
"$GPREEMPT" suspend "$two" >/dev/null
load serve --kernel 200us --every 5ms
"$GPREEMPT" set "$LOAD" --class lc >/dev/null || fail 'cannot set the service'
load three --kernel 2ms
"$GPREEMPT" set "$one" "$two" "$LOAD" --class be >/dev/null || fail 'cannot set the jobs'
until_true eval "\"\$GPREEMPT\" ps --json | jq -e 'any(.[]; .held_by == [\"policy\"])' >/dev/null" ||
	fail "the policy holds nobody: $("$GPREEMPT" ps)"
before=$("$GPREEMPT" stats --for 0s --json | jq '.devices[0].stats.undone')
expect 0 '' 'resume --all' "$GPREEMPT" resume --all --json
holds "[.released[].pid] == [$two]" 'resume --all releases what was held by hand, and only that'
[[ $("$GPREEMPT" stats --for 0s --json | jq '.devices[0].stats.undone') == "$before" ]] ||
	fail 'resume --all undid what the policy did'
"$GPREEMPT" ps --json | jq -e 'all(.[]; .held_by != ["user"])' >/dev/null || fail 'somebody is still held by hand'
for pid in "$one" "$two" "$LOAD"; do
	goes_on "$pid" || fail "$pid does not get its turn"
done

# A process that ended while it was held: its record may stay for some seconds.
load ended --kernel 2ms
"$GPREEMPT" suspend "$LOAD" >/dev/null
kill_job "$LOAD"
expect 4 "gpreempt: *process $LOAD*" 'resume of a process that was killed' "$GPREEMPT" resume "$LOAD"
[[ ! $out ]] || fail "of a process that was killed, resume said '$out'"
load ended --kernel 2ms
"$GPREEMPT" suspend "$LOAD" >/dev/null
kill_job "$LOAD"
expect 0 '' 'resume --all after the held process was killed' "$GPREEMPT" resume --all

# A daemon that is stopped: everything runs all the same.
"$GPREEMPT" suspend "$one" >/dev/null
kill -STOP "$DAEMON"
SECONDS=0
expect 0 'gpreempt: the daemon does not answer*' 'resume --all beside a stopped daemon' "$GPREEMPT" resume --all
((SECONDS < 20)) || fail "it took $SECONDS s"
[[ $out == *"released $one "* ]] || fail "resume --all beside a stopped daemon said '$out'"
"$GPREEMPT" ps --no-daemon --json | jq -e "any(.[]; .pid == $one and .state == \"held\")" >/dev/null &&
	fail 'it is held after resume --all beside a stopped daemon'
kill -CONT "$DAEMON"
# What a person resumed stays so; the daemon knows of it as soon as it looks again.
until_true said daemon 'process.resumed' || fail "the daemon did not notice: $(<"$work/daemon")"
goes_on "$one" || fail 'it does not run when the daemon goes on'
"$GPREEMPT" ps --json | jq -e "any(.[]; .pid == $one and .state == \"suspended\")" >/dev/null &&
	fail 'the daemon took the hold up again'

# One that was killed.
suspend_for orphaned 1m
"$GPREEMPT" suspend "$one" >/dev/null
kill_job "$DAEMON"
wait "$TIMED" && fail "suspend --for does not fail when the daemon is killed: $(<"$work/orphaned")"
[[ $(<"$work/orphaned.err") == *'the hold ends with the daemon'* ]] ||
	fail "suspend --for without its daemon said: $(<"$work/orphaned.err")"
expect 0 '' 'resume --all after the daemon was killed' "$GPREEMPT" resume --all
"$GPREEMPT" ps --no-daemon --json | jq -e "any(.[]; .pid == $one and .state == \"held\")" >/dev/null &&
	fail 'it is still held after the daemon was killed'
start_daemon
goes_on "$one" || fail 'it does not run after a restart'

# No work was lost in all that.
end_job TERM "$one" || fail "the program failed: $(<"$work/one")"
grep -q checksum "$work/one" || fail "no result: $(<"$work/one")"
finish
