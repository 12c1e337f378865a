# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command-line tests on the emulated NVIDIA driver share. After `begin_emu [OPTION...]`
# there is an emulator, an undo file of its own, and everything is cleaned up at the end.
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/jobs.bash
. "$SRC/tests/cli/jobs.bash"
# shellcheck source=emu/nvidia/emu.bash
. "$SRC/emu/nvidia/emu.bash"

begin_emu() {
	[[ -x $RM_EMU && -x $RM_LOAD ]] || {
		echo 'the emulator is not built'
		exit 77
	}
	start_emu "$@"
	trap 'end_jobs; stop_emu; rm -rf "$work"' EXIT
	export GPREEMPT_UNDO=$work/undo GPREEMPT_SOCKET=$work/no-daemon
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

# ends_right PID: the load ends, and no work was lost or done twice.
ends_right() {
	stop_load "$1" || fail "load $1: $(<"$EMU_TMP/$1")"
	grep -q 'checksum ok' "$EMU_TMP/$1" || fail "load $1: $(<"$EMU_TMP/$1")"
}
