# shellcheck shell=bash disable=SC2154 # work, KIND and load are the caller's
# SPDX-License-Identifier: Apache-2.0
#
# The undo file is removed, truncated or lost while a process is held: the daemon writes its records
# again, so that the keeper releases the process after kill -9. After nvidia.bash or amd.bash, with
# an emulator and KIND, the back end's name, and a running program, whose pid is `load`.
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
export GPREEMPT_RUN=$work/run GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/run/gpreemptd.sock
mkdir -m 0755 "$GPREEMPT_RUN"

begin_daemon() {
	in_background daemon "$GPREEMPTD" --gpu "$KIND"
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
says_alive() { # says_alive PID: its heartbeat is in the present file
	"$GPREEMPT" doctor | grep -q "runs as process $1, its last heartbeat was"
}
kill_daemon() {
	kill_job "$DAEMON"
}

in_background keeper "$BUILD/gpreempt-keeper" --timeout 5
KEEPER=$JOB
for loss in 'rm -f' 'truncate -s 0' 'truncate -s 100'; do
	begin_daemon
	hold_it
	$loss "$work/undo"
	until_true has_record || fail "$loss: the daemon does not write its record again"
	until_true says_alive "$DAEMON" || fail "$loss: the daemon sends no heartbeat into the new file"
	is_held "$load" || fail "$loss: released"
	kill -0 "$DAEMON" "$KEEPER" || fail "$loss: daemon or keeper has ended"
	kill_daemon
	until_true is_running "$load" || fail "$loss: held after kill -9"
	makes_progress "$load" || fail "$loss: no progress"
done

# The keeper, which carries records over, too, is stopped: the daemon does it by itself.
begin_daemon
hold_it
kill -STOP "$KEEPER"
rm "$work/undo"
until_true has_record || fail 'without the keeper, the daemon does not write its record again'
kill_daemon
kill -CONT "$KEEPER"
until_true is_running "$load" || fail 'held after the loss of the file without the keeper, and kill -9'
# It undoes what its old file names first. It must have opened the new one before the next loss.
until_true says_alive "$KEEPER" || fail 'the keeper does not use the new file'

# The file is removed, and the daemon is killed before it notices: the keeper still has the records.
begin_daemon
hold_it
kill -STOP "$DAEMON"
rm "$work/undo"
until_true has_record || fail 'the keeper does not carry the record over'
kill_daemon
until_true is_running "$load" || fail 'held after the loss of the file and kill -9'

# lose_everything: the records, the keeper and the daemon while the process is held.
lose_everything() {
	begin_daemon
	hold_it
	kill_job "$KEEPER"
	kill_daemon
	rm "$work/undo"
}
