# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For command-line tests that have something going on in the background; after check.bash.
jobs_started=()

end_jobs() {
	for pid in "${jobs_started[@]}"; do
		kill -9 "$pid" 2>/dev/null
	done
}

# in_background NAME COMMAND...: its output goes to $work/NAME; sets JOB. With SIGINT as it is for a
# command in the foreground.
in_background() {
	local name=$1
	shift
	# shellcheck disable=SC2154 # check.bash makes it
	: >"$work/$name" # before it starts: what an earlier one said there is not its own
	env --default-signal=INT "$@" >"$work/$name" 2>&1 </dev/null &
	JOB=$!
	jobs_started+=("$JOB")
}

# end_job SIGNAL PID: sends the signal and waits; returns the exit status of the job.
end_job() {
	kill -"$1" "$2"
	wait "$2"
}
# kill_job PID: the same with SIGKILL, whatever the status.
kill_job() {
	kill -KILL "$1"
	wait "$1" 2>/dev/null
}

# until_true COMMAND...: repeats the command until it succeeds, for until_limit_s at most. A command
# that hangs is not ended.
until_limit_s=30
[[ -z ${GPREEMPT_SANITIZE-} ]] || until_limit_s=60 # each command takes several times as long
until_true() {
	local end=$((SECONDS + until_limit_s))
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.02
	done
}

said() { # NAME TEXT
	grep -qs "$2" "$work/$1"
}

# suspend_in_background NAME ARGS...: returns when it holds.
suspend_in_background() {
	local name=$1
	shift
	in_background "$name" "$GPREEMPT" suspend "$@"
	until_true said "$name" held || fail "suspend $* does not hold: $(<"$work/$name")"
}

records() {
	"$GPREEMPT" doctor --json | jq .records
}
