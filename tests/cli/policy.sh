#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt policy lists every policy with its parameters.
set -u
shopt -s extglob
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

expect 0 '' 'policy --names' "$GPREEMPT" policy --names
[[ $out == none$'\n'* ]] || fail "the baseline is not the first in '$out'"
for name in priority rr fair share mlfq edf lax; do
	[[ $'\n'$out$'\n' == *$'\n'$name$'\n'* ]] || fail "policy --names lacks $name: '$out'"
done
names=$out

expect 0 '' 'policy --list' "$GPREEMPT" policy --list
[[ $out =~ quantum\ +200\ ms\ +10-10000\ +turn ]] || fail "no default, range and unit in '$out'"
[[ $out == *$'\n  attributes: weight, share, ceiling\n'* ]] || fail "the attributes of share are not in '$out'"
longest=$(wc -L <"$work/out")
((longest <= 80)) || fail "a line of $longest characters"
listed=$out
try "$GPREEMPT" policy
[[ $out == "$listed" ]] || fail 'policy without an option is not the list'

try env GPREEMPT_SOCKET="$work/no-such-socket" "$GPREEMPT" policy --list --json
holds 'all(.[]; has("in_force") | not)' 'without a daemon nothing is said of what is in force'
exits 0 '' 'policy --json'
[[ $(jq -r '.[].name' "$work/out") == "$names" ]] || fail 'JSON names other policies'
holds '[.[] | select(.name == "priority").attributes] == [["class", "priority"]]' 'each policy has the attributes it uses'
holds 'all(.[].parameters[]; .min <= .default and .default <= .max and (.unit|length) > 0)' \
	'each parameter has a default in its range and a unit'

expect 2 "*frobnicate*" 'a policy that there is not' "$GPREEMPT" policy frobnicate
expect 2 "*quantum*" 'a parameter that is no number' "$GPREEMPT" policy rr:quantum=soon
expect 2 "*give one policy*'fair'*" 'two policies' "$GPREEMPT" policy rr fair
expect 2 "*--device goes with a policy*" 'a device without a policy' "$GPREEMPT" policy --device 0
expect 2 "*--device takes a whole number*" 'a device that is no number' "$GPREEMPT" policy --device x rr
export GPREEMPT_SOCKET=$work/no-such-socket
try "$GPREEMPT" policy rr
exits 1 "gpreempt: @(no daemon answers at $work/no-such-socket; start it with|this build cannot ask a daemon)*" 'policy without a daemon'
finish
