#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt sim --sweep: each value has the effect that it has in the file; table, JSON, picture, errors.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/look.bash
. "$SRC/tests/cli/look.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77
cd "$SRC" || exit 1

scenario=$work/scenario.yaml
cat >"$scenario" <<-'END'
	duration: 1s
	tasks:
	  - {name: inference, class: lc, load: poisson, rate: 300, kernel: 100us, deadline: 1ms}
	  - {name: training, class: be, load: closed, kernel: 13.6ms, count: 2}
	  - {name: v1.5, class: be, load: closed, kernel: 1ms, gap: 20ms}
END

# same NAME VALUE SED: the run of that value is the run of the file changed with sed.
same() {
	sed "$3" "$scenario" >"$work/changed.yaml"
	cmp -s "$scenario" "$work/changed.yaml" && fail "$1: '$3' changes nothing"
	"$GPREEMPT" sim "$work/changed.yaml" --policy priority --json | jq .runs[0] >"$work/a"
	jq --arg value "$2" '.points[] | select(.value == $value).run' "$work/out" >"$work/b"
	diff -q "$work/a" "$work/b" >/dev/null || fail "$1=$2 is not what the file makes of it"
}

swept() {
	expect 0 '' "--sweep $1" "$GPREEMPT" sim "$scenario" --policy priority --json --sweep "$1"
}

swept inference.rate=100:1000:4
holds '[.points[].value] == ["100","400","700","1000"] and .sweep == "inference.rate"' 'equal steps'
same inference.rate 400 's/rate: 300/rate: 400/'
swept inference.every=1ms:5ms:3
same inference.every 5ms 's/rate: 300/every: 5ms/'
swept device.switch=50us:0.5ms:4
holds '[.points[].value] == ["50us","200us","350us","500us"]' 'units may differ'
same device.switch 350us 's/^duration/device: {switch: 350us}\nduration/'
swept training.count=1:3:3
same training.count 3 's/count: 2/count: 3/'
swept v1.5.gap=10ms:20.5ms:3
holds '[.points[].value] == ["10ms","15300us","20500us"]' 'decimals as the ends have, and names with a point'
same v1.5.gap 10ms 's/gap: 20ms/gap: 10ms/'
swept seed=3:1:3
holds '[.points[].value] == ["3","2","1"]' 'downwards'
same seed 3 's/^duration/seed: 3\nduration/'
swept inference.priority=1:3:9
holds '[.points[].value] == ["1","2","3"]' 'whole numbers, once each'

# A parameter of one policy: the other policies run once.
try "$GPREEMPT" sim "$scenario" --policy none,priority:age_after=200,rr --json --sweep priority.quantum=10:200:3
holds '[.points[] | [.value, .run.policy]] == [[null,"none"],["10","priority:age_after=200:quantum=10"],[null,"rr"],
	["105","priority:age_after=200:quantum=105"],["200","priority:age_after=200:quantum=200"]]' 'a parameter of a policy'
try "$GPREEMPT" sim "$scenario" --policy priority:quantum=105:age_after=200 --json
jq .runs[0].tasks "$work/out" >"$work/a"
"$GPREEMPT" sim "$scenario" --policy priority:age_after=200 --json --sweep priority.quantum=10:200:3 | jq .points[1].run.tasks >"$work/b"
diff -q "$work/a" "$work/b" >/dev/null || fail 'the parameter is not set'

