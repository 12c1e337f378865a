#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server of the simulated GPU is killed under a running daemon, and started again: the log, ps
# and doctor say so, and the daemon schedules on the new one. A server with another device is not
# taken for it.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
begin_daemon --policy priority
load first
"$GPREEMPT" set "$LOAD" --class be >/dev/null || fail 'set'
"$GPREEMPT" suspend "$LOAD" >/dev/null || fail 'suspend'
kill_job "$GPU"
until_true said daemon '^warn device.gone name="simulated' || fail "the log: $(<"$work/daemon")"
try "$GPREEMPT" ps
[[ $out == *'device 0: simulated H200 #0, '*', gone'* && $out != *"$LOAD"* ]] || fail "ps: $out"
try env -u GPREEMPT_GPU GPREEMPT_NVIDIACTL=/nonexistent GPREEMPT_KFD=/nonexistent GPREEMPT_KFD_SYSFS=/nonexistent \
	"$GPREEMPT" doctor
[[ $out != *'ready through the daemon'* ]] || fail "doctor: $out"
try "$GPREEMPT" resume "$LOAD"
[[ $out != *released* ]] || fail "resume on a GPU that has gone: $out"

start_simgpu --devices 1
until_true said daemon '^info device.back' || fail "not found again: $(<"$work/daemon")"
load second
until_true eval "task $LOAD '.class == \"unmanaged\"' >/dev/null 2>&1" || fail 'the new program is not seen'
expect 0 '' 'suspend on the new one' "$GPREEMPT" suspend "$LOAD"
is "$LOAD" '.state == "suspended"'
stands_still "$LOAD" || fail 'it is not held'
expect 0 '' 'resume on the new one' "$GPREEMPT" resume "$LOAD"
goes_on "$LOAD" || fail 'it does not go on'
try "$GPREEMPT" ps
[[ $out != *', gone'* ]] || fail "ps: $out"
kill_job "$GPU"
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $(grep -c device.gone "$work/daemon") == 2 ]]' || fail 'the second end is not said'

start_simgpu --device mi300x
until_true said daemon '^warn device.other name="simulated H200 #0"' || fail "another device: $(<"$work/daemon")"
try "$GPREEMPT" ps
[[ $out == *'device 0: simulated H200 #0, '*', gone'* ]] || fail "ps beside another device: $out"
kill_job "$GPU"
end_daemon
finish
