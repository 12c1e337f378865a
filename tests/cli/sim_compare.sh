#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt sim with several policies ends with the requirements that each kept and broke.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77

# scenario DEVICE: an impatient service beside two jobs, one with a share, one with a ceiling.
scenario() {
	cat >"$work/scenario.yaml" <<-END
		duration: 2s
		device: {$1}
		tasks:
		  - {name: inference, class: lc, load: periodic, every: 3ms, kernel: 100us, deadline: 1ms}
		  - {name: training, class: be, load: closed, kernel: 13.6ms, share: 30}
		  - {name: other, class: be, load: closed, kernel: 13.6ms, ceiling: 20}
	END
}

scenario 'slice: 2048us'
expect 0 '' 'compare' "$GPREEMPT" sim "$work/scenario.yaml" --policy none,priority
verdict=$(sed -n '/^compared/,$p' "$work/out")
[[ $(wc -l <<<"$verdict") == 3 ]] || fail "not a line per policy: $verdict"
[[ $verdict == *none*'inference: deadline 1.00 ms missed by '*priority*'inference: deadline; training: share'*'other: ceiling'* ]] ||
	fail "compared: $verdict"

try "$GPREEMPT" sim "$work/scenario.yaml" --policy none,priority --json
holds '.runs[0].tasks[0] | .missed > 0.9 * .requests' 'nearly all miss a deadline of 1 ms under none'
holds '.runs[1].tasks[0].missed == 0' 'none of them does under priority'
holds '.runs[0].tasks[1].missed == null and .runs[0].tasks[1].refused == false' 'no deadline, nothing missed'
holds '[.runs[].broke | any(startswith("inference: deadline"))] == [true, false]' 'broken deadlines'
holds '[.runs[].kept | any(. == "inference: deadline")] == [false, true]' 'kept deadlines'
holds 'all(.runs[]; (.kept | any(startswith("training: share"))) and (.broke | any(startswith("other: ceiling"))))' \
	'shares and ceilings'
holds '.runs[0].broke | any(test("inference: [0-9]+ of 666 requests left over"))' 'overload is named'

# A task that finishes no request is not late, but keeps no deadline either.
sed 's/kernel: 100us/kernel: 10s/' "$work/scenario.yaml" >"$work/silent.yaml"
try "$GPREEMPT" sim "$work/silent.yaml" --policy none,priority --json
holds 'all(.runs[]; .kept | any(startswith("inference:")) | not)' 'no answer keeps no deadline'

# A target is kept if 99 of 100 answers are in time. A refused task keeps nothing.
cat >"$work/target.yaml" <<-'END'
	duration: 20s
	tasks:
	  - {name: random, class: lc, load: poisson, rate: 1282, kernel: 100us, request_marks: true, deadline: 2ms, budget: 100us}
	  - {name: training, class: be, load: closed, kernel: 13.6ms}
END
try "$GPREEMPT" sim "$work/target.yaml" --policy none,qos --json
holds '.runs[1].tasks[0] | .missed > 0 and .missed < 0.01 * .requests' 'a few miss the target'
holds '.runs[1] | .broke == [] and (.kept[0] | test("^random: deadline 2.00 ms in 99[.][0-9]+ %$"))' 'a target is kept by 99 of 100'
holds '.runs[0] | .broke | any(startswith("random: deadline 2.00 ms missed by"))' 'a target is missed'
holds '.runs[1].tasks[0] | .mean_us > 0 and .mean_us < .p99_us' 'JSON has means'
cat >"$work/target.yaml" <<-'END'
	duration: 5s
	tasks:
	  - {name: modest, class: be, load: periodic, every: 200ms, kernel: 1ms, share: 60}
	  - {name: training, class: be, load: closed, kernel: 5ms, share: 60}
END
try "$GPREEMPT" sim "$work/target.yaml" --policy none,qos --json
holds '.runs[1] | all(.tasks[]; .refused) and .tasks[0].work_pct > 98' 'more than the whole is refused'
holds '.runs[1] | .broke[0] == "modest: refused" and (.kept | any(startswith("modest:")) | not)' 'the refused keep nothing'

# A task that wants less than its share has its share.
sed -i 's/share: 30/share: 30, gap: 1s/' "$work/scenario.yaml"
try "$GPREEMPT" sim "$work/scenario.yaml" --policy priority --json
holds '.runs[0].kept | any(startswith("training: share"))' 'a share is kept where it is not wanted'

try "$GPREEMPT" sim "$work/scenario.yaml" --policy priority
[[ $out != *compared* ]] || fail 'one policy is compared with nothing'

# Where tasks run at the same time, best-effort work is counted in time of the whole device. A share
# is counted in time, whether or not the task fills the device.
cat >"$work/narrow.yaml" <<-'END'
	duration: 1s
	device: {model: cwsr}
	tasks:
	  - {name: inference, class: lc, load: periodic, every: 10ms, kernel: 1ms}
	  - {name: narrow, class: be, load: closed, kernel: 2ms, width: 40, share: 38, count: 2}
END
try "$GPREEMPT" sim "$work/narrow.yaml" --policy none,priority
verdict=$(grep '^none  ' "$work/out")
[[ $verdict =~ \ (9[0-9]\.[0-9])\ .*narrow-2:\ share\ 9[0-9]\.[0-9]\ of\ 38 ]] ||
	fail "two narrow tasks: $verdict"
try "$GPREEMPT" sim "$work/narrow.yaml" --policy none,share
verdict=$(grep '^share  ' "$work/out")
[[ $verdict == *'narrow-2: share 4'*' of 38'* ]] || fail "two narrow tasks in turns: $verdict"

# The pauses of a closed loop do not count against its share.
cat >"$work/pauses.yaml" <<-'END'
	duration: 10s
	tasks:
	  - {name: paid, class: be, load: closed, kernel: 1ms, gap: 200us, share: 50}
	  - {name: other, class: be, load: closed, kernel: 13.6ms, share: 50}
END
try "$GPREEMPT" sim "$work/pauses.yaml" --policy none,share --json
holds '.runs[0].broke | any(startswith("paid: share"))' 'pauses without a policy'
holds '.runs[1] | (.kept | length == 2) and (.broke | length == 0)' 'a loop with pauses has its share'

# A policy that this device cannot run is named with the reason, and the others run. edf needs to
# hold tasks.
scenario 'slices: false, max_held: 0, activity: none'
needy=edf
if grep -qx "$needy" <("$GPREEMPT" policy --names | tr ' ' '\n'); then
	expect 0 '' 'a policy that cannot run' "$GPREEMPT" sim "$work/scenario.yaml" --policy "none,$needy"
	[[ $out == *$'\n'"$needy  "*"cannot run: policy $needy "* ]] || fail "why it cannot run: $out"
	[[ $out == *$'\nnone  '* ]] || fail 'none did not go on'
	try "$GPREEMPT" sim "$work/scenario.yaml" --policy "$needy,none" --json
	holds '(.runs[0].cannot_run | startswith("policy ")) and (.runs[0] | has("tasks") | not)' 'JSON says why'
	holds '.runs[1].tasks | length == 3' 'JSON has the others'
	expect 1 "gpreempt: policy $needy *" 'nothing can run' "$GPREEMPT" sim "$work/scenario.yaml" --policy "$needy"
fi
finish
