#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The driver hangs. The thread that calls it is part of the daemon's heartbeat, so the keeper
# releases what the daemon cannot. A daemon that was killed and hangs in the kernel is replaced.
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

begin_daemon() { # NAME [VARIABLE=VALUE...]
	local name=$1
	shift
	in_background "$name" env "$@" "$GPREEMPTD" --gpu nvidia
	DAEMON=$JOB
	until_true said "$name" '^info daemon.ready' || fail "no daemon: $(<"$work/$name")"
}
hold_it() {
	until_true "$GPREEMPT" suspend "$1" >/dev/null 2>&1 || fail 'the daemon does not hold it'
	until_true is_held "$1" || fail 'not held' # the keeper may have acted meanwhile
}
state_of() { # PID: the states of its threads, one letter each
	cat /proc/"$1"/task/*/stat 2>/dev/null | sed 's/.*) \(.\).*/\1/' | tr -d '\n'
}
waits_for_driver() { # one of its threads is in ioctl(2)
	grep -qs '^16 ' /proc/"$1"/task/*/syscall
}
hangs() {
	[[ $(state_of "$1") == *D* && $(state_of "$1") == *Z* ]]
}

in_background keeper "$BUILD/gpreempt-keeper" --timeout 0.7
start_load --contexts 1
load=$LOAD

# Every release of the daemon hangs; those of the keeper do not.
if [[ -e $BUILD/tests/hostile/hostile_shim.so ]]; then
	truncate -s 8192 "$work/page"
	begin_daemon hanging LD_PRELOAD="$BUILD/tests/hostile/hostile_shim.so" HOSTILE="$work/page"
	hold_it "$load"
	printf '\x01' | dd of="$work/page" bs=1 seek=4096 conv=notrunc status=none
	printf '* release 1+ hang\n' | dd of="$work/page" conv=notrunc status=none
	"$GPREEMPT" resume "$load" >"$work/resume" 2>&1 &
	until_true is_running "$load" || fail 'a daemon whose driver hangs keeps it held'
	until_true said hanging 'error device.stuck' || fail "no message: $(<"$work/hanging")"
	until_true said keeper 'warn scheduler.silent' || fail 'the heartbeat goes on'
	makes_progress "$load" || fail 'no progress'
	kill -9 "$DAEMON"
	wait "$DAEMON" 2>/dev/null
	# shellcheck disable=SC2016 # until_true expands it
	until_true eval '[[ $(records) == 0 ]]' || fail 'a record is left'
fi

# A call of the daemon never returns, not even after SIGKILL: the driver does not answer.
begin_daemon hung
hold_it "$load"
kill -STOP "$EMU_PID"
hung=$DAEMON
# shellcheck disable=SC2015 # fail ends the test
until_true waits_for_driver "$hung" && sleep 0.2 && waits_for_driver "$hung" ||
	fail 'the daemon makes no call'
kill -9 "$hung"
# A call that the emulator had not read yet ends with the daemon.
until_true hangs "$hung" || {
	echo 'the call of the daemon had not reached the driver: the second part was not tried'
	kill -CONT "$EMU_PID"
	((failures)) && exit 1
	exit 77
}

trap 'kill -CONT "$EMU_PID"; umount -l "$work/other" 2>/dev/null; end_jobs; stop_emu
	rm -rf "$work"' EXIT

# The next daemon, on another driver, for this one does not answer.
other=$work/other
mkdir "$other"
in_background emu2 "$RM_EMU" --gpus 1 "$other"
second=$JOB
until_true said emu2 '^ready' || fail 'no second emulator'
begin_daemon next GPREEMPT_NVIDIACTL="$other/nvidiactl"
"$GPREEMPT" ps >"$work/ps" 2>&1 || fail "the new daemon does not answer: $(<"$work/ps")"
kill -0 "$DAEMON" || fail "the new daemon has ended: $(<"$work/next")"
hangs "$hung" || fail 'the first daemon does not hang any more: nothing was tried'
until_true said keeper "error owner.hung pid=$hung" || fail "keeper: $(<"$work/keeper")"

# The driver answers again: the keeper releases what the first daemon held.
kill -CONT "$EMU_PID"
until_true is_running "$load" || fail 'held by a daemon that hung'
makes_progress "$load" || fail 'no progress'
kill "$DAEMON"
wait "$DAEMON"
kill "$second"
wait "$second" 2>/dev/null
umount -l "$other" 2>/dev/null
ends_right "$load"
finish
