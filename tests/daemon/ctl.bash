# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of the command line with a real daemon share: simulated GPUs, gpreemptd, programs
# with work. After `begin_daemon [OPTION...]` (of gpreemptd); everything ends with the script.
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/jobs.bash
. "$SRC/tests/cli/jobs.bash"

SIMGPU=$BUILD/gpreempt-simgpu

begin_daemon() {
	[[ -x $GPREEMPTD && -x $SIMGPU ]] || {
		echo 'gpreemptd and gpreempt-simgpu are not built'
		exit 77
	}
	export GPREEMPT_RUN=$work/run GPREEMPT_GPU=sim
	unset GPREEMPT_SOCKET GPREEMPT_UNDO GPREEMPT_SIMGPU
	mkdir -m 700 "$GPREEMPT_RUN"
	trap 'end_jobs; rm -rf "$work"' EXIT
	in_background simgpu "$SIMGPU" --devices "${DEVICES:-1}"
	until_true said simgpu ready || fail "the simulated GPU does not start: $(<"$work/simgpu")"
	start_daemon "$@"
}

# start_daemon [OPTION...]: sets DAEMON.
start_daemon() {
	in_background daemon "$GPREEMPTD" --gpu sim "$@"
	# shellcheck disable=SC2034 # for the scripts that use this
	DAEMON=$JOB
	until_true answers_now || fail "the daemon does not answer: $(<"$work/daemon")"
}

answers_now() {
	"$GPREEMPT" events --for 1ms >/dev/null 2>&1
}

# load NAME [OPTION...]: a program with work, of which the daemon is told nothing; sets LOAD.
load() {
	local name=$1
	shift
	in_background "$name" "$GPREEMPT" simload --name "$name" "$@"
	# shellcheck disable=SC2034 # for the scripts that use this
	LOAD=$JOB
	until_true said "$name" ready || fail "$name does not start: $(<"$work/$name")"
}

# task PID JQ: what the daemon knows of it.
task() {
	"$GPREEMPT" ps --json | jq -e "[.[] | select(.pid == $1)][0] | $2"
}

# is PID JQ: waits until this is true of it.
is() {
	until_true eval "task $1 '$2' >/dev/null 2>&1" || fail "not so: '$2' of $(task "$1" .)"
}

# goes_on PID, stands_still PID: by the run time that the daemon measures.
goes_on() {
	local before
	before=$(task "$1" .run_ns)
	until_true eval "((\$(task $1 .run_ns) > $before))"
}
stands_still() {
	local before
	before=$(task "$1" .run_ns)
	sleep 0.3
	[[ $(task "$1" .run_ns) == "$before" ]]
}
