# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command-line tests share. Each check says what it expects; the script goes on after a
# failure and exits 1 at the end through `finish`.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

# try COMMAND...: leaves its output in $out, its errors in $err and its status in $status.
try() {
	status=0
	"$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	# shellcheck disable=SC2034 # for the scripts that use this
	out=$(<"$work/out")
	err=$(<"$work/err")
}

# exits N TEXT: the last command ended with N and said TEXT (a pattern) on standard error.
exits() {
	[[ $status == "$1" ]] || fail "$3: exit $status instead of $1 ($err)"
	# shellcheck disable=SC2053
	[[ $err == $2 ]] || fail "$3: said '$err' instead of '$2'"
}

# expect N TEXT CLAIM COMMAND...: both of these.
expect() {
	try "${@:4}"
	exits "${@:1:3}"
}

# holds JQ-EXPRESSION CLAIM: the last output is JSON and the expression is true of it.
holds() {
	jq -e "$1" "$work/out" >/dev/null || fail "$2: not so in $(head -c 600 "$work/out")"
}

finish() {
	[[ $failures == 0 ]] || exit 1
	echo "all checks passed"
}
