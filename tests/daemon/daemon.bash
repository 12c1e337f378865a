# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of the daemon on a simulated GPU: start_simgpu and start_simload, and start_daemon.
[[ -x ${GPREEMPTD-} && -x ${SIMGPU-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/simgpu.bash
. "$SRC/tests/cli/simgpu.bash"
export SOCKET=$GPREEMPT_RUN/gpreemptd.sock

# start_daemon OPTION...: sets DAEMON to its pid; its log goes to $work/daemon.
start_daemon() {
	in_background daemon "$GPREEMPTD" --gpu sim "$@"
	DAEMON=$JOB
	until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"
}

end_daemon() {
	end_job TERM "$DAEMON" || fail "the daemon ended with $?: $(<"$work/daemon")"
}
