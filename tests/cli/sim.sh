#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt sim: table, JSON, seeds, policies with parameters, and error messages.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77

cd "$SRC" || exit 1
expect 0 '' 'sim' "$GPREEMPT" sim scenarios/h200-corun.yaml --policy none,priority,rr
for word in none priority rr 'response p50' 'p99.9' 'left over' 'of alone' inversions switching; do
	[[ $out == *"$word"* ]] || fail "the table lacks '$word'"
done

expect 0 '' 'sim by name' "$GPREEMPT" sim h200-corun --all --json
holds '.scenario == "h200-corun" and .seed == 1' 'JSON names scenario and seed'
[[ $(jq -r '.runs[].policy' "$work/out") == "$("$GPREEMPT" policy --names)" ]] || fail '--all runs all policies'
try "$GPREEMPT" sim h200-corun --all --policy rr --json
holds '[.runs[].policy] | length == (unique | length) and .[0] == "rr"' 'each policy once'
holds 'all(.runs[] | select(.policy | test("edf|lax")); .cannot_run | contains("request marks"))' 'a policy that cannot run has a reason'
holds 'all(.runs[] | select(has("cannot_run") | not); .device | has("busy_pct") and has("switch_pct") and has("switches") and has("preemptions") and has("inversions"))' 'device fields'
holds 'all(.runs[].tasks[]?; (keys - ["class","left","max_us","mean_us","missed","name","p50_us","p999_us","p99_us","refused","requests","work_pct"]) == [])' 'task fields'
holds '(.runs[0].tasks[0].p99_us > 5 * .runs[1].tasks[0].p99_us)' 'priority is 5 times better'
holds 'all(.runs[].tasks[]?; .p50_us <= .p99_us and .p99_us <= .p999_us and .p999_us <= .max_us)' 'percentiles in order'

try "$GPREEMPT" sim h200-two-be-idle --json
holds '.runs[0].tasks | map(select(.name|startswith("idle"))) | length == 2 and all(.[]; .p50_us == null and .work_pct == null)' \
	'what is unknown is null, not 0'

# Same seed, same bytes; another seed, other bytes.
for form in '' --json; do
	"$GPREEMPT" sim h200-corun --all $form --seed 7 >"$work/a"
	"$GPREEMPT" sim h200-corun --all $form --seed 7 >"$work/b"
	"$GPREEMPT" sim h200-corun --all $form --seed 8 >"$work/c"
	cmp -s "$work/a" "$work/b" || fail "same seed, other bytes ($form)"
	! cmp -s "$work/a" "$work/c" || fail "another seed, same bytes ($form)"
done

expect 0 '' 'policy with parameters' "$GPREEMPT" sim h200-two-be --policy priority:quantum=50:age_after=200,none --json
holds '.runs[0].policy == "priority:quantum=50:age_after=200"' 'the parameters are named'

expect 2 '*a scenario is missing: give a file, or a name*' 'no scenario' "$GPREEMPT" sim
expect 2 '*scenario no-such-file.yaml not found in this folder*' 'missing scenario' "$GPREEMPT" sim no-such-file.yaml
expect 2 '*no-such-file.yaml*No such file*' 'missing file' "$GPREEMPT" sim "$work/no-such-file.yaml"
expect 2 '*directory*' 'a directory' "$GPREEMPT" sim "$work"
expect 2 '*one scenario at a time*' 'two scenarios' "$GPREEMPT" sim h200-corun h200-alone
expect 2 "*there is no policy 'nono'; the policies are: none, priority, rr,*" 'unknown policy' "$GPREEMPT" sim h200-corun --policy nono
expect 2 "*has no parameter 'speed'*" 'unknown parameter' "$GPREEMPT" sim h200-corun --policy priority:speed=1
expect 2 '*from 10 to 10000 ms*' 'parameter out of range' "$GPREEMPT" sim h200-corun --policy priority:quantum=1
expect 2 '*--seed takes a whole number*' 'seed that is no number' "$GPREEMPT" sim h200-corun --seed banana

# wrong TEXT PATTERN: a scenario with this text is refused with one line that names file and line number.
wrong() {
	printf '%b' "$1" >"$work/wrong.yaml"
	expect 2 "gpreempt: $work/wrong.yaml:[0-9]*: $2" "scenario ${1:0:40}" "$GPREEMPT" sim "$work/wrong.yaml"
	[[ $(wc -l <"$work/err") == 1 ]] || fail "more than one line: $err"
}
good='tasks:\n  - name: a\n    load: closed\n    kernel: 1ms\n'
printf '%b' "$good" >"$work/good.yaml"
expect 0 '' 'the smallest scenario' "$GPREEMPT" sim "$work/good.yaml"
wrong "${good}    colour: red\n" "*colour*"
wrong "${good}    kernel: 2ms\n" "*kernel*"
wrong 'tasks:\n  - load: closed\n    kernel: 1\n' '*unit*'
wrong 'tasks:\n  - load: poisson\n    kernel: 1ms\n    rate: -5\n' '*rate*'
wrong 'tasks: 7\n' '*tasks*'
wrong 'tasks:\n\t- a\n' '*'
wrong 'duration: 1s\n' '*tasks*'
finish
