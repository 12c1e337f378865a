#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# portable.sh FOLDER [COMPILER-LAUNCHER]: the build without the daemon, as `make portable` makes it,
# compiles without warnings and needs libc only. Needs SRC and CC.
set -euo pipefail
folder=$1

fail() {
	echo "portable: $*"
	exit 1
}

options=(-DGPREEMPT_TESTS=OFF -DGPREEMPT_WERROR=ON -DGPREEMPT_DAEMON=OFF -DGPREEMPT_STATIC_LIBS=ON)
cmake -G Ninja -S "$SRC" -B "$folder" -DCMAKE_C_COMPILER="$CC" ${2:+-DCMAKE_C_COMPILER_LAUNCHER="$2"} \
	"${options[@]}" >"$folder.log" 2>&1 || fail "cmake: $(<"$folder.log")"
cmake --build "$folder" --target gpreempt gpreempt-simgpu gpreempt-keeper >"$folder.log" 2>&1 ||
	fail "the build: $(tail -n 30 "$folder.log")"
[[ ! -e $folder/gpreemptd ]] || fail 'there is a daemon'
for program in gpreempt gpreempt-simgpu gpreempt-keeper; do
	needed=$(ldd "$folder/$program" | awk '{ print $1 }' | grep -vE '^(linux-vdso|/lib.*/ld-linux|lib(c|m)\.so)' || true)
	[[ ! $needed ]] || fail "$program needs $needed"
done

# YAML and JSON work, top and PNG say that they are not in this build.
"$folder/gpreempt" sim "$SRC/scenarios/h200-corun.yaml" --json | jq -e '.runs | length == 2' >/dev/null ||
	fail 'gpreempt sim --json'
! output=$("$folder/gpreempt" top 2>&1) || fail 'gpreempt top works'
[[ $output == *'top is not in this build'* ]] || fail "gpreempt top said: $output"
! output=$("$folder/gpreempt" sim "$SRC/scenarios/h200-corun.yaml" --plot "$folder/plot.png" 2>&1) || fail 'PNG works'
[[ $output == *PNG* && ! -e $folder/plot.png ]] || fail "sim --plot plot.png said: $output"
