#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt sim --trace: the trace keeps the rules of the format and agrees with the table.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77
cd "$SRC" || exit 1

# traced ARGUMENT...: runs it with --trace, checks the trace and leaves its summary as the output.
traced() {
	expect 0 '' "sim $*" "$GPREEMPT" sim --json --trace "$work/trace.json" "$@"
	cp "$work/out" "$work/report"
	expect 0 '' "trace of $*" python3 "$SRC/tests/cli/check_trace.py" "$work/trace.json"
}

# report EXPRESSION: jq on the JSON that was written with the trace.
report() {
	jq -r "$1" "$work/report"
}

cat >"$work/names.yaml" <<-'END'
	duration: 700ms
	tasks:
	  - {name: 'a "quoted" <name> & \ more', class: lc, load: poisson, rate: 200, kernel: 300us}
	  - {name: größer, class: be, load: closed, kernel: 5ms, count: 3}
	  - {name: comes and goes, class: be, load: closed, kernel: 2ms, start: 300ms, stop: 600ms}
	  - {name: idle, load: idle}
END

cat >"$work/cwsr.yaml" <<-'END'
	duration: 500ms
	device: {model: cwsr}
	tasks:
	  - {name: inference, class: lc, load: periodic, every: 10ms, kernel: 1ms, width: 60}
	  - {name: training, class: be, load: closed, kernel: 13.6ms}
	  - {name: narrow, class: be, load: closed, kernel: 2ms, gap: 1ms, width: 30}
END

# Half a second is enough.
for name in h200-corun h200-corun-hint h200-two-be-lc h200-three-be h200-gaps-100us; do
	sed 's/^duration:.*/duration: 500ms/' "scenarios/$name.yaml" >"$work/$name.yaml"
done
for scenario in "$work"/*.yaml; do
	traced "$scenario" --policy none,priority,rr
	holds ".count.switching == $(report '[.runs[].device.switches] | add')" "$scenario: switches"
	holds ".async.request == $(report '[.runs[].tasks[].requests] | add')" "$scenario: requests"
	holds '.processes | length == 3' "$scenario: a process for each policy"
done
traced "$work/names.yaml" --policy none,priority,rr
holds '[.threads[] | select(. == "größer-2 (be)")] | length == 3' 'a thread for each task'
holds '[.threads[] | select(startswith("idle"))] == []' 'none for a task that never did anything'

# Times add up to the values of the table, to the microsecond.
traced "$work/h200-two-be-lc.yaml" --policy priority
holds "(.us.running / 5000 - $(report '.runs[0].device.busy_pct') | fabs) < 0.001" 'busy'
holds "(.us.switching / 5000 - $(report '.runs[0].device.switch_pct') | fabs) < 0.001" 'switching'
holds '.async.hold > 1' 'holds'
traced "$work/cwsr.yaml" --policy rr
holds "(.us.switching / 5000 - $(report '.runs[0].device.switch_pct') | fabs) < 0.001" 'switching of all tasks at once'
holds "(.us.running / 5000 > $(report '.runs[0].device.busy_pct'))" 'tasks run at the same time'

sed -i 's/^duration:.*/devices: 3\nduration: 300ms/' "$work/cwsr.yaml"
traced "$work/cwsr.yaml" --policy none,rr
holds '.processes == ["none, device 0","none, device 1","none, device 2","rr, device 0","rr, device 1","rr, device 2"]' 'devices'
holds ".count.switching == $(report '[.runs[].device.switches] | add') and .async.request == $(report '[.runs[].tasks[].requests] | add')" \
	'of all devices'

# A window: no span is outside, and requests that reach into it are whole.
traced "$work/h200-two-be-lc.yaml" --policy none --from 0.4s --for 20ms
holds '.from_us == 400000 and .to_us == 420000' 'the window is filled and not left'
holds '(.us.running + .us.switching - 20000 | fabs) < 0.001' 'all of it'
holds '.async.request >= 4' 'its requests'
traced "$work/h200-corun.yaml" --policy none --from 0.49s
holds '.from_us == 490000 and .to_us == 500000' 'up to the end'

cp "$work/trace.json" "$work/before.json"
traced "$work/h200-corun.yaml" --policy none --from 0.49s
cmp -s "$work/trace.json" "$work/before.json" || fail 'same seed, another trace'

# The checker itself finds errors.
for wrong in 's/"dur":[0-9.]*/"dur":-1/' 's/"ph":"e"/"ph":"b"/' 's/"dur":[0-9.]*/"dur":900/' \
	's/"name":"thread_name"/"name":"other"/' 's/"name":"process_name"/"name":"other"/' \
	's/"args":{"name":"[^"]*"}/"args":{"name":""}/' 's/"ts":[0-9.]*/"ts":-1/' 's/^]}/]/'; do
	sed "$wrong" "$work/before.json" >"$work/wrong.json"
	! python3 "$SRC/tests/cli/check_trace.py" "$work/wrong.json" >/dev/null 2>&1 || fail "passes: $wrong"
