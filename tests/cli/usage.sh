#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help, version, and every wrong way to call: one sentence and exit code 2.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

expect 2 'Usage: gpreempt VERB*' 'no verb' "$GPREEMPT"
for form in --help -h help; do
	expect 0 '' "gpreempt $form" "$GPREEMPT" $form
	[[ $out == *demo*doctor*run*set*ps*top*events*trace*queues*monitor*suspend*resume*bench*schedule*sim*simload*policy* ]] || fail "gpreempt $form does not list the verbs"
done
expect 0 '' '--version' "$GPREEMPT" --version
[[ $out =~ ^gpreempt\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version said '$out'"

expect 2 "gpreempt: there is no verb 'frobnicate'; see gpreempt --help" 'unknown verb' "$GPREEMPT" frobnicate
verbs=$("$GPREEMPT" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[[ $(wc -w <<<"$verbs") -ge 13 ]] || fail "these are not all verbs: $verbs"
for verb in $verbs; do
	expect 0 '' "$verb --help" "$GPREEMPT" "$verb" --help
	[[ $out == "Usage: gpreempt $verb"* ]] || fail "$verb --help said '${out:0:60}'"
	expect 0 '' "help $verb" "$GPREEMPT" help "$verb"
	try "$GPREEMPT" "$verb" --no-such-option
	wrong=2
	[[ $verb == run ]] && wrong=125 # as env(1)
	exits $wrong '*no-such-option*' "$verb with an unknown option"
done
expect 2 "gpreempt: there is no verb 'frobnicate'*" 'help for an unknown verb' "$GPREEMPT" help frobnicate
expect 2 "*takes no argument*'there'*" 'demo with an argument' "$GPREEMPT" demo there
expect 2 '*--seed takes a whole number*' 'demo with a negative seed' "$GPREEMPT" demo --seed=-1

# gpreempt(1) has every verb, and the man pages have every variable that is not for tests alone.
for verb in $verbs; do
	grep -qx "\.It Cm $verb" "$SRC/man/gpreempt.1" || fail "gpreempt(1) lacks $verb"
done
mapfile -t names < <(grep -rhoE 'getenv\("GPREEMPT_[A-Z_]*"' "$SRC/src" | cut -d'"' -f2 | sort -u)
for name in "${names[@]}"; do
	[[ $name == GPREEMPT_KFD_* ]] || grep -qx "\.It Ev $name" "$SRC"/man/* || fail "no man page has $name"
done

wide=$(grep -nE -- '-(width|offset) [0-9]{2,}n' "$SRC"/man/*) && fail "a list is indented by more than 9 columns: $wide"

# What cannot be written is a failure, not a success.
if [[ -w /dev/full ]]; then
	for args in --help 'help sim' 'demo --help' 'policy --list' 'demo --json'; do
		status=0
		# shellcheck disable=SC2086
		"$GPREEMPT" $args >/dev/full 2>"$work/err" || status=$?
		[[ $status == 1 ]] || fail "gpreempt $args to a full disk: exit $status"
	done
fi
try "$GPREEMPT" suspend --help
[[ $(tr -s ' \n' ' ' <"$work/out") == *'AMD GPUs before gfx11, drain'*'Holds from this program, not through the daemon'* ]] ||
	fail "suspend --help does not say what --type does: $out"
finish
