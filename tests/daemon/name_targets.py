# SPDX-License-Identifier: Apache-2.0
"""name_targets.py SOCKET PID...: requests that name processes which do not answer. Each must be refused
with this reason."""
import json
import socket
import sys

client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
answers = client.makefile()
for number, pid in enumerate(sys.argv[2:]):
    request = {"jsonrpc": "2.0", "id": number, "method": "set",
               "params": {"target": {"pid": int(pid)}, "class": "be"}}
    client.sendall(json.dumps(request).encode() + b"\n")
    answer = json.loads(answers.readline())
    print(answer)
    if "does not answer" not in answer.get("error", {}).get("message", ""):
        sys.exit(1)
