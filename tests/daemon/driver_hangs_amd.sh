#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A call to the AMD driver hangs, for one process. The KFD thread that makes it is part of the
# daemon's heartbeat, so the keeper releases the other process. When the call returns, the daemon
# holds that process again.
set -u
# shellcheck source=tests/daemon/amd.bash
. "$SRC/tests/daemon/amd.bash"
begin_amd --gpu mi300x
# A call that hangs keeps its process in state D, where SIGKILL has no effect.
trap 'kfd_emu wake; end_jobs; stop_kfd_emu; rm -rf "$work"' EXIT

in_background keeper "$BUILD/gpreempt-keeper" --timeout 0.7
start_kfd_load --steps 1
first=$LOAD
start_kfd_load --steps 1
second=$LOAD

start_daemon --policy none
until_true "$GPREEMPT" suspend "$first" >/dev/null 2>&1 || fail 'the daemon does not hold it'
is_held "$first" || fail 'not held'
kfd_emu hold_mutex "$second" 60s
in_background hangs "$GPREEMPT" suspend "$second"
asks=$JOB
until_true is_running "$first" || fail "a daemon whose driver hangs keeps it held: $(<"$work/keeper")"
makes_progress "$first" || fail 'no progress'
said daemon 'error device.stuck' || fail "no message: $(<"$work/daemon")"
said keeper "warn scheduler.silent pid=$DAEMON" || fail "keeper: $(<"$work/keeper")"
said keeper "info undone pid=$first backend=amd" || fail "keeper: $(<"$work/keeper")"
! said keeper 'owner.killed' || fail "the owner was killed: $(<"$work/keeper")"
"$GPREEMPT" stats --json >"$work/out"
holds 'any(.. | objects; .state? == "stuck")' 'the device is stuck'
kfd_emu wake
until_true is_held "$first" || fail "not held again: $(<"$work/daemon")"
until_true said keeper "info scheduler.heartbeat-resumed pid=$DAEMON" || fail "$(<"$work/keeper")"
wait "$asks" || said hangs '^gpreempt: ' || fail "suspend: $(<"$work/hangs")"
end_daemon
finish
