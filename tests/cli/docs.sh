#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the documents show is what the program does: the table of docs/simulator.md, the picture and
# the figures of the README, the options in man pages and completion.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
cd "$work" || exit 1

# tables TEST REGEX: what it prints from such a line to cmocka's next stands in docs/simulator.md.
tables() {
	local line
	try "$BUILD/tests/$1"
	grep -q 'SKIPPED' "$work/out" "$work/err" && exit 77
	while IFS= read -r line; do
		grep -qxF "    ${line%"${line##*[! ]}"}" "$SRC/docs/simulator.md" ||
			fail "docs/simulator.md lacks: $line"
	done < <(sed -n "/$2/,/^\[/p" "$work/out" | grep -v '^\[')
}
tables test_hardware '^case'
tables test_published '^ .*alone, ms\|^ .*added'
tables test_published_figures '^prepare\|^rate'
tables test_priority_services '^lc_shared_slice'
tables test_published_why '^Y with\|^slice in\|^turns'
[[ $(grep -c '^    .* \(sets\|predicted\)$' "$SRC/docs/simulator.md") -ge 30 ]] ||
	fail 'the table of docs/simulator.md is not complete'

try "$GPREEMPT" demo
cmp -s gpreempt-demo.svg "$SRC/docs/demo.svg" || fail 'docs/demo.svg is not what the demo draws'
# The README's rows have the demo's figures, in the same order.
for row in "driver's own sharing" 'gpreempt priority' 'priority, hint'; do
	figures=$(grep -F "$row" "$work/out" | head -n 1 | cut -c30- | sed 's/us/µs/g' |
		grep -oE '[0-9.]+ (µs|ms|s)|[0-9.]+$' | sed -n '1,2p;$p' | paste -sd'|' | sed 's/|/ | /g')
	grep -qF "| $figures |" "$SRC/README.md" || fail "README does not say | $figures |"
done

# Every verb and option is in its man page and in the completion.
for verb in $("$GPREEMPT" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	"$GPREEMPT" "$verb" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' |
		sort -u | while read -r option; do
		case $option in --help | --usage | --version) continue ;; esac
		grep -q -- "Fl ${option#-}" "$SRC/man/gpreempt-$verb.1" ||
			echo "man page of $verb lacks $option"
		grep -q -- "$option" "$SRC/completions/gpreempt" || echo "completion lacks $option"
	done >"$work/lacks"
	[[ -s $work/lacks ]] && fail "$(cat "$work/lacks")"
done
finish
