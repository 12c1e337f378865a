#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# See undo_file.bash. If everything is lost, a new daemon releases what is held without a record.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1
export GPREEMPT_KFD=$work/no-kfd
KIND=nvidia
start_load --contexts 1
load=$LOAD
# shellcheck source=tests/daemon/undo_file.bash
. "$SRC/tests/daemon/undo_file.bash"

# Everything is lost: doctor says so, and the next daemon releases.
lose_everything
is_held "$load" || fail 'released: this tests nothing'
try "$GPREEMPT" doctor
[[ $out == *warning*"process $load (rm-load) is held"*'has no undo record'*"gpreempt resume $load"* ]] ||
	fail "doctor does not report a held task without a record: $out"
# The driver does not name the processes at first: the daemon tries again.
emu fault handle_info 0x57 100000000
begin_daemon
sleep 1
is_held "$load" || fail 'released, although the driver named no process'
emu clear_faults
until_true is_running "$load" || fail 'the next daemon does not release it'
# Logged when a second search has found nothing more.
until_true said daemon "warn unrecorded.released pid=$load" || fail "the next daemon said: $(<"$work/daemon")"
end_job TERM "$DAEMON" || fail "the daemon ended with $?"
ends_right "$load"
finish
