#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# compare.sh KFD-CASES VM-OUTPUT EMULATED...: where the real driver (in tests/vm) and the emulator
# were asked the same by the same program, they answered the same. Skipped where that program is
# newer than an answer.
set -euo pipefail
cases=$1 real=$2

for output in "${@:2}"; do
	if [[ ! $output -nt $cases ]]; then
		echo "not compared: ${output##*/} is missing, or older than kfd-cases; run vm.kfd and emu.kfd_cases_*"
		exit 77
	fi
done

# compare EMULATED: only what both answered.
compare() {
	awk -F ': ' -v name="$(basename "$1" .out)" '
		!/^[a-z0-9_]+: / || $1 == "cases" { next }
		NR == FNR { real[$1] = $0; next }
		$1 in real && real[$1] == $0 { same++ }
		$1 in real && real[$1] != $0 { different++; print "real     " real[$1] "\nemulated " $0 }
		END { print name ": " same + 0 " the same, " different + 0 " different"
		      exit different > 0 }' "$real" "$1"
}

status=0
for output in "${@:3}"; do
	compare "$output" || status=1
done
exit "$status"
