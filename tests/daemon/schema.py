#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schema.py SOCKET SCHEMA PID: asks a daemon for everything there is and holds what comes back against
the schema. PID is that of a process with tasks."""
import json
import select
import socket
import sys

import jsonschema


class Client:
    def __init__(self, path, schema):
        self.schema = schema
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(30)
        self.connection.connect(path)
        self.lines = self.connection.makefile(encoding="utf-8")
        self.calls = 0
        self.events = []

    def check(self, thing, where):
        jsonschema.validate(thing, {**self.schema, "oneOf": [{"$ref": "#/$defs/" + where}]})

    def read(self):
        line = json.loads(self.lines.readline())
        jsonschema.validate(line, self.schema)
        return line

    def call(self, method, params):
        """The result, which is as the schema says, or None for an error."""
        self.calls += 1
        request = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        self.check(request, "request")
        self.check(params, f"methods/{method}/params")
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        while True:
            line = self.read()
            if line.get("method"):
                self.events.append(line["params"])
                continue
            assert line["id"] == self.calls, line
            if "error" in line:
                print(f"{method} {params}: {line['error']['message']}")
                return None
            self.check(line["result"], f"methods/{method}/result")
            return line["result"]

    def listen(self, seconds):
        while select.select([self.connection], [], [], seconds)[0]:
            self.events.append(self.read()["params"])
            if len(self.events) > 50:
                return


def main(path, schema_path, pid):
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    c = Client(path, schema)
    target = {"pid": pid}
    methods = ["hello", *c.call("hello", {"version": 1})["methods"]]
    for method in methods:
        assert method in schema["$defs"]["methods"], f"{method} is not in the schema"
    assert set(schema["$defs"]["methods"]) == set(methods), "the schema has methods that are not there"

    asked = set()

    def must(method, params):
        asked.add(method)
        result = c.call(method, params)
        assert result is not None, f"{method} {params} failed"
        return result

    must("hello", {"version": 1})
    must("subscribe", {})
    must("subscribe", {"events": sorted(schema["$defs"]["event"]["properties"]["event"]["enum"])})
    must("set", {"target": target, "class": "be", "priority": 3, "weight": 50, "share_permille": 100,
                 "ceiling_permille": 900, "deadline_ns": 5000000, "budget_ns": 1000000, "gang": "a b",
                 "inherit": True})
    assert must("hold", {"target": target, "force": False}) == {"tasks": 1}
    assert [t["state"] for t in must("tasks", {"pid": pid})["tasks"]] == ["suspended"]
    must("release", {"target": target})
    lease = must("hold", {"target": target, "lease_ns": 60 * 10**9})["lease"]
    assert must("hold", {"target": target, "lease_ns": 60 * 10**9, "lease": lease}) == {"tasks": 1, "lease": lease}
    must("hold", {"target": target})
    assert must("release", {"target": target, "lease": lease}) == {"tasks": 0, "held": True}
    assert must("release", {"target": target, "lease": lease}) == {"tasks": 0, "held": True}
    assert must("release_all", {}) == {"tasks": 1}
    must("policy", {"policy": "rr"})
    must("policy", {"policy": "priority:quantum=50", "device": 0})
    assert must("policy", {})["devices"] == ["priority"]
    must("tasks", {"device": 0})
    must("devices", {})
    must("stats", {})
    must("reload", {})
    must("hint", {})
    must("mark", {"begins": True})
    must("mark", {"begins": False})
    assert asked == set(methods), f"not tried: {set(methods) - asked}"

    # What is wrong is an error, as the schema says, and the connection stays.
    for method, params in [("tasks", {"device": 63}), ("set", {"target": {"pid": 4194304}}),
                           ("policy", {"policy": "fairy"}), ("hold", {"target": {"self": True}})]:
        assert c.call(method, params) is None, f"{method} {params} is no mistake"
    c.listen(1)
    kinds = {event["event"] for event in c.events}
    print("events:", *sorted(kinds))
    assert {"held", "released", "policy", "attr"} <= kinds, kinds


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
