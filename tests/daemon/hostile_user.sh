#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A local user without any right has file systems that never answer, in a user namespace of their own:
# files named nvidiactl, an executable, a page of an environment. Holds and releases go on, and the
# daemon and the commands can be killed.
set -u
[[ -x ${GPREEMPTD-} ]] || {
	echo 'gpreemptd is not built'
	exit 77
}
# shellcheck source=tests/cli/nvidia.bash
. "$SRC/tests/cli/nvidia.bash"
user=59001 # a uid without an account
begin_emu --gpus 1
as_user=(setpriv --reuid "$user" --regid "$user" --clear-groups)
export GPREEMPT_RUN=$work/run GPREEMPT_SOCKET=$work/run/gpreemptd.sock GPREEMPT_KFD=$work/no-kfd
mkdir -m 0755 "$GPREEMPT_RUN"
chmod 755 "$work" "$EMU_TMP"
cp "$GPREEMPT" "$work/gpreempt"
printf 'policy: none\nrules:\n  - {match: {env: "NO=NE", exe: "/no/*"}, class: be}\n' >"$work/config"

start_daemon() { # start_daemon NAME: of its log
	in_background "$1" "$GPREEMPTD" --gpu nvidia --config "$work/config"
	DAEMON=$JOB
	until_true said "$1" '^info daemon.ready' || fail "no daemon: $(<"$work/$1")"
}
# in_time COMMAND...: its status; 137 if it takes longer than 20 s.
in_time() {
	timeout --signal KILL 20 "$@"
}
ended() {
	! kill -0 "$1" 2>/dev/null
}
in_state_d() {
	grep -qs '^State:.*D (' "/proc/$1/status"
}

in_background hostile "$BUILD/tests/daemon/daemon-hostile-user" $user "$BUILD/tests/procinfo/procinfo-target"
hostile=$JOB
until_true eval "said hostile '^ready' || ended $hostile" || fail 'the hostile user does not start'
said hostile '^ready' || {
	wait "$hostile"
	status=$?
	cat "$work/hostile"
	exit $((status == 77 ? 77 : 1))
}
# shellcheck disable=SC2034 # until_true expands it
read -r _ holder target toucher <"$work/hostile"
# shellcheck disable=SC2016 # until_true expands it
until_true eval '[[ $(sed -n "s/^State:.//p" "/proc/$toucher/status") != R* ]]' || fail 'the page is not asked for'
[[ $(stat -c %u "/proc/$holder") == "$user" ]] || fail 'the attacker is not this user'

# The attack is real: other programs of root hang in it. SIGKILL does not end a stat.
stat -L "/proc/$holder/fd/11" >/dev/null 2>&1 &
stuck=$!
page=$(sed -n 's|-.* /mnt/file$||p' "/proc/$target/maps")
dd if="/proc/$target/mem" bs=4096 count=1 skip=$((0x$page / 4096)) >"$work/dd" 2>&1 &
reader=$!
sleep 0.5
kill -KILL "$reader" || fail "the page can be read: $(<"$work/dd")"
kill -KILL "$stuck"
until_true eval "in_state_d $stuck || ended $stuck"
in_state_d "$stuck" || fail 'a stat of the file can be killed: the attack has no effect'

start_load --contexts 1
load=$LOAD
start_daemon daemon
# The user sets a class for the process, so the daemon reads it when its rules change.
in_time "${as_user[@]}" "$work/gpreempt" set "$target" --class be >"$work/set" 2>&1 ||
	fail "set of one's own process: $(<"$work/set")"
kill -HUP "$DAEMON"
until_true said daemon "procinfo.reader-abandoned.*pid=$target" || fail "it was not read: $(<"$work/set") $(<"$work/daemon")"
for _ in 1 2 3; do
	in_time "$GPREEMPT" suspend "$load" >"$work/out" 2>&1 || fail "suspend: $(<"$work/out")"
	is_held "$load" || fail 'not held'
	in_time "$GPREEMPT" resume "$load" >"$work/out" 2>&1 || fail "resume: $(<"$work/out")"
	is_running "$load" || fail 'not released'
done
in_time "$GPREEMPT" suspend "$load" >"$work/out" 2>&1 || fail "suspend: $(<"$work/out")"
kill -KILL "$DAEMON"
until_true ended "$DAEMON" || fail 'a killed daemon does not end'
in_time "$GPREEMPT" resume --all --no-daemon >"$work/out" 2>&1 || fail "resume --no-daemon: $? $(<"$work/out")"
is_running "$load" || fail 'still held after the end of the daemon'
for verb in 'ps --no-daemon --for 1ms' 'doctor' "suspend --no-daemon $load --for 10ms"; do
	# shellcheck disable=SC2086
	in_time "$GPREEMPT" $verb >"$work/out" 2>&1
	(($? < 128)) || fail "$verb hangs"
done
start_daemon second
end_job TERM "$DAEMON" || fail "the second daemon ended with $?: $(<"$work/second")"
ends_right "$load"

# The end of the file systems ends all waits.
kill_job "$hostile"
until_true ended "$stuck" || fail 'a stat hangs after the file systems have ended'
finish
