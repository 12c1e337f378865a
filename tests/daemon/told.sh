#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What users are told is true: state and share of the last second, the end of a claim, a process that
# does not exist, a daemon that was killed, events, and what doctor knows of processes.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
begin_daemon --policy fair
load large
large=$LOAD
load small
small=$LOAD
"$GPREEMPT" set "$large" --class be --weight 1600 >/dev/null || fail 'set'
"$GPREEMPT" set "$small" --class be --weight 100 >/dev/null || fail 'set'

# A job with most of the GPU is not shown as held because it was at one moment.
is "$large" '.gpu_pct > 60'
is "$small" '.gpu_pct < 40 and .state == "held"'
held=0
for _ in {1..40}; do
	[[ $(task "$large" .state) != '"held"' ]] || held=$((held + 1))
done
((held <= 4)) || fail "a job with most of the GPU is held in $held of 40 answers"

# The share is that of the last second, with the daemon and without.
"$GPREEMPT" suspend "$large" >/dev/null || fail 'suspend'
[[ $(task "$large" .state) == '"suspended"' ]] || fail 'a hold by a user is not shown at once'
is "$large" '.gpu_pct == 0'
share=$("$GPREEMPT" ps --no-daemon --json | jq "[.[] | select(.pid == $large)][0].gpu_pct")
[[ $share == 0 || $share == 0.0 ]] || fail "without the daemon it has $share %"
"$GPREEMPT" resume "$large" >/dev/null || fail 'resume'

# After a hold of an unmanaged process the daemon has no claim on it.
"$GPREEMPT" set "$small" --class unmanaged >/dev/null || fail 'set'
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $("$GPREEMPT" ps --no-daemon --for 1ms --json | jq "[.[] | select(.pid == $small)][0].owner") == null ]]' ||
	fail 'the daemon is the owner of an unmanaged process'
for _ in 1 2 3; do
	try "$GPREEMPT" suspend "$small" --for 20ms
	exits 0 '' 'suspend of an unmanaged process'
	try "$GPREEMPT" suspend "$small" --no-daemon --for 20ms
	exits 0 '' 'a hold without the daemon after it'
done
try "$GPREEMPT" resume "$small"
exits 0 '' 'resume'
[[ $out == 'nothing was held' ]] || fail "resume: $out"

# As long as a user holds one process of a gang, the others stay held, too.
for pid in "$large" "$small"; do
	"$GPREEMPT" set "$pid" --class be --gang both >/dev/null || fail 'set --gang'
	"$GPREEMPT" suspend "$pid" >/dev/null || fail "suspend $pid"
done
try "$GPREEMPT" resume "$large"
exits 1 "gpreempt: process $large stays held, because process $small (small) of its gang is held; release that one, too" 'resume of one of a gang'
[[ $out == '' ]] || fail "resume of one of a gang: $out"
[[ $(task "$large" .state) == '"suspended"' ]] || fail 'released: this tests nothing'
try "$GPREEMPT" suspend "$large" --for 20ms
[[ $status == 1 && $out != *released* ]] || fail "suspend --for of one of a gang: exit $status, '$out'"
expect 0 '' 'resume of the other' "$GPREEMPT" resume "$small"
[[ $out == "released $small "* ]] || fail "resume of the other: $out"
for pid in "$large" "$small"; do
	is "$pid" '.state != "suspended"'
	"$GPREEMPT" set "$pid" --class unmanaged --gang none >/dev/null || fail 'set --gang none'
done

# An unmanaged process that another program holds: with a record that program is asked; without one
# it is not known which program it is, and the daemon answers at once.
suspend_in_background other "$small" --no-daemon
expect 0 '' 'resume of what another program holds' "$GPREEMPT" resume "$small"
[[ $out == "released $small (gpreempt), which $JOB (gpreempt) held" ]] || fail "what another program holds: $out"
wait "$JOB" || fail "the other program: $(<"$work/other")"
GPREEMPT_UNDO=$work/undo2 suspend_in_background elsewhere "$small" --no-daemon
elsewhere=$JOB
try env -u GPREEMPT_GPU GPREEMPT_NVIDIACTL=/nonexistent GPREEMPT_KFD=/nonexistent GPREEMPT_KFD_SYSFS=/nonexistent \
	"$GPREEMPT" resume "$small"
