#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fake_daemon.py SOCKET ANSWERS LOG: speaks the daemon's protocol and answers what it is told, for
claims about the command line that a real daemon would not answer on demand. ANSWERS is a JSON object
that is read again for each request: by method, or by method and a space and the pid of the process
it is about, a result, or {"error": [errno name, sentence]}, or "stuck" (no answer), "bye" (closes),
"noise" (no JSON). "notifications" is a list that follows the answer to subscribe, and then "end"
closes; "after_ns" in one becomes "mono_ns", from now on. LOG gets each request."""
import json
import os
import socket
import sys
import threading
import time

path, answers_path, log_path = sys.argv[1:4]
HELLO = {"version": 1, "daemon": "0.0.0", "pid": os.getpid(), "started_ns": 1, "user": "root"}


def answer_to(request, answers):
    method, params = request["method"], request.get("params", {})
    about = params.get("target", {}).get("pid", params.get("device"))
    return answers.get(f"{method} {about}", answers.get(method, HELLO if method == "hello" else {}))


class Connection:
    def __init__(self, client):
        self.client, self.data = client, b""

    def send(self, value):
        self.client.sendall(json.dumps({"jsonrpc": "2.0", **value}).encode() + b"\n")

    def lines(self):
        while True:
            while b"\n" in self.data:
                line, self.data = self.data.split(b"\n", 1)
                yield json.loads(line)
            more = self.client.recv(65536)
            if not more:
                return
            self.data += more

    def reply(self, request):
        """False: the connection is to be closed."""
        with open(answers_path, encoding="utf-8") as file:
            answers = json.load(file)
        answer = answer_to(request, answers)
        if answer == "stuck":
            return True
        if answer == "noise":
            self.client.sendall(b"HTTP/1.1 400 Bad Request\n")
            return True
        if answer == "bye":
            return False
        if isinstance(answer, dict) and "error" in answer:
            name, sentence = answer["error"]
            error = {"code": -32000, "message": sentence, "data": {"errno": name}}
            self.send({"id": request["id"], "error": error})
            return True
        self.send({"id": request["id"], "result": answer})
        if request["method"] == "subscribe":
            for notification in answers.get("notifications", []):
                if notification == "end":
                    return False
                params = notification["params"]
                if "after_ns" in params:
                    params["mono_ns"] = time.monotonic_ns() + params.pop("after_ns")
                self.send(notification)
        return True

    def serve(self):
        for request in self.lines():
            with open(log_path, "a", encoding="utf-8") as log:
                print(json.dumps(request), file=log)
            if not self.reply(request):
                break
        self.client.close()


server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(path)
server.listen(16)
print("ready", flush=True)
while True:
    threading.Thread(target=Connection(server.accept()[0]).serve, daemon=True).start()
