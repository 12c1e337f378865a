# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks at pictures. After check.bash, which makes $work.
# shellcheck disable=SC2154

# fontconfig, behind cairo, never frees what it knows of fonts.
echo leak:libfontconfig >"$work/lsan"
export LSAN_OPTIONS=suppressions=$work/lsan:print_suppressions=0

# look_at_png FILE WIDTH CLAIM: it has that width, and something is drawn on it in several colours.
look_at_png() {
	expect 0 '' "$3" "$PNG_LOOK" "$1"
	holds ".width == $2 and .colours > 20 and .drawn > 5000 and .drawn < .width * .height / 2" "$3 is not blank"
}

# look_at_svg FILE CLAIM: it passes check_svg.py, whose summary is the output, and can be rendered.
look_at_svg() {
	expect 0 '' "$2" python3 "$SRC/tests/cli/check_svg.py" "$1"
	if command -v rsvg-convert >/dev/null && [[ ${PNG_LOOK-} ]]; then
		cp "$work/out" "$work/summary"
		rsvg-convert -o "$work/rendered.png" "$1" || fail "$2: cannot be rendered"
		look_at_png "$work/rendered.png" "$(jq .width "$work/summary")" "$2, rendered"
		cp "$work/summary" "$work/out"
	fi
}
