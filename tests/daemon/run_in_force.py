#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_in_force.py N: starts N programs with gpreempt run, one after the other, and follows the
daemon's events. Writes a JSON object a line: the class it was started with, the one it had when the
daemon first told of it, what it has now, and the time from when the program asked for its first
queue to that event (ns), which is longer than until the class was in force, not shorter."""
import json
import os
import select
import subprocess
import sys

gpreempt = os.environ["GPREEMPT"]
program_path = os.environ["BUILD"] + "/tests/daemon/daemon-first-queue"
events = subprocess.Popen(
    [gpreempt, "events", "--json", "--kind", "task_in"], stdout=subprocess.PIPE, text=True
)


def next_event(pid):
    while True:
        event = json.loads(events.stdout.readline())
        if event["pid"] == pid:
            return event


def start(options):
    program = subprocess.Popen(
        [gpreempt, *options, "--", program_path], stdout=subprocess.PIPE, text=True
    )
    return program, int(program.stdout.readline())


def end(program):
    program.terminate()
    program.communicate()


# The events have begun when some program is told of; those before it were nobody's to hear.
told = []
while not told:
    end(start(["run", "--class", "be"])[0])
    told = select.select([events.stdout], [], [], 0.2)[0]

for i in range(int(sys.argv[1])):
    wanted = ("lc", "be")[i % 2]
    program, asked_ns = start(["run", "--class", wanted, "--priority", str(i % 16)])
    event = next_event(program.pid)
    tasks = json.loads(subprocess.check_output([gpreempt, "ps", "--json"]))
    task = [t for t in tasks if t["pid"] == program.pid][0]
    print(
        json.dumps(
            {
                "wanted": wanted,
                "class": event.get("class"),
                "now": task["class"],
                "priority_right": task["priority"] == i % 16,
                "after_ns": event["at_ns"] - asked_ns,
            }
        ),
        flush=True,
    )
    end(program)
events.terminate()
events.wait()
