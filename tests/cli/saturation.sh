#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What docs/saturation.md claims is what the program prints: tables, picture and the two claims.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
cd "$SRC" || exit 1 # where scenarios are found by name
doc=docs/saturation.md

try "$GPREEMPT" sim saturation --policy priority,qos --json
[[ $err == *libyaml* ]] && exit 77
exits 0 '' 'saturation'
holds '.runs[0].tasks[1].work_pct | . > 43.5 and . < 45' 'priority leaves 44 %'
holds '.runs[1].tasks[1].work_pct > 55' 'qos leaves more than 55 %'
holds '.runs[1].tasks[0].p99_us <= 1.05 * .runs[0].tasks[0].p99_us' 'with the same p99'

# Each command of the page, a line that begins with four spaces, is followed by what it prints.
grep -oE '^    gpreempt sim .*' "$doc" >"$work/commands"
[[ $(wc -l <"$work/commands") == 4 ]] || fail 'docs/saturation.md has not four commands'
while read -r -a command; do
	try "$GPREEMPT" "${command[@]:1}"
	# The table of a sweep, or the comparison at the end.
	sed -n '/^compared\|^inference.rate/,$p' "$work/out" >"$work/table"
	[[ -s $work/table ]] || fail "${command[*]} prints no table"
	while IFS= read -r line; do
		grep -qxF "    $line" "$doc" || fail "docs/saturation.md lacks: $line"
	done <"$work/table"
done <"$work/commands"

"$GPREEMPT" sim saturation --policy priority,qos --sweep inference.rate=250:2250:9 \
	--plot "$work/picture.svg" >/dev/null || fail 'no picture'
cmp -s "$work/picture.svg" docs/saturation.svg || fail 'docs/saturation.svg is another picture'
finish
