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
# Each is a line in the log, all together more than a pipe holds.
timeout 100 python3 - "$GPREEMPT_RUN/gpreemptd.sock" <<'END' || fail 'the daemon waits for the reader of its log'
import json, socket, sys

s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.settimeout(30)
f = s.makefile("rb")
for i in range(3000):
    line = {"jsonrpc": "2.0", "id": i, "method": "set", "params": {"target": {"self": True}, "class": "be"}}
    s.sendall(json.dumps(line).encode() + b"\n")
    assert "result" in json.loads(f.readline())
END
end_job TERM "$DAEMON" || fail "it ended with $?"
finish
