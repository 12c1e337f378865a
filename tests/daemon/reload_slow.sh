#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A directory of users that takes its time while the configuration is read again: everybody is
# answered meanwhile, the old configuration is in force, and who asked for the new one hears of it.
set -u
# shellcheck source=tests/daemon/daemon.bash
. "$SRC/tests/daemon/daemon.bash"
export GATE=$work/gate LD_LIBRARY_PATH=$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

"$CC" -D_GNU_SOURCE -shared -fPIC -o "$work/libnss_gpslow.so.2" "$SRC/tests/daemon/nss_slow.c" ||
	fail 'the directory of users does not compile'
sed 's/^passwd:.*/& gpslow/' /etc/nsswitch.conf >"$work/nsswitch.conf"
grep -q '^passwd:' "$work/nsswitch.conf" || echo 'passwd: files gpslow' >>"$work/nsswitch.conf"
unshare -m true || {
	echo 'mount namespaces cannot be made here'
	exit 77
}

cat >"$work/config" <<'END'
rules:
  - {match: {comm: gpreempt}, class: be}
END
start_simgpu --devices 1
in_background daemon unshare -m bash -c "mount --bind $work/nsswitch.conf /etc/nsswitch.conf &&
	exec $GPREEMPTD --gpu sim --config $work/config"
DAEMON=$JOB
until_true said daemon '^info daemon.ready' || fail "no daemon: $(<"$work/daemon")"

cat >"$work/ask.py" <<'END'
import os, socket, sys, time

clients = [socket.socket(socket.AF_UNIX) for i in range(2)]
for client in clients:
    client.connect(sys.argv[1])
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
for client in clients:
    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"reload"}\n')
for client in clients:
    print(client.makefile().readline(), flush=True)
END
in_background answer python3 "$work/ask.py" "$SOCKET" "$work/go"
until_true said answer ready || fail "no client: $(<"$work/answer")"

cat >"$work/config" <<'END'
policy: fair
rules:
  - {match: {user: slow-user}, class: lc}
  - {match: {comm: gpreempt}, class: be, priority: 3}
END
touch "$work/go"
kill -HUP "$DAEMON"
for ((i = 0; i < 6; i++)); do # longer than the keeper waits for a sign of life
	timeout 5 "$GPREEMPT" stats --for 0s --json >"$work/out" || fail 'nobody is answered'
	sleep 0.5
done
! said answer jsonrpc || fail "answered before it was read: $(<"$work/answer")"
! said daemon config.loaded || fail 'loaded before the user was known'
holds '.devices[0].policy == "priority"' 'the old policy is in force until then'
touch "$GATE"
until_true said daemon config.loaded || fail "never loaded: $(<"$work/daemon")"
both() { [[ $(grep -c '"result"' "$work/answer") == 2 ]]; }
until_true both || fail "who asked was not answered: $(<"$work/answer")"

# The end does not wait for it.
rm "$GATE"
kill -HUP "$DAEMON"
sleep 0.3
end_daemon
finish
