#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the units may do is enough for other users' programs on the emulated NVIDIA driver.
set -u
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
begin_emu --gpus 1
chmod 755 "$EMU_TMP"
KIND=nvidia
# shellcheck source=tests/daemon/capabilities.bash
. "$SRC/tests/daemon/capabilities.bash"

strangers "$RM_LOAD"
RM_LOAD=$STRANGERS
start_load --contexts 2 || fail "no load: $(<"$EMU_TMP/$LOAD")"
# A right that is missing is named.
ptrace_only=(setpriv --bounding-set '-all,+sys_ptrace' --inh-caps=-all)
try "${ptrace_only[@]}" "$GPREEMPT" queues "$LOAD"
exits 3 "gpreempt: process $LOAD belongs to user $stranger; *CAP_DAC_READ_SEARCH*" 'ptrace rights alone'
try "${ptrace_only[@]}" "$GPREEMPT" doctor
[[ $out == *'run with CAP_DAC_READ_SEARCH'* ]] || fail "doctor with ptrace rights alone: $out"
within_the_units "$LOAD"

# What cannot be put back does not keep the service manager from starting the daemon again.
limit=$(sed -n 's/^TimeoutStopSec=\([0-9]*\)s$/\1/p' "$SRC/systemd/gpreemptd.service.in")
start_daemon
hold "$LOAD"
kill_daemon
SECONDS=0
expect 1 '*CAP_DAC_READ_SEARCH*left records=1*' 'gpreempt-keeper --once that cannot' "${ptrace_only[@]}" "$keeper" --once
((2 * SECONDS <= limit)) || fail "gpreempt-keeper --once took $SECONDS s of the $limit s that it may"
expect 0 '*' 'gpreempt-keeper --once that can' "${AS[@]}" "$keeper" --once
is_put_back "$LOAD" 'gpreempt-keeper --once'
ends_right "$LOAD"
finish
