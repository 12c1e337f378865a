#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# emu.sh VARIANT KFD-CASES OUTPUT: the emulator answers as the table expects. What it answered is
# left for compare.sh. Needs KFD_EMU and SRC.
set -euo pipefail
cases=$2 output=$3
export KFD_LOAD=

# shellcheck source=emu/kfd/kfd_emu.bash
source "$SRC/emu/kfd/kfd_emu.bash"

case $1 in
plain)    emulator=(--gpu mi250)               options=(--with-gpu) ;;
mes)      emulator=(--gpu navi31)              options=(--with-gpu --mes) ;;
one_slot) emulator=(--gpu vega20)              options=(--with-gpu --one-slot) ;;
two_gpus) emulator=(--gpu mi300x --gpu mi250)  options=(--with-gpu) ;;
old_rule) emulator=(--gpu mi250 --rule old)    options=(--with-gpu --old-rule) ;;
no_hws)   emulator=(--gpu mi250 --sched-policy 2) options=(--no-hws --only without_hws) ;;
*)        echo "$1: no such variant"; exit 2 ;;
esac

start_kfd_emu "${emulator[@]}"
chmod 711 "$KFD_TMP" # also for the cases of another user
status=0
rm -f "$output"
"$cases" --sysfs "$KFD_MNT/sysfs" "${options[@]}" >"$KFD_TMP/cases" || status=$?
cat "$KFD_TMP/cases"
cp "$KFD_TMP/cases" "$output"
exit "$status"
