#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The undo file is removed, truncated or lost while a process is held: the daemon writes its records
# again, so that the keeper releases the process after kill -9; a new daemon releases what is held
# without a record.
set -u
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1
export GPREEMPT_RUN=$work/run GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/run/gpreemptd.sock
export GPREEMPT_KFD=$work/no-kfd
mkdir -m 0755 "$GPREEMPT_RUN"

begin_daemon() {
	in_background daemon "$GPREEMPTD" --gpu nvidia
	DAEMON=$JOB
	until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
}
has_record() {
	[[ $(records) == 1 ]]
}
hold_it() {
	until_true "$GPREEMPT" suspend "$load" >/dev/null 2>&1 || fail 'the daemon does not hold it'
	is_held "$load" || fail 'not held'
	has_record || fail 'held without a record'
}
names_the_daemon() { # its heartbeat is in the present file
	"$GPREEMPT" doctor | grep -q "runs as process $DAEMON"
}
kill_daemon() {
	kill_job "$DAEMON"
}

start_load --contexts 1
load=$LOAD
in_background keeper "$BUILD/gpreempt-keeper" --timeout 5
KEEPER=$JOB
for loss in 'rm -f' 'truncate -s 0' 'truncate -s 100'; do
	begin_daemon
	hold_it
	$loss "$work/undo"
	until_true has_record || fail "$loss: the daemon does not write its record again"
	until_true names_the_daemon || fail "$loss: the daemon sends no heartbeat into the new file"
	is_held "$load" || fail "$loss: released"
	kill -0 "$DAEMON" "$KEEPER" || fail "$loss: daemon or keeper has ended"
	kill_daemon
	until_true is_running "$load" || fail "$loss: held after kill -9"
	makes_progress "$load" || fail "$loss: no progress"
done

# The file is removed, and the daemon is killed before it notices: the keeper still has the records.
begin_daemon
hold_it
kill -STOP "$DAEMON"
rm "$work/undo"
until_true has_record || fail 'the keeper does not carry the record over'
kill_daemon
until_true is_running "$load" || fail 'held after the loss of the file and kill -9'

# Everything is lost: doctor says so, and the next daemon releases.
begin_daemon
hold_it
kill_job "$KEEPER"
kill_daemon
rm "$work/undo"
is_held "$load" || fail 'released: this tests nothing'
try "$GPREEMPT" doctor
[[ $out == *warning*"process $load (rm-load) is held"*'has no undo record'*"gpreempt resume $load"* ]] ||
	fail "doctor does not report a held task without a record: $out"
begin_daemon
until_true is_running "$load" || fail 'the next daemon does not release it'
said daemon "warn unrecorded.released pid=$load" || fail "the next daemon said: $(<"$work/daemon")"
end_job TERM "$DAEMON" || fail "the daemon ended with $?"
ends_right "$load"
finish
