#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpreemptd --wait: a GPU that comes later is found, and until then each reason why there is none is
# logged, once.
set -u
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
export GPREEMPT_SIMGPU=$work/gpu.sock
start_daemon --wait
times() { # TEXT: how often it was given as the reason
	grep -c "device.none .*$1" "$work/daemon"
}
[[ $(times 'no simulated GPU') == 1 ]] || fail "no reason is logged: $(<"$work/daemon")"

# Something else is in the way now: the daemon asks every five seconds.
ln -s gpu.sock "$GPREEMPT_SIMGPU"
until_true said daemon 'device.none .*symbolic links' || fail "a new reason is not logged: $(<"$work/daemon")"
sleep 7
[[ $(times 'symbolic links') == 1 && $(times 'no simulated GPU') == 1 ]] ||
	fail "a reason is logged again and again: $(<"$work/daemon")"

rm "$GPREEMPT_SIMGPU"
start_simgpu --devices 2
has_devices() {
	"$GPREEMPT" stats --for 0s --json | jq -e '.devices | length == 2' >/dev/null 2>&1
}
until_true has_devices || fail "the GPU is not found: $(<"$work/daemon")"
end_daemon
finish
