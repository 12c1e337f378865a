#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A log that nobody reads: the daemon goes on, and answers.
set -u
# shellcheck source=tests/daemon/ctl.bash
. "$SRC/tests/daemon/ctl.bash"
begin_daemon --policy priority
end_job TERM "$DAEMON"

mkfifo "$work/log"
exec 9<>"$work/log"
"$GPREEMPTD" --gpu sim 2>"$work/log" &
DAEMON=$!
jobs_started+=("$DAEMON")
until_true answers_now || fail 'the daemon does not answer'
# The pipe is full, and the daemon has something to log. Once the pipe is read, the log goes on.
timeout 100 python3 - "$GPREEMPT_RUN/gpreemptd.sock" "$work/log" <<'END' || fail 'the daemon waits for the reader of its log'
import json, os, socket, sys

s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.settimeout(30)
f = s.makefile("rb")
log = os.open(sys.argv[2], os.O_RDWR | os.O_NONBLOCK)


def set_priority(priority):
    line = {"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"target": {"self": True}, "priority": priority}}
    s.sendall(json.dumps(line).encode() + b"\n")
    assert "result" in json.loads(f.readline())


def until_blocked(work):
    done = []
    try:
        while True:
            done.append(work())
    except BlockingIOError:
        return done


until_blocked(lambda: os.write(log, b"x" * 4096))
for priority in (1, 2, 3):
    set_priority(priority)
assert b"attributes-set" not in b"".join(until_blocked(lambda: os.read(log, 4096)))
set_priority(4)
assert b"process.attributes-set" in b"".join(until_blocked(lambda: os.read(log, 4096)))
END
end_job TERM "$DAEMON" || fail "it ended with $?"
finish
