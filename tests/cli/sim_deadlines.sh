#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreempt sim on tasks with deadlines: a task with a promise is never late, a refused task is shown.
set -u
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"

try "$GPREEMPT" sim "$SRC/scenarios/h200-alone.yaml"
[[ $err != *'reads no YAML'* ]] || exit 77

expect 0 '' 'sim deadlines' "$GPREEMPT" sim "$SRC/scenarios/deadlines.yaml" --policy priority,edf,lax --json
holds 'all(.runs[] | select(.policy != "priority") | .tasks[] | select(.name | IN("control", "camera", "map")); .refused == false and .missed == 0)' \
	'three are promised their deadlines, and no request is late'
holds 'all(.runs[] | select(.policy != "priority") | .tasks[] | select(.name == "too-much"); .refused and .missed > 0)' \
	'the fourth is refused, and late'
holds '.runs[0].tasks[] | select(.name == "map") | .missed > 20' 'priority knows no deadlines'

try "$GPREEMPT" sim "$SRC/scenarios/deadlines.yaml" --policy edf
[[ $out == *'(refused)'* ]] || fail "the table does not show the refused task: '$out'"
finish
