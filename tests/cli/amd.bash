# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command-line tests on the emulated AMD driver share. After `begin_kfd [OPTION...]` there
# is an emulator, an undo file of its own, and everything is cleaned up at the end.
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/jobs.bash
. "$SRC/tests/cli/jobs.bash"
# shellcheck source=emu/kfd/kfd_emu.bash
. "$SRC/emu/kfd/kfd_emu.bash"

begin_kfd() {
	[[ -x $KFD_EMU && -x $KFD_LOAD ]] || {
		echo 'the emulator is not built'
		exit 77
	}
	start_kfd_emu "$@"
	trap 'end_jobs; stop_kfd_emu; rm -rf "$work"' EXIT
	export GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/no-daemon GPREEMPT_NVIDIACTL=$work/no-nvidiactl
}

# state EXPRESSION: of the emulator's state; held PID: how many of its compute queues are suspended;
# queues_of PID: how many it has; done_of PID: packets that were executed.
state() {
	jq -c "$1" "$KFD_MNT/state"
}
held() {
	state "[.processes[].queues[] | select(.pid == $1 and .type != 1 and .suspended)] | length"
}
queues_of() {
	state "[.processes[].queues[] | select(.pid == $1 and .type != 1)] | length"
}
done_of() {
	state "[.processes[].queues[] | select(.pid == $1) | .executed] | add"
}
is_held() {
	[[ $(held "$1") == "$(queues_of "$1")" ]]
}
is_running() {
	[[ $(held "$1") == 0 ]]
}
is_debugged() {
	[[ $(state ".processes[] | select(.process == $1) | .debugged") == true ]]
}
is_let_go() {
	! is_debugged "$1"
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

# ends_right PID: the load ends, and no packet was lost or executed twice.
ends_right() {
	stop_kfd_load "$1" || fail "load $1: $(<"$KFD_TMP/$1")"
	grep -q '^done [0-9]* wrong 0$' "$KFD_TMP/$1" || fail "load $1: $(<"$KFD_TMP/$1")"
}

# one_sentence CLAIM: all that was said on standard error.
one_sentence() {
	[[ $(wc -l <"$work/err") == 1 && $err == gpreempt:* ]] || fail "$1: not one sentence: $err"
}
