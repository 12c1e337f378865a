#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt sim --plot: pictures that are well-formed, complete and not blank, in both formats.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/look.bash
. "$SRC/tests/cli/look.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77
cd "$SRC" || exit 1

cat >"$work/one.yaml" <<-'END'
	duration: 1s
	tasks:
	  - {name: a, class: be, load: closed, kernel: 3ms, gap: 500us}
END
cat >"$work/six.yaml" <<-'END'
	name: six tasks with long names & <signs>
	duration: 1s
	tasks:
	  - {name: recommendation-service-frontend, class: lc, load: poisson, rate: 150, kernel: 300us}
	  - {name: 'speech <to> text & "more"', class: lc, load: periodic, every: 20ms, kernel: 2ms, hint: 300us}
	  - {name: training-of-a-large-language-mo, class: be, load: closed, kernel: 13.6ms}
	  - {name: batch inference, class: be, load: closed, kernel: 3ms, gap: 4ms}
	  - {name: 図形 größe, class: be, load: poisson, rate: 20, kernel: 5ms}
	  - {name: desktop, load: periodic, every: 16ms, kernel: 500us}
END
cat >"$work/many.yaml" <<-'END'
	duration: 200ms
	tasks:
	  - {name: service, class: lc, load: poisson, rate: 10, kernel: 300us, count: 20}
	  - {name: job, class: be, load: closed, kernel: 5ms, count: 20}
END
cat >"$work/cwsr.yaml" <<-'END'
	duration: 1s
	device: {model: cwsr}
	tasks:
	  - {name: inference, class: lc, load: periodic, every: 10ms, kernel: 1ms, width: 60}
	  - {name: training, class: be, load: closed, kernel: 13.6ms}
	  - {name: narrow, class: be, load: closed, kernel: 2ms, gap: 1ms, width: 30}
END
ten=none,priority,rr,priority:quantum=50,priority:quantum=20:age_after=300,rr:quantum=20000
ten+=,priority:age_after=500:quantum=100:lc_slice=100000:age_run=20,rr:quantum=400000,fair,mlfq

# drawn CLAIM ARGUMENT...: draws an SVG and checks it; the output is the summary of check_svg.py.
drawn() {
	expect 0 '' "$1" "$GPREEMPT" sim --plot "$work/plot.svg" "${@:2}"
	look_at_svg "$work/plot.svg" "$1"
}

drawn 'one task' "$work/one.yaml" --policy none
holds '.fills["#e69f00"] > 2 and .fills["#0072b2"] == null' 'one task: a best-effort bar, no other'
holds '.texts | index("held") == null and index("a request arrives") == null' 'the legend is about what is there'

drawn 'three tasks' h200-two-be-lc
holds '.fills["#0072b2"] > 5 and .fills["#e69f00"] > 5 and .fills["url(#hatch)"] > 9 and .fills["url(#stripes)"] > 1' \
	'what runs, switches and holds'
holds '[.texts[] | select(. == "inference (lc)" or . == "training-1 (be)" or . == "training-2 (be)")] | length == 6' \
	'a row for each task under each policy'
holds '.texts | index("p99.9  0.1 %") and index("response time")' 'percentiles'
holds '.texts[1] | test("^12.0 ms from .* on, around the slowest request under priority: inference, 3.. us$")' \
	'the window is the slowest request that fits'
cp "$work/plot.svg" "$work/before.svg"
drawn 'three tasks again' h200-two-be-lc
cmp -s "$work/plot.svg" "$work/before.svg" || fail 'same seed, another picture'

drawn 'policies that make no difference' h200-alone --policy none,priority,rr
holds '.texts | index("one line: none, priority, rr")' 'lines that lie on each other are named'
holds '.hidden_marks == 0' 'their marks are all to be seen'
drawn 'some that do' h200-two-be-lc --policy none,priority,qos
holds '.texts | index("one line: priority, qos")' 'only those that are the same are named'
holds '.hidden_marks == 0' 'all marks are to be seen'
drawn 'policies that differ' h200-two-be-lc --policy none,rr
holds '.texts | any(startswith("one line")) | not' 'lines that differ are not called the same'

drawn 'six tasks, ten policies' "$work/six.yaml" --policy "$ten"
holds '.fills["url(#dots)"] > 5' 'unmanaged tasks have a pattern'
holds '(.strokes | length) > 10 and .dashes >= 10' 'ten policies differ in colour and dashes'
holds '.hidden_marks == 0' 'ten policies: all marks are to be seen'
(($("$GPREEMPT" policy --names | wc -l) <= 10)) || fail 'there are more policies than styles'
holds '.texts | index("recommendation-service-frontend (lc)")' 'long names are whole'
drawn 'forty tasks' "$work/many.yaml"
holds '.texts | any(startswith("16 more rows are not shown")) and any(startswith("14 more tasks with requests are not shown"))' 'the number of rows left out is shown'

drawn 'tasks that run at the same time' "$work/cwsr.yaml" --policy none,priority --for 40ms
holds '.fills["url(#hatch)"] > 2 and .fills["url(#stripes)"] > 2' 'holds and switches of model cwsr'

sed 's/^duration:/devices: 3\nduration:/' "$work/cwsr.yaml" >"$work/fleet.yaml"
drawn 'three devices' "$work/fleet.yaml"
holds '[.texts[] | select(. == "device 2: narrow (be)")] | length == 2' 'a row for each device and task'
sed -i 's/^devices: 3/devices: 30/' "$work/fleet.yaml"
drawn 'thirty devices' "$work/fleet.yaml" --policy none
holds '.texts | any(. == "87 more rows are not shown: tasks: 3, devices: 30")' 'only the device that matters'

drawn 'a window' h200-two-be-lc --from 2s --for 4ms --policy none,rr
holds '.texts[1] == "4.00 ms from 2 s on" and (.texts | index("4 ms"))' 'the window that was asked for'
drawn 'a window of the whole run' "$work/one.yaml" --for 1h
holds '.texts[1] == "1.00 s from 0 s on"' 'no longer than the run'
try "$GPREEMPT" sim "$work/one.yaml" --plot "$work/plot.svg" --trace "$work/trace.json" --json
holds '.runs | length == 2' 'picture, trace and JSON at once'

if [[ ${PNG_LOOK-} ]]; then
	for scenario in one six; do
		expect 0 '' "PNG of $scenario" "$GPREEMPT" sim "$work/$scenario.yaml" --plot "$work/plot.png" --policy none,priority
		look_at_png "$work/plot.png" 2200 "PNG of $scenario"
	done
else
	try "$GPREEMPT" sim "$work/one.yaml" --plot "$work/plot.png"
	exits 1 'gpreempt: this build has no daemon and draws no PNG; *' 'PNG without cairo'
fi

try "$GPREEMPT" sim h200-corun --plot "$work/plot.pdf"
exits 2 'gpreempt: cannot draw to *: the file name must end with .svg or .png' 'another format'
expect 2 'gpreempt: cannot draw to *: the file name must end with .svg or .png' 'only an end' "$GPREEMPT" sim h200-corun --plot .svg
try "$GPREEMPT" sim h200-corun --plot "$work/missing/plot.svg"
exits 2 'gpreempt: cannot write the picture to */missing/plot.svg: No such file or directory' 'no folder'
if [[ -e /dev/full ]]; then
	ln -s /dev/full "$work/full.svg"
	try "$GPREEMPT" sim h200-corun --plot "$work/full.svg"
	exits 1 'gpreempt: cannot write the picture to */full.svg: No space left on device' 'full disk'
fi
finish
