#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# emu.sh VARIANT KFD-CASES VM-OUTPUT: the emulator answers as the table expects, and as the real
# driver did in tests/vm, where the same program has run there and left its output. Needs KFD_EMU
# and SRC.
set -euo pipefail
cases=$2 vm_output=$3
export KFD_LOAD=

# shellcheck source=tests/emu/kfd/kfd_emu.bash
source "$SRC/tests/emu/kfd/kfd_emu.bash"

case $1 in
plain)    emulator=(--gpu mi250)               options=(--with-gpu) ;;
mes)      emulator=(--gpu navi31)              options=(--with-gpu --mes) ;;
one_slot) emulator=(--gpu vega20)              options=(--with-gpu --one-slot) ;;
two_gpus) emulator=(--gpu mi300x --gpu mi250)  options=(--with-gpu) ;;
old_rule) emulator=(--gpu mi250 --rule old)    options=(--with-gpu --old-rule) ;;
no_hws)   emulator=(--gpu mi250 --sched-policy 2) options=(--no-hws --only without_hws) ;;
*)        echo "$1: no such variant"; exit 2 ;;
esac

# compare REAL EMULATED: only what both answered.
compare() {
	awk -F ': ' '
		!/^[a-z0-9_]+: / || $1 == "cases" { next }
		NR == FNR { real[$1] = $0; next }
		$1 in real && real[$1] == $0 { same++ }
		$1 in real && real[$1] != $0 { different++; print "real     " real[$1] "\nemulated " $0 }
		END { print "with the real driver: " same + 0 " the same, " different + 0 " different"
		      exit different > 0 }' "$1" "$2"
}

start_kfd_emu "${emulator[@]}"
chmod 711 "$KFD_TMP" # also for the cases of another user
status=0
"$cases" --sysfs "$KFD_MNT/sysfs" "${options[@]}" >"$KFD_TMP/cases" || status=$?
cat "$KFD_TMP/cases"
if [[ $vm_output -nt $cases && $1 != old_rule ]]; then
	compare "$vm_output" "$KFD_TMP/cases" || status=1
else
	echo "with the real driver: not compared (vm.kfd has not run, or has other rules)"
fi
exit "$status"
