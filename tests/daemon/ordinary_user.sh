#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An ordinary user and the machine's daemon in /run/gpreempt, with no variable that says where it is:
# it is found, and nobody else who answers is believed. In a mount namespace of its own.
set -u
if [[ ! ${OWN_RUN-} ]]; then
	unshare --mount true 2>/dev/null || {
		echo 'no mount namespace can be made'
		exit 77
	}
	OWN_RUN=1 exec unshare --mount bash "$0"
fi
mount -t tmpfs -o mode=755 tmpfs /run || exit 77
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
unset GPREEMPT_RUN GPREEMPT_SOCKET XDG_RUNTIME_DIR SOCKET
export GPREEMPT_SIMGPU=$work/simgpu.sock
chmod 755 "$work"
user=$((1500000000 + $$)) # /tmp is everybody's: nobody else's folder may be in the way
impostor=$((user + 500000000))
trap 'end_jobs; rm -rf "$work" "/tmp/gpreempt-$user"' EXIT
cp "$GPREEMPTD" "$SIMGPU" "$work" # where everybody may run them
cp "$GPREEMPT" "$work/gpreempt"

as() { # USER COMMAND...
	setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

# Neither has a daemon yet.
try as "$user" "$work/gpreempt" set 1 --class be
exits 1 'gpreempt: no daemon answers at /run/gpreempt/gpreemptd.sock; start it with *' 'no daemon'

start_simgpu --devices 1
chmod 666 "$GPREEMPT_SIMGPU"
start_daemon --policy none
in_background own setpriv --reuid "$user" --regid "$user" --clear-groups "$work/gpreempt" simload --name own
own=$JOB
until_true said own '^ready$' || fail "no load: $(<"$work/own")"

sees_it() {
	as "$user" "$work/gpreempt" ps --json | jq -e "any(.[]; .pid == $own and has(\"set_by\"))" >/dev/null
}
until_true sees_it || fail "a user's ps does not ask the machine's daemon: $(as "$user" "$work/gpreempt" ps --json)"
expect 0 '' "run by an ordinary user" as "$user" "$work/gpreempt" run --class be -- /bin/true
expect 0 '' "set of one's own program" as "$user" "$work/gpreempt" set "$own" --class be
# What the variable says of another session is no reason not to look further.
XDG_RUNTIME_DIR=/run/nowhere expect 0 '' 'with XDG_RUNTIME_DIR that is not there' as "$user" "$work/gpreempt" set "$own" --class be

# One's own holds. The daemon's records are root's, wherever they stand: that is no failure.
for run in '' /run/gpreempt; do
	for what in "$own" --all; do
		expect 0 '' "suspend of one's own program" as "$user" "$work/gpreempt" suspend "$own"
		GPREEMPT_RUN=$run try as "$user" "$work/gpreempt" resume "$what"
		exits 0 '' "resume $what of one's own hold, GPREEMPT_RUN='$run'"
		[[ $out == "released $own (gpreempt); gpreemptd ($DAEMON) schedules it again if it has a class" ]] || fail "resume $what: $out"
	done
	GPREEMPT_RUN=$run expect 0 '' "resume of what is not held, GPREEMPT_RUN='$run'" as "$user" "$work/gpreempt" resume "$own"
	[[ $out == "$own is scheduled by the daemon ($DAEMON)"* ]] || fail "resume of what is not held: $out"
done
expect 0 '' "set of one's own program to unmanaged" as "$user" "$work/gpreempt" set "$own" --class unmanaged
expect 0 '' 'resume of an unmanaged program' as "$user" "$work/gpreempt" resume "$own"
[[ $out == 'nothing was held' ]] || fail "resume of an unmanaged program: $out"
expect 0 '' "set of one's own program" as "$user" "$work/gpreempt" set "$own" --class be
# doctor says of the machine what the daemon says, and of undo records which ones it sees.
try as "$user" "$work/gpreempt" doctor
[[ $out == *"ok       daemon        gpreemptd runs as process $DAEMON and answers"* && $out == *"says the daemon ($DAEMON)"* ]] ||
	fail "doctor does not ask the machine's daemon: $out"
[[ $out == *'no undo records of this user'*"the daemon ($DAEMON) has its own undo file"* ]] ||
	fail "doctor says of all undo records: $out"
GPREEMPT_SOCKET=/run/gpreempt/gpreemptd.sock GPREEMPT_RUN=$work/nowhere try as "$user" "$work/gpreempt" doctor
[[ $out == *"gpreemptd runs as process $DAEMON and answers"* ]] || fail "doctor does not use GPREEMPT_SOCKET: $out"
in_background idle setpriv --reuid "$user" --regid "$user" --clear-groups sleep 1000
try as "$user" "$work/gpreempt" resume "$JOB"
[[ $out != *scheduled* ]] || fail "a program without queues: $out"

# Command line and environment of other users' programs are private. The daemon reads them for rules.
# shellcheck disable=SC2016
in_background other env SECRET=environment-of-root bash -c 'exec -a command-line-of-root "$0" simload' "$work/gpreempt"
other=$JOB
until_true said other '^ready$' || fail "no load: $(<"$work/other")"
connected() { # the daemon answers in order: a call after this one comes after the subscription
	[[ $(readlink /proc/"$listener"/fd/* 2>/dev/null) == *socket:* ]] && sleep 0.2
}
shows_other() {
	as "$user" "$work/gpreempt" ps --json | jq -e "any(.[]; .pid == $other)" >/dev/null
}
until_true shows_other || fail "ps does not show the program of root"
in_background heard setpriv --reuid "$user" --regid "$user" --clear-groups "$work/gpreempt" events --json
listener=$JOB
until_true connected || fail 'events does not connect'
expect 0 '' 'set by root' "$work/gpreempt" set "$other" --class be
until_true said heard "$other" || fail "no event: $(<"$work/heard")"
for what in 'ps --json' ps 'stats --json' stats 'queues --json' 'policy --json' 'top --once' 'trace --for 100ms --json'; do
	# shellcheck disable=SC2086
	as "$user" "$work/gpreempt" $what >>"$work/heard" 2>&1
done
as "$user" python3 - >>"$work/heard" 2>&1 <<'END'
import socket
for method in ('devices', 'tasks', 'stats', 'policy'):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect('/run/gpreempt/gpreemptd.sock')
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"%s"}\n' % method.encode())
    print(s.makefile().readline())
END
said heard "\"pid\":$other" || fail "nothing was heard of $other: $(<"$work/heard")"
! grep -E 'environment-of-root|command-line-of-root' "$work/heard" || fail "private data of another user"
for file in undo assignments; do
	[[ $(stat -c '%a %u' "/run/gpreempt/$file") == '600 0' ]] || fail "$file: $(stat -c '%a %u' "/run/gpreempt/$file")"
done
kill "$listener" "$other"

# Somebody else makes the user's folder and answers there.
as "$impostor" mkdir -m 777 "/tmp/gpreempt-$user"
echo '{}' >"$work/answers"
: >"$work/heard"
chmod 666 "$work/heard"
in_background fake python3 "$SRC/tests/cli/fake_daemon.py" "/tmp/gpreempt-$user/gpreemptd.sock" "$work/answers" "$work/heard"
fake=$JOB
until_true test -S "/tmp/gpreempt-$user/gpreemptd.sock" || fail "no impostor: $(<"$work/fake")"
chmod 666 "/tmp/gpreempt-$user/gpreemptd.sock"
expect 0 '' 'set beside an impostor' as "$user" "$work/gpreempt" set "$own" --class be
[[ ! -s $work/heard ]] || fail "the impostor heard $(<"$work/heard")"
end_daemon
try as "$user" "$work/gpreempt" run --class be -- /bin/true
exits 125 "gpreempt: /tmp/gpreempt-$user is not a folder that belongs to user $user *GPREEMPT_RUN" 'run with only an impostor'
[[ ! -s $work/heard ]] || fail "the impostor heard $(<"$work/heard")"
kill "$fake"
wait "$fake" 2>/dev/null
rm -r "/tmp/gpreempt-$user"

# One's own daemon comes before the machine's.
start_daemon --policy none
machines=$DAEMON
as_user=(env -u GPREEMPT_SIMGPU setpriv --reuid "$user" --regid "$user" --clear-groups)
in_background simgpu_own "${as_user[@]}" "$work/gpreempt-simgpu"
until_true said simgpu_own '^ready$' || fail "no simulated GPU of one's own: $(<"$work/simgpu_own")"
in_background daemon_own "${as_user[@]}" "$work/gpreemptd" --gpu sim
until_true said daemon_own '^info daemon.ready' || fail "no daemon of one's own: $(<"$work/daemon_own")"
daemon_of() { # USER: the pid of the daemon that answers that user
	as "$1" "$work/gpreempt" stats --for 0s --json | jq .daemon.pid
}
[[ $(daemon_of "$user") == "$JOB" ]] || fail "the user's own daemon ($JOB) is not asked: $(daemon_of "$user")"
[[ $(daemon_of "$impostor") == "$machines" ]] || fail "another user does not reach the machine's daemon"
finish
