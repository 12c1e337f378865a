# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of the command line with a real daemon share: simulated GPUs, gpreemptd, programs
# with work. After `begin_daemon [OPTION...]` (of gpreemptd); everything ends with the script.
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"

begin_daemon() {
	start_simgpu --devices "${DEVICES:-1}"
	start_daemon "$@"
}

answers_now() {
	"$GPREEMPT" events --for 1ms >/dev/null 2>&1
}

# load NAME [OPTION...]: a program with work, of which the daemon is told nothing; sets LOAD.
load() {
	start_simload "$@"
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
	before=$(task "$1" ".run_ns // 0")
	until_true eval "((\$(task $1 '.run_ns // 0') > $before))"
}
stands_still() {
	local before
	before=$(task "$1" ".run_ns // 0")
	sleep 0.3
	[[ $(task "$1" ".run_ns // 0") == "$before" ]]
}
