# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A daemon that answers what it is told (fake_daemon.py), and no GPU. After `begin_fake`.
# shellcheck source=tests/cli/check.bash
. "$SRC/tests/cli/check.bash"
# shellcheck source=tests/cli/jobs.bash
. "$SRC/tests/cli/jobs.bash"

begin_fake() {
	command -v python3 >/dev/null || exit 77
	export GPREEMPT_SOCKET=$work/socket GPREEMPT_RUN=$work/run GPREEMPT_UNDO=$work/undo
	export GPREEMPT_NVIDIACTL=/nonexistent/nvidiactl GPREEMPT_KFD=/nonexistent/kfd
	trap 'end_jobs; rm -rf "$work"' EXIT
	echo '{}' >"$work/answers"
	: >"$work/log"
	in_background fake python3 "$SRC/tests/cli/fake_daemon.py" "$GPREEMPT_SOCKET" "$work/answers" "$work/log"
	# shellcheck disable=SC2034 # for the scripts that use this
	FAKE=$JOB
	until_true said fake ready || fail "the fake daemon does not start: $(<"$work/fake")"
}

# answers JSON: from now on.
answers() {
	echo "$1" >"$work/answers.new"
	mv "$work/answers.new" "$work/answers"
	: >"$work/log"
}

# asked JQ CLAIM: one of the requests since the last `answers` is like this.
asked() {
	jq -es "any(.[]; $1)" "$work/log" >/dev/null || fail "$2: it was asked $(<"$work/log")"
}

one_sentence() {
	# shellcheck disable=SC2154 # try sets it
	[[ $(wc -l <"$work/err") == 1 && $err == gpreempt:* ]] || fail "$1: not one sentence: $err"
}
