# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command-line tests on the emulated NVIDIA driver share. After `begin_emu [OPTION...]`
# there is an emulator, an undo file of its own, and everything is cleaned up at the end.
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/emu/emu.bash
. "$SRC/tests/emu/emu.bash"
jobs_started=()

begin_emu() {
	[[ -x $RM_EMU && -x $RM_LOAD ]] || {
		echo 'the emulator is not built'
		exit 77
	}
	start_emu "$@"
	trap 'end_jobs; stop_emu; rm -rf "$work"' EXIT
	export GPREEMPT_UNDO=$work/undo
}

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
	: >"$work/$name" # before it starts: what an earlier one said there is not its own
	env --default-signal=INT "$@" >"$work/$name" 2>&1 </dev/null &
	JOB=$!
	jobs_started+=("$JOB")
}

# until_true COMMAND...: waits up to 5 s for it.
until_true() {
	for _ in {1..250}; do
		"$@" && return
		sleep 0.02
	done
	return 1
}

said() { # NAME TEXT
	grep -qs "$2" "$work/$1"
}

# held PID: how many of its compute queues are held; groups_of PID: how many there are.
held() {
	jq "[.clients[].groups[] | select(.pid == $1 and .engine == 1 and .held)] | length" "$EMU/state"
}
groups_of() {
	jq "[.clients[].groups[] | select(.pid == $1 and .engine == 1)] | length" "$EMU/state"
}
done_of() { # kernels that are finished
	jq "[.clients[].groups[] | select(.pid == $1) | .channels[].done] | add" "$EMU/state"
}

is_held() {
	[[ $(held "$1") == "$(groups_of "$1")" ]]
}
is_running() {
	[[ $(held "$1") == 0 ]]
}

# makes_progress PID, stands_still PID: looks twice.
makes_progress() {
	local before
	before=$(done_of "$1")
	until_true eval "((\$(done_of $1) > $before))"
}
stands_still() {
	local before
	before=$(done_of "$1")
	sleep 0.15
	[[ $(done_of "$1") == "$before" ]]
}

# suspend_in_background NAME ARGS...: returns when it holds.
suspend_in_background() {
	local name=$1
	shift
	in_background "$name" "$GPREEMPT" suspend "$@"
	until_true said "$name" held || fail "suspend $* does not hold: $(<"$work/$name")"
}

# ends_right PID: the load ends, and no work was lost or done twice.
ends_right() {
	stop_load "$1" || fail "load $1: $(<"$EMU_TMP/$1")"
	grep -q 'checksum ok' "$EMU_TMP/$1" || fail "load $1: $(<"$EMU_TMP/$1")"
}

records() {
	"$GPREEMPT" doctor --json | jq .records
}
