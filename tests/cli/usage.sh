#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help, version, and every wrong way to call: one sentence and exit code 2.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

try "$GPREEMPT"
exits 2 'Usage: gpreempt VERB*' 'no verb'
for form in --help -h help; do
	try "$GPREEMPT" $form
	exits 0 '' "gpreempt $form"
	[[ $out == *demo*doctor*run*set*ps*top*events*trace*queues*monitor*suspend*resume*bench*schedule*sim*simload*policy* ]] || fail "gpreempt $form does not list the verbs"
done
try "$GPREEMPT" --version
exits 0 '' '--version'
[[ $out =~ ^gpreempt\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version said '$out'"

try "$GPREEMPT" frobnicate
exits 2 "gpreempt: there is no verb 'frobnicate'; see gpreempt --help" 'unknown verb'
asking='run set events trace top' # these need json-c
"$GPREEMPT" set --help 2>&1 | grep -q 'this build cannot ask a daemon' && asking=
for verb in demo doctor ps queues monitor suspend resume bench schedule sim simload policy $asking; do
	try "$GPREEMPT" "$verb" --help
	exits 0 '' "$verb --help"
	[[ $out == "Usage: gpreempt $verb"* ]] || fail "$verb --help said '${out:0:60}'"
	try "$GPREEMPT" help "$verb"
	exits 0 '' "help $verb"
	try "$GPREEMPT" "$verb" --no-such-option
	wrong=2
	[[ $verb == run ]] && wrong=125 # as env(1)
	exits $wrong '*no-such-option*' "$verb with an unknown option"
done
try "$GPREEMPT" help frobnicate
exits 2 "gpreempt: there is no verb 'frobnicate'*" 'help for an unknown verb'
try "$GPREEMPT" demo there
exits 2 "*takes no argument*'there'*" 'demo with an argument'
try "$GPREEMPT" demo --seed=-1
exits 2 '*--seed takes a whole number*' 'demo with a negative seed'

# What cannot be written is a failure, not a success.
if [[ -w /dev/full ]]; then
	for args in --help 'help sim' 'demo --help' 'policy --list' 'demo --json'; do
		status=0
		# shellcheck disable=SC2086
		"$GPREEMPT" $args >/dev/full 2>"$work/err" || status=$?
		[[ $status == 1 ]] || fail "gpreempt $args to a full disk: exit $status"
	done
fi
finish
