# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For command-line tests on a simulated GPU in real time: a server in a folder of its own.
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/jobs.bash
. "$SRC/tests/cli/jobs.bash"
trap 'end_jobs; rm -rf "$work"' EXIT
export GPREEMPT_RUN=$work/run GPREEMPT_GPU=sim
unset GPREEMPT_SIMGPU GPREEMPT_UNDO
mkdir -m 700 "$GPREEMPT_RUN"

# start_simgpu ARGS...: sets GPU to its pid.
start_simgpu() {
	in_background simgpu "$SIMGPU" "$@"
	# shellcheck disable=SC2034 # for the scripts that use this
	GPU=$JOB
	until_true said simgpu '^ready$' || fail "no simulated GPU: $(<"$work/simgpu")"
}

# start_simload NAME ARGS...: sets LOAD to its pid; its output goes to $work/NAME.
start_simload() {
	local name=$1
	shift
	in_background "$name" "$GPREEMPT" simload --name "$name" "$@"
	# shellcheck disable=SC2034
	LOAD=$JOB
	until_true said "$name" '^ready$' || fail "simload $* is not ready: $(<"$work/$name")"
}

# state_of PID: held, running, waiting, active or idle.
state_of() {
	"$GPREEMPT" ps --for 1ms --json | jq -r ".[] | select(.pid == $1) | .state"
}
is_held() {
	[[ $(state_of "$1") == held ]]
}
is_loose() {
	[[ $(state_of "$1") == @(running|waiting|active|idle) ]]
}