expect 0 '' 'table and picture' "$GPREEMPT" sim "$scenario" --sweep inference.rate=100:1000:4 --plot "$work/plot.svg"
[[ $(grep -cE '^ +(100|400|700|1000)  (none|priority) ' "$work/out") == 8 ]] || fail "a line for each value and policy: $out"
[[ $out == *'inference.rate  policy '*'lc p99 '*missed*'be work %'* ]] || fail "columns: $out"
look_at_svg "$work/plot.svg" 'trade-off'
holds '[.texts[] | select(. == "100" or . == "400" or . == "700" or . == "1000")] | length >= 6' 'points have figures'
eight=none,priority,rr,priority:quantum=50,priority:quantum=20:age_after=300,rr:quantum=20000
eight+=,priority:age_after=500:quantum=100:lc_slice=100000:age_run=20,rr:quantum=400000
try "$GPREEMPT" sim "$scenario" --sweep inference.rate=100:1000:7 --plot "$work/plot.svg" --policy "$eight"
look_at_svg "$work/plot.svg" 'eight policies'
holds '(.strokes | length) >= 10 and .dashes >= 8' 'eight lines differ in colour and dashes'
try "$GPREEMPT" sim "$scenario" --sweep inference.rate=100:400:2 --plot "$work/plot.svg" --policy fair,share
look_at_svg "$work/plot.svg" 'two that do the same'
holds '.texts | index("share (as fair)")' 'a line under another is named'
if [[ ${PNG_LOOK-} ]]; then
	try "$GPREEMPT" sim "$scenario" --sweep inference.rate=100:1000:4 --plot "$work/plot.png"
	look_at_png "$work/plot.png" 2000 'trade-off as PNG'
fi

# wrong SWEEP PATTERN [ARGUMENT...]: exit 2 with that message.
wrong() {
	expect 2 "$2" "--sweep $1" "$GPREEMPT" sim "$scenario" --sweep "$1" "${@:3}"
}
for text in '' rate inference.rate inference.rate= =1:2:3 inference.rate=1:2 inference.rate=1:2:x \
	inference.rate=a:2:3 inference.rate=1:2:3:4 inference.=1:2:3 .rate=1:2:3 inference.rate=-1:2:3 a.b=1.2.3:4:5; do
	wrong "$text" '*--sweep takes NAME=A:B:N, as *'
done
wrong inference.rate=100:200ms:3 '*either both ends need a unit or neither*'
wrong inference.rate=1:2:1 '*the number of values must be from 2 to 200, not 1*'
wrong inference.rate=1:2:201 '*the number of values must be from 2 to 200, not 201*'
wrong inference.rate=5:5:3 '*the two ends are the same*'
wrong inference.rte=1:5:3 "gpreempt: --sweep inference.rte=1: $scenario:*: unknown key 'rte' in a task; perhaps 'rate' is meant"
wrong nobody.rate=1:5:3 "gpreempt: --sweep nobody.rate=1: there is no task 'nobody' in *; its tasks are: *inference, training, v1.5"
wrong inference.rate=0:5:3 "gpreempt: --sweep inference.rate=0: *'rate' must be a number from 0.0001 *"
wrong inference.kernel=1:5:3 "gpreempt: --sweep inference.kernel=1: *'kernel' needs a unit*"
wrong inference.gap=1ms:5ms:3 "*'gap' does not apply to load 'poisson'*"
wrong training.rate=1:5:3 "*'rate' does not apply to load 'closed'*"
wrong device.swich=1us:5us:3 "*unknown key 'swich' in the device; perhaps 'switch' is meant"
wrong device=1:5:3 "*'device' is not a single value"
wrong priority.quantum=1:20:3 "gpreempt: --sweep priority.quantum=1: parameter 'quantum' of policy priority takes a whole number from 10 to 10000 ms"
wrong priority.speed=1:20:3 "*policy priority has no parameter 'speed'*"
wrong rr.quantum=1000:2000:3 'gpreempt: --sweep changes policy rr, which is not in the comparison; add it with --policy'
wrong inference.rate=1:5:3 '*--sweep cannot be combined with --trace*' --trace "$work/t.json"
wrong inference.rate=1:5:3 '*--sweep was given twice; one sweep at a time*' --sweep seed=1:2:2
wrong training.gap=1ms:5ms:3 '*cannot write the picture to*' --plot "$work/missing/plot.svg"
cp "$work/plot.svg" "$work/before.svg"
wrong nobody.rate=1:5:3 '*there is no task*' --plot "$work/plot.svg"
cmp -s "$work/plot.svg" "$work/before.svg" || fail 'a mistake takes the last picture away'
sed -i '/name: inference/d' "$scenario"
wrong training.gap=1ms:5ms:3 'gpreempt: cannot draw the sweep of *: it needs a latency-critical task *' --plot "$work/plot.svg"
finish
