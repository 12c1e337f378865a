#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The AMD driver goes and comes back under a running daemon, which keeps the file of the old one.
set -u
# shellcheck source=tests/daemon/amd.bash
. "$SRC/tests/daemon/amd.bash"
begin_amd --gpu mi250
start_daemon --policy none
start_kfd_load --queues 2
until_true "$GPREEMPT" suspend "$LOAD" >/dev/null 2>&1 || fail 'not held'
kill -9 "$LOAD"

kill -9 "$KFD_EMU_PID"
wait "$KFD_EMU_PID" 2>/dev/null
umount -l "$KFD_MNT"

knows_nothing() {
	[[ $("$GPREEMPT" ps --json) == '[]' ]]
}
until_true knows_nothing || fail "without a driver, ps says: $("$GPREEMPT" ps)"
try "$GPREEMPT" doctor
# shellcheck disable=SC2154 # try sets it
[[ $status != 0 && $out == *'not ready: '* ]] || fail "without a driver, doctor says: $out"

"$KFD_EMU" --gpu mi250 "$KFD_MNT" >"$KFD_TMP/out" 2>&1 &
KFD_EMU_PID=$!
wait_ready "$KFD_EMU_PID" "$KFD_TMP/out" || fail 'the driver cannot be loaded again'
start_kfd_load --queues 2
until_true "$GPREEMPT" suspend "$LOAD" >/dev/null 2>&1 || fail "not held after a reload: $(<"$work/daemon")"
is_held "$LOAD" || fail 'held after a reload, says the daemon'
said daemon '^warn driver.reopened ' || fail "no message: $(<"$work/daemon")"
kfd_emu evict "$LOAD" # the events are those of the new driver
until_true said daemon "^warn task.evicted pid=$LOAD " || fail "no events: $(<"$work/daemon")"
kfd_emu restore "$LOAD"
expect 0 '' 'resume' "$GPREEMPT" resume "$LOAD"
makes_progress "$LOAD" || fail 'no progress after a reload'
end_daemon
ends_right "$LOAD"
finish
