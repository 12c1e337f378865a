#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt demo: table, conclusion, timeline and picture, in seconds and without a terminal.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
cd "$work" || exit 1

begin=$SECONDS
expect 0 '' 'demo' "$GPREEMPT" demo
((SECONDS - begin < 10)) || fail "took $((SECONDS - begin)) s"
for word in "driver's own sharing" 'gpreempt priority' 'a hint' 'with a hint' 'gpreempt-demo.svg'; do
	[[ $out == *"$word"* ]] || fail "the demo does not say '$word'"
done
[[ $out != *$'\033'* ]] || fail 'colours without a terminal'
longest=$(LC_ALL=C.UTF-8 wc -L <"$work/out")
((longest <= 80)) || fail "a line of $longest characters"

# The picture is well-formed and shows all three runs.
[[ $(grep -c '<svg ' gpreempt-demo.svg) == 1 && $(tail -n 1 gpreempt-demo.svg) == '</svg>' ]] ||
	fail 'no complete SVG'
[[ $(grep -c 'font-weight="bold">' gpreempt-demo.svg) -ge 4 ]] || fail 'lanes are missing'
if command -v xmllint >/dev/null; then
	xmllint --noout gpreempt-demo.svg || fail 'the SVG is no XML'
fi

expect 0 '' 'demo --svg' "$GPREEMPT" demo --svg "$work/other.svg"
[[ -s $work/other.svg ]] || fail '--svg wrote nothing'
cmp -s gpreempt-demo.svg other.svg || fail 'same seed, another picture'
try "$GPREEMPT" demo --svg "$work/missing/other.svg"
exits 1 'gpreempt: cannot write the picture to*No such file*' 'a folder that is not there'

LC_ALL=C try "$GPREEMPT" demo
LC_ALL=C grep -q '[^ -~]' "$work/out" && fail 'other than ASCII in the C locale'

expect 0 '' 'demo --json' "$GPREEMPT" demo --json
holds '.runs | length == 3' 'three runs'
holds '.runs[0].tasks[0].p99_us > 5 * .runs[1].tasks[0].p99_us and .runs[1].tasks[0].p99_us > 2 * .runs[2].tasks[0].p99_us' \
	'each step is an improvement'
finish