done

# checked EVENT...: the trace with these as well, each "PHASE TIME MORE" on the thread of a device.
checked() {
	local event all=
	for event; do
		read -r phase time more <<<"$event"
		all+="{\"ph\":\"$phase\",\"pid\":1,\"tid\":1,\"ts\":$time,\"name\":\"more\"$more},"
	done
	sed "1s/\$/{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"x\"}},$all/" \
		"$work/before.json" >"$work/more.json"
	python3 "$SRC/tests/cli/check_trace.py" "$work/more.json" >"$work/more.out" 2>&1
}
arrow=',"cat":"a","id":7' value=',"args":{"n":1}'
checked 'B 1' 'B 2' 'E 3' 'E 3' "s 1 $arrow" "t 2 $arrow" "f 3 $arrow" "C 1 $value" "C 2 $value" ||
	fail "a trace that keeps the rules: $(<"$work/more.out")"
for wrong in 'B 1' 'E 1' 'B 2|E 1' 'B 2|E 3|B 1|E 2' "s 1 $arrow" "f 1 $arrow" "s 2 $arrow|f 1 $arrow" 's 1|f 2' \
	"C 1 $value|C 1 $value" 'X 1 ,"dur":-1' 'b 1 ,"id":"0x1"' 'i 1'; do
	IFS='|' read -ra events <<<"$wrong"
	! checked "${events[@]}" || fail "passes: $wrong"
done

try "$GPREEMPT" sim h200-corun --trace "$work/missing/trace.json"
exits 2 "gpreempt: cannot write the trace to $work/missing/trace.json: No such file or directory" 'no folder'
if [[ -e /dev/full ]]; then
	try "$GPREEMPT" sim h200-corun --trace /dev/full
	exits 1 'gpreempt: cannot write the trace to /dev/full: No space left on device' 'full disk'
fi

# An old file stays until a new one is complete, and no temporary file is left.
scenario=$work/h200-corun.yaml
cp "$scenario" "$work/before.yaml"
try "$GPREEMPT" sim "$scenario" --trace "$work/../${work##*/}/h200-corun.yaml"
exits 2 "gpreempt: $scenario is the scenario; the trace needs a file of its own" 'over the scenario'
cmp -s "$scenario" "$work/before.yaml" || fail 'the scenario was written over'
try "$GPREEMPT" sim "$scenario" --plot "$work/one.svg" --trace "$work/one.svg"
exits 2 'gpreempt: --plot and --trace need a file each, not both *' 'two in one'
echo old >"$work/old.json"
ln -s old.json "$work/link.json"
try "$GPREEMPT" sim "$scenario" --trace "$work/old.json" --plot "$work/new.svg" --policy edf:x=1
[[ $(<"$work/old.json") == old && ! -e $work/new.svg ]] || fail 'a run that failed wrote something'
timeout -s KILL 0.05 "$GPREEMPT" sim h200-corun --policy none,priority,rr --trace "$work/old.json" >"$work/out" 2>&1
[[ $? != 137 || $(<"$work/old.json") == old ]] || fail 'a run that was killed wrote something'
expect 0 '' 'through a link' "$GPREEMPT" sim "$scenario" --trace "$work/link.json" --policy none --for 10ms
[[ -L $work/link.json && $(jq '.traceEvents | length' "$work/old.json") -gt 1 ]] || fail 'the link was replaced'
try "$GPREEMPT" sim "$scenario" --trace /dev/stdout --policy none --for 1us
[[ $(head -c 1 "$work/out") == '{' ]] || fail 'nothing on standard output'
[[ -z $(find "$work" -name '*.json.*' -o -name '*.svg.*') ]] || fail "left behind: $(ls "$work")"

expect 2 '*--from and --for need --plot or --trace*' 'a window of nothing' "$GPREEMPT" sim h200-corun --from 1s
try "$GPREEMPT" sim h200-corun --trace "$work/t.json" --from 30s
exits 2 'gpreempt: --from 30.0 s is after the end of the scenario at 30.0 s' 'behind the end'
expect 2 'gpreempt: --for must be longer than 0' 'empty window' "$GPREEMPT" sim h200-corun --trace "$work/t.json" --for 0s
expect 2 "*--for takes a time such as 500ms, 10s or 2m, not 'long'*" 'no time' "$GPREEMPT" sim h200-corun --trace "$work/t.json" --for long
finish
