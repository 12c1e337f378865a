#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What gpreempt run says is in force with the first queue: no look of the daemon sees the program
# without it, and that look comes when the GPU announces the newcomer. The measure is how often the
# daemon looks for those that nobody announces.
#
# RUNS and SCAN_MS: how many programs, and that measure.
set -u
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
RUNS=${RUNS:-50} SCAN_MS=${SCAN_MS:-5000}
echo "scheduler: {scan: ${SCAN_MS}ms}" >"$work/config"
start_simgpu --devices 1
start_daemon --policy priority --config "$work/config"
expect 0 '' 'the programs run' timeout 500 python3 "$SRC/tests/daemon/run_in_force.py" "$RUNS"
end_daemon

jq -es --argjson n "$RUNS" 'length == $n and all(.[];
	.class == .wanted and .now == .wanted and .priority_right and .after_ns > 0)' \
	"$work/out" >/dev/null || fail "a program was seen without what was said of it: $out"
jq -s '{runs: length, p50_ms: (map(.after_ns / 1e6) | sort | .[(length - 1) / 2 | ceil]),
	p99_ms: (map(.after_ns / 1e6) | sort | .[(length - 1) * 0.99 | ceil])}' \
	"$work/out" >"$work/summary"
echo "from asking for the first queue to the class in force: $(jq -c . "$work/summary")," \
	"looking for newcomers every $SCAN_MS ms"
jq -e --argjson scan "$SCAN_MS" '.p50_ms * 20 < $scan and .p99_ms * 4 < $scan' "$work/summary" \
	>/dev/null || fail 'a newcomer is not seen when it is announced, but when it is looked for'
finish