exits 1 "gpreempt: process $small (*) is held by a program that is not known: *" 'only the daemon sees it'
[[ $out == '' ]] || fail "only the daemon sees it: $out"
kill_job "$elsewhere"
expect 0 '' 'resume of what a dead program held' "$GPREEMPT" resume "$small"

# Another daemon, with another undo file, holds it again.
mkdir -m 700 "$work/run2"
export GPREEMPT_SIMGPU=$GPREEMPT_RUN/simgpu.sock
GPREEMPT_RUN=$work/run2 in_background second "$GPREEMPTD" --gpu sim --policy none
second=$JOB
until_true said second '^info daemon.ready' || fail "no second daemon: $(<"$work/second")"
GPREEMPT_RUN=$work/run2 "$GPREEMPT" set "$small" --class be >/dev/null || fail 'set by the second daemon'
GPREEMPT_RUN=$work/run2 "$GPREEMPT" suspend "$small" >/dev/null || fail 'suspend by the second daemon'
for how in '' --no-daemon; do
	# shellcheck disable=SC2086
	try "$GPREEMPT" resume "$small" $how
	exits 1 "gpreempt: process $small (*) *held*gpreemptd, gpreempt schedule or gpreempt suspend*end *" "resume $how beside another daemon"
	[[ $out == '' ]] || fail "resume $how beside another daemon: $out"
done
end_job TERM "$second" || fail "the second daemon: $(<"$work/second")"
unset GPREEMPT_SIMGPU

# A process that does not exist, also one beyond the machine's highest pid.
for verb in 'set --class be' suspend resume 'suspend --no-daemon'; do
	# shellcheck disable=SC2086
	try "$GPREEMPT" $verb 2147483647
	exits 4 'gpreempt: there is no process 2147483647' "$verb of a process that does not exist"
done

in_background events "$GPREEMPT" events
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $("$GPREEMPT" stats --json | jq .daemon.clients) -ge 2 ]]' || fail 'no subscription'
"$GPREEMPT" suspend "$large" --for 10ms >/dev/null || fail 'suspend'
kill -HUP "$DAEMON"
until_true said events 'config  *loaded$' || fail "events: $(<"$work/events")"
until_true said events ' released ' || fail "events: $(<"$work/events")"
# A hold by another process: the list of the daemon's holders is empty.
in_background other "$GPREEMPT" suspend "$small" --no-daemon
until_true said events "^[^ ]*  held .* $small (" || fail "events: $(<"$work/events")"
end_job INT "$JOB" || fail "a hold without the daemon: $(<"$work/other")"
! said events 'null\|text' || fail "events: $(<"$work/events")"

try "$GPREEMPT" stats
[[ $out == *', keeper '@(gone|running) ]] || fail "stats: $out"
try "$GPREEMPT" doctor
[[ $out == *"runs as process $DAEMON"* && $out == *'gpreempt-keeper does not run'* ]] || fail "doctor: $out"
export GPREEMPT_NVIDIACTL=/nonexistent GPREEMPT_KFD=/nonexistent GPREEMPT_KFD_SYSFS=/nonexistent
unset GPREEMPT_GPU
try "$GPREEMPT" doctor
[[ $out == *"a simulated GPU runs here, and the daemon ($DAEMON) uses it"*'ready through the daemon: '* && $out != *missing* ]] ||
	fail "doctor beside a daemon that uses the simulated GPU: $out"
kill -STOP "$DAEMON"
sleep 3
try "$GPREEMPT" doctor
[[ $out == *warning*daemon*"gpreemptd runs as process $DAEMON, its last heartbeat was "*'does not answer'* ]] ||
	fail "doctor beside a stopped daemon: $out"
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
try "$GPREEMPT" doctor
[[ $out == *'a simulated GPU runs here and is not used'*'no daemon answers at '*'not ready: '* ]] || fail "doctor without a daemon: $out"
try "$GPREEMPT" ps
exits 4 'gpreempt: no GPU was found that can be scheduled; a simulated GPU runs here: set GPREEMPT_GPU=sim to use it' \
	'ps after the end of the daemon'
finish
