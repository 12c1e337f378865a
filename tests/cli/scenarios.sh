#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every scenario that is shipped runs, for a second and on three devices at most: requests are
# answered, best-effort work gets on, and no policy is thrown out.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77

cp "$SRC"/scenarios/* "$work"
sed -i 's/^duration:.*/duration: 1s/; s/^devices:.*/devices: 3/' "$work"/*.yaml
cd "$work" || exit 1

found=0
for file in *.yaml; do
	found=$((found + 1))
	expect 0 '' "$file" "$GPREEMPT" sim "$work/$file" --policy none,priority --json
	holds '[.runs[].policy] == ["none", "priority"]' "$file runs under both policies"
	holds 'all(.runs[]; .ejected == null)' "$file: nobody is thrown out"
	holds 'all(.runs[].tasks[]; .class != "lc" or .requests > 0)' "$file answers requests"
	holds 'all(.runs[]; .device.busy_pct > 0)' "$file keeps its device busy"
done
((found >= 23)) || fail "only $found scenarios are there"
finish
