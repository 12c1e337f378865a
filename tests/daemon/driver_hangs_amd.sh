#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A call to the AMD driver hangs, for one process. The KFD thread that makes it is part of the
# daemon's heartbeat, so the keeper releases the other process. When the call returns, the daemon
# holds that process again.
set -u
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi300x
# A call that hangs keeps its process in state D, where SIGKILL has no effect.
trap 'kfd_emu wake; end_jobs; stop_kfd_emu; rm -rf "$work"' EXIT
export GPREEMPT_RUN=$work/run GPREEMPT_SOCKET=$work/run/gpreemptd.sock
mkdir -m 0755 "$GPREEMPT_RUN"

in_background keeper "$BUILD/gpreempt-keeper" --timeout 0.7
start_kfd_load --steps 1
first=$LOAD
start_kfd_load --steps 1
second=$LOAD

in_background daemon "$GPREEMPTD" --gpu amd --policy none
daemon=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
until_true "$GPREEMPT" suspend "$first" >/dev/null 2>&1 || fail 'the daemon does not hold it'
is_held "$first" || fail 'not held'
kfd_emu hold_mutex "$second" 60s
in_background hangs "$GPREEMPT" suspend "$second"
asks=$JOB
until_true is_running "$first" || fail "a daemon whose driver hangs keeps it held: $(<"$work/keeper")"
makes_progress "$first" || fail 'no progress'
said daemon 'error device.stuck' || fail "no message: $(<"$work/daemon")"
said keeper "warn scheduler.silent pid=$daemon" || fail "keeper: $(<"$work/keeper")"
said keeper "info undone pid=$first backend=amd" || fail "keeper: $(<"$work/keeper")"
! said keeper 'owner.killed' || fail "the owner was killed: $(<"$work/keeper")"
"$GPREEMPT" stats --json >"$work/out"
holds 'any(.. | objects; .state? == "stuck")' 'the device is stuck'
kfd_emu wake
until_true is_held "$first" || fail "not held again: $(<"$work/daemon")"
until_true said keeper "info scheduler.heartbeat-resumed pid=$daemon" || fail "$(<"$work/keeper")"
wait "$asks" || said hangs '^gpreempt: ' || fail "suspend: $(<"$work/hangs")"
end_job TERM "$daemon" || fail "the daemon: exit $?"
finish
