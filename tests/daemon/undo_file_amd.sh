#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# See undo_file.bash. If everything is lost, the driver itself releases with the end of the owner.
set -u
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"
begin_kfd --gpu mi250
KIND=amd
start_kfd_load --queues 2
load=$LOAD
# shellcheck source=tests/daemon/undo_file.bash
. "$SRC/tests/daemon/undo_file.bash"

lose_everything
until_true is_running "$load" || fail 'held after the death of its owner'
try "$GPREEMPT" doctor
[[ $out != *"process $load "*held* ]] || fail "doctor says that it is held: $out"
begin_daemon
hold_it
expect 0 '' 'resume' "$GPREEMPT" resume "$load"
is_running "$load" || fail 'the next daemon does not release it'
end_job TERM "$DAEMON" || fail "the daemon ended with $?"
ends_right "$load"
finish
