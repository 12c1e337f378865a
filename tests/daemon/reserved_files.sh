#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user who describes as many processes as possible does not use up the daemon's files: root still
# connects, sets attributes and sees new programs.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
((EUID == 0)) || {
	echo 'only root can run commands as another user'
	exit 77
}
ulimit -n 128
chmod 755 "$work" "$GPREEMPT_RUN"
cp "$GPREEMPT" "$work/gpreempt" # where everybody may run it
begin_daemon --policy priority
user=$((1500000000 + $$))

# 100 processes of the user, each described by it; the first refusal ends the loop.
# shellcheck disable=SC2016 # for the inner shell
in_background users setpriv --reuid "$user" --regid "$user" --clear-groups bash -c '
	for ((i = 0; i < 100; i++)); do
		sleep 60 &
		"$1" set $! --class be >/dev/null || break
	done
	jobs -p
	echo "described $i"' bash "$work/gpreempt"
until_true said users '^described' || fail "the user's commands do not end: $(<"$work/users")"
said users 'the daemon watches 64 processes, as many as it may for users' || fail "no refusal: $(<"$work/users")"
said users '^described 64$' || fail "refused too early: $(<"$work/users")"

load roots
try "$GPREEMPT" set "$LOAD" --class lc
exits 0 '' "root's set"
is "$LOAD" '.class == "lc"'
! said daemon 'unwatched' || fail "no file was free: $(<"$work/daemon")"
# shellcheck disable=SC2046 # one word per pid
kill $(grep '^[0-9]*$' "$work/users")
finish
