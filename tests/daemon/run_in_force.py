#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_in_force.py N: starts N programs with gpreempt run, one after the other, and follows the
daemon's events. Writes a JSON object a line: the class it was started with, the one it had when the
daemon first told of it, whether it was changed later, and the time from the program's first queue to
that event (ns; less than 0: the daemon was faster than the program's own word)."""
import json
import os
import subprocess
import sys
import time

gpreempt = os.environ["GPREEMPT"]
events = subprocess.Popen(
    [gpreempt, "events", "--json", "--kind", "task_in,attr"], stdout=subprocess.PIPE, text=True
)


def next_event(pid, kind):
    while True:
        event = json.loads(events.stdout.readline())
        if event["event"] == kind and event["pid"] == pid:
            return event


def start(options):
    program = subprocess.Popen(
        [gpreempt, *options, "--", gpreempt, "simload", "--kernel", "1ms", "--for", "60s"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout.readline() == "ready\n", "the program has no queue"
    return program, time.time_ns()


def end(program):
    program.terminate()
    program.communicate()


# The events have begun when the first program is told of.
while True:
    probe, _ = start(["run", "--class", "be"])
    event = json.loads(events.stdout.readline())
    end(probe)
    if event["pid"] == probe.pid:
        break

for i in range(int(sys.argv[1])):
    wanted = ("lc", "be")[i % 2]
    program, ready_ns = start(["run", "--class", wanted, "--priority", str(i % 16)])
    event = next_event(program.pid, "task_in")
    tasks = json.loads(subprocess.check_output([gpreempt, "ps", "--json"]))
    task = [t for t in tasks if t["pid"] == program.pid][0]
    print(
        json.dumps(
            {
                "wanted": wanted,
                "class": event.get("class"),
                "now": task["class"],
                "priority_right": task["priority"] == i % 16,
                "after_ns": event["at_ns"] - ready_ns,
            }
        ),
        flush=True,
    )
    end(program)
events.terminate()
events.wait()
