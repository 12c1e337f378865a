# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of the daemon on the emulated AMD driver: begin_amd, then start_kfd_load and start_daemon.
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/amd.bash
. "$SRC/tests/cli/amd.bash"

# begin_amd OPTION...: of the emulator.
begin_amd() {
	begin_kfd "$@"
	export GPREEMPT_RUN=$work/run GPREEMPT_SOCKET=$work/run/gpreemptd.sock
	mkdir -m 0755 "$GPREEMPT_RUN"
}

# start_daemon OPTION...: sets DAEMON to its pid; its log goes to $work/daemon.
start_daemon() {
	in_background daemon "$GPREEMPTD" --gpu amd "$@"
	DAEMON=$JOB
	until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
}

end_daemon() {
	end_job TERM "$DAEMON" || fail "the daemon ended with $?: $(<"$work/daemon")"
}
