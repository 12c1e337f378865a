#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The GPU is lost while a process is held, and the driver is loaded anew under a running daemon.
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
in_background daemon "$GPREEMPTD" --gpu nvidia
DAEMON=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"

start_load --contexts 1
load=$LOAD
until_true "$GPREEMPT" suspend "$load" >/dev/null 2>&1 || fail 'not held'
is_held "$load" || fail 'the driver does not hold it'
emu lost 0
"$GPREEMPT" resume "$load" >"$work/resume" 2>&1
[[ $? == 1 ]] || fail "a lost GPU, and resume says: $(<"$work/resume")"
grep -q '^released' "$work/resume" && fail "released on a lost GPU: $(<"$work/resume")"
said daemon 'warn action.failed .*action=release' || fail "no message: $(<"$work/daemon")"
kill -9 "$load"
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $(records) == 0 ]]' || fail 'the record of an ended process stays'

# The driver goes and comes back: all files of the old one are dead.
kill -9 "$EMU_PID"
wait "$EMU_PID" 2>/dev/null
umount -l "$EMU"
"$RM_EMU" --gpus 1 "$EMU" >"$EMU_TMP/out" 2>&1 &
EMU_PID=$!
wait_ready "$EMU_PID" "$EMU_TMP/out" || fail 'the driver cannot be loaded again'
start_load --contexts 1
load=$LOAD
until_true "$GPREEMPT" suspend "$load" >/dev/null 2>&1 || fail "not held after a reload: $(<"$work/daemon")"
is_held "$load" || fail 'held after a reload, says the daemon'
"$GPREEMPT" resume "$load" >"$work/resume" 2>&1 || fail "resume: $(<"$work/resume")"
makes_progress "$load" || fail 'no progress after a reload'
kill "$DAEMON"
wait "$DAEMON" || fail "the daemon ended with $?: $(<"$work/daemon")"
ends_right "$load"
finish
