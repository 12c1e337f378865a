#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kfd_emu.bash, as scripts use it; and kfd-load's options.
set -euo pipefail
# shellcheck source=emu/kfd/kfd_emu.bash
source "$SRC/emu/kfd/kfd_emu.bash"

fail() {
	echo "$*" >&2
	exit 1
}

# wait_for MESSAGE COMMAND...: up to 20 s
wait_for() {
	for _ in {1..2000}; do
		if "${@:2}"; then
			return 0
		fi
		sleep 0.01
	done
	fail "$1"
}

start_kfd_emu --gpu mi250 --gpu navi31

# a load ends by itself, or when it is asked to, and has counted right
start_kfd_load --queues 2 --packets 50
wait "$LOAD" || fail "a load that was left alone lost work"
grep -qx 'done 100 wrong 0' "$KFD_TMP/$LOAD" || fail "$(cat "$KFD_TMP/$LOAD")"
start_kfd_load --queues 2 --gpu 1 --churn 20
has_run() { [[ $(kfd_queue "$LOAD" 0 executed) -gt 0 && $(kfd_count destroy_queue) -gt 4 ]]; }
wait_for "no queue was destroyed and made again" has_run
stop_kfd_load "$LOAD" || fail "a load that changes its queues lost work"

# one that serves requests says how long each took: at least the 3 ms it has to
start_kfd_load --period 5000 --steps 30
served=$KFD_TMP/$LOAD
has_served() { [[ $(grep -c latency "$served") -ge 5 ]]; }
wait_for "no request was served" has_served
stop_kfd_load "$LOAD" || fail "a load that serves requests lost work"
awk '$1 == "latency" && $2 < 3000 { exit 1 }' "$served" || fail "faster than the GPU"

# what is evicted does not run, and its results stay right
start_kfd_load
kfd_emu evict "$LOAD"
[[ $(kfd_queue "$LOAD" 0 evicted) == true ]] || fail "not evicted"
before=$(kfd_queue "$LOAD" 0 executed)
sleep 0.1
[[ $(kfd_queue "$LOAD" 0 executed) == "$before" ]] || fail "an evicted queue runs"
kfd_emu restore "$LOAD"
stop_kfd_load "$LOAD" || fail "an evicted load lost work"

# without a runtime it is one of those that cannot be suspended
start_kfd_load --no-runtime --idle
[[ $(kfd_process "$LOAD" runtime_state) == 0 ]] || fail "the runtime is enabled"
is_gone() { [[ ! -e $GPREEMPT_KFD_SYSFS/proc/$LOAD ]]; }
kill -9 "$LOAD"
wait_for "a dead process has a folder" is_gone
