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
exits 3 "gpreempt: process $LOAD belongs to user $stranger, *CAP_DAC_READ_SEARCH*" 'ptrace rights alone'
try "${ptrace_only[@]}" "$GPREEMPT" doctor
[[ $out == *'run with CAP_DAC_READ_SEARCH'* ]] || fail "doctor with ptrace rights alone: $out"
within_the_units "$LOAD"
ends_right "$LOAD"
finish
