#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The units are good, start programs that are installed, and their security score is told.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
type -P systemd-analyze >/dev/null || {
	echo 'systemd-analyze is not here'
	exit 77
}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

DESTDIR=$root cmake --install "$BUILD" >"$root/log" 2>&1 || fail "cmake --install: $(<"$root/log")"
units=$(find "$root" -path '*/systemd/system/*')
[[ $(wc -l <<<"$units") -ge 4 ]] || fail "units: $units"

# The programs are found where they will be: verify looks at the files.
folder=$root/units
mkdir "$folder"
for unit in $units; do
	sed -E "s#^(Exec[A-Za-z]+=)(/[^ ]*/gpreempt)#\\1$root\\2#" "$unit" >"$folder/${unit##*/}"
done
for unit in "$folder"/*; do
	out=$(SYSTEMD_UNIT_PATH=$folder: systemd-analyze verify --man=no "$unit" 2>&1) ||
		fail "${unit##*/}: $out"
	# What it says of other units of this machine is not ours.
	ours=$(grep -i gpreempt <<<"$out")
	[[ ! $ours ]] || fail "${unit##*/}: $ours"
done

for unit in "$folder"/*.service; do
	security=$(SYSTEMD_UNIT_PATH=$folder: systemd-analyze security --offline=yes --no-pager "$unit" 2>&1)
	score=$(tail -1 <<<"$security")
	# Such a list has what is there when the unit starts, and drivers are loaded later. Before systemd
	# 253 ProtectClock makes one that has no GPU at all.
	[[ $security == *'no device ACL'* ]] || fail "${unit##*/} has a list of devices"
	! grep -q '^ProtectClock=yes' "$unit" || fail "${unit##*/} has a list of devices by ProtectClock"
	echo "${unit##*/}: $score"
	exposure=$(grep -o '[0-9]*\.[0-9]' <<<"$score" | head -1)
	[[ $exposure ]] || fail "no score for ${unit##*/}: $score"
	# Other processes and devices are its business; without that it could be lower.
	[[ ${exposure%.*} -lt 5 ]] || fail "${unit##*/} is too exposed: $score"
done
finish
