#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory.py SHIM [EVERY]: allocations of gpreemptd fail (failing_malloc.c).

While the daemon starts, answers, holds and releases, each EVERY-th allocation fails, from a random one
on; in a second pass all later ones fail, too. GPREEMPT_SEED=N repeats a run. The daemon works, or ends
with a message or by a signal. What it says is so, and after its end no task is held.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ENV = os.environ
GPREEMPT, GPREEMPTD, SIMGPU = ENV["GPREEMPT"], ENV["GPREEMPTD"], ENV["SIMGPU"]
KEEPER = ENV["BUILD"] + "/gpreempt-keeper"
FOR_EVER = 1 << 40
SIGNALS_MAX = 0.1  # of the failures; json-c's parser crashes if it has no memory for a member
REQUEST_WRONG = (-32700, -32600)  # it is no JSON, or no request
CALL = 140  # allocations of the daemon for one call, and some more
failures = crashes = 0


def fail(text):
    global failures
    failures += 1
    print("FAILED:", text, flush=True)


class World:
    """A simulated GPU with one program, a keeper, and a daemon that is started when it is needed."""

    def __init__(self, shim):
        self.folder = tempfile.mkdtemp()
        self.env = dict(ENV, GPREEMPT_RUN=self.folder, GPREEMPT_GPU="sim")
        self.plan_path = self.folder + "/plan"
        self.shim = shim
        self.daemon = None
        self.plan(0, 0)
        self.jobs = [self.start("simgpu", [SIMGPU]), self.start("keeper", [KEEPER])]
        self.await_text("simgpu", "ready")
        self.load = self.start("load", [GPREEMPT, "simload", "--name", "load", "--kernel", "5ms"])
        self.jobs.append(self.load)
        self.await_text("load", "ready")

    def start(self, name, command, **more):
        with open(f"{self.folder}/{name}.log", "wb") as log:
            return subprocess.Popen(command, env=dict(self.env, **more), stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=subprocess.STDOUT)

    def log(self, name):
        with open(f"{self.folder}/{name}.log", errors="replace") as log:
            return log.read()

    def await_text(self, name, text):
        until(lambda: text in self.log(name)) or sys.exit(f"{name}: {self.log(name)}")

    def plan(self, left, count):
        """The allocation after `left` others fails, and those after it, `count` in all."""
        with open(self.plan_path, "r+b" if os.path.exists(self.plan_path) else "wb") as f:
            f.write(struct.pack("<qq", left, count))

    def left(self):
        with open(self.plan_path, "rb") as f:
            return struct.unpack("<qq", f.read(16))[0]

    def start_daemon(self):
        """Whether it gets ready; if not, it has ended."""
        self.daemon = self.start("daemon", [GPREEMPTD, "--gpu", "sim", "--policy", "none"],
                                 LD_PRELOAD=self.shim, FAIL=self.plan_path)
        until(lambda: "daemon.ready" in self.log("daemon") or self.daemon.poll() is not None)
        return self.daemon.poll() is None

    def call(self, *args):
        return subprocess.run([GPREEMPT, *args], env=self.env, capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, timeout=20, check=False)

    def state(self):
        out = self.call("ps", "--no-daemon", "--for", "1ms", "--json").stdout
        return next((t["state"] for t in json.loads(out) if t["pid"] == self.load.pid), "none")

    def is_held(self):
        return self.state() in ("held", "suspended")

    def is_put_back(self):
        doctor = json.loads(self.call("doctor", "--json").stdout)
        return not self.is_held() and doctor["records"] == 0

    def may_end(self):
        """Waits a moment: the connections of a process are closed before it has ended."""
        try:
            self.daemon.wait(0.5)
        except subprocess.TimeoutExpired:
            pass

    def ask(self, method, params):
        """The answer; {}: the daemon has closed the connection, and None: it is silent."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = b""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(self.folder + "/gpreemptd.sock")
                s.sendall(json.dumps(request).encode() + b"\n")
                while not answer.endswith(b"\n"):
                    more = s.recv(65536)
                    if not more:
                        raise ConnectionResetError
                    answer += more
        except (ConnectionError, FileNotFoundError):
            self.may_end()
            return {}
        except TimeoutError:
            return None
        return json.loads(answer)

    def end_daemon(self, what):
        """However it ended, nothing is held."""
        global crashes
        self.plan(0, 0)
        if self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
        code = self.daemon.wait(20)
        crashes += code < 0
        if code > 0 and not re.search("^gpreemptd: .|thread-local data: ABORT", self.log("daemon"), re.M):
            fail(f"{what}: the daemon ended with {code} and no message: {self.log('daemon')}")
        until(self.is_put_back) or fail(f"{what}: not put back: {self.call('doctor').stdout}")

    def end(self):
        for job in [self.daemon, *self.jobs]:
            if job:
                job.kill()
                job.wait()
        shutil.rmtree(self.folder)


def until(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.02)
    return False


def check_start(world, n, count):
    what = f"start, {count} from allocation {n} on"
    world.plan(n, count)
    ready = world.start_daemon()
    world.plan(0, 0)
    answer = world.ask("tasks", {}) if ready else {}
    if ready and world.daemon.poll() is None and "result" not in (answer or {}):
        fail(f"{what}: ready, and it answers {answer}: {world.log('daemon')}")
    world.end_daemon(what)


def check_answer(world, what, method, answer):
    pid = world.load.pid
    if answer is None:
        fail(f"{what}: no answer: {world.log('daemon')[-300:]}")
    elif "error" in answer:
        if not answer["error"].get("message") or answer["error"]["code"] in REQUEST_WRONG:
            fail(f"{what}: {answer}")
    elif "result" in answer and world.daemon.poll() is None:
        if method == "tasks" and not any(t.get("pid") == pid for t in answer["result"].get("tasks") or []):
            fail(f"{what}: the program is left out: {answer}")
        elif method != "tasks" and world.is_held() != (method == "hold"):
            fail(f"{what}: {answer}, and it is {world.state()}: {world.log('daemon')[-300:]}")


def check_calls(world, n, count):
    """What the answers say is so."""
    with open(f"/proc/{world.load.pid}/stat") as stat:
        start_time = int(stat.read().rsplit(")", 1)[1].split()[19])
    target = {"target": {"pid": world.load.pid, "start_time": start_time}}
    for method, params in (("hold", target), ("tasks", {}), ("release", target)):
        what = f"{method}, {count} from allocation {n} on"
        if world.daemon.poll() is not None:
            world.end_daemon(what)
            world.start_daemon() or sys.exit(f"no daemon: {world.log('daemon')}")
        if method == "release" and "result" not in (world.ask("hold", target) or {}):
            if world.daemon.poll() is None:
                fail(f"{what}: a hold fails: {world.log('daemon')[-600:]}")
            continue
        world.plan(n, count)
        answer = world.ask(method, params)
        world.plan(0, 0)
        check_answer(world, what, method, answer)


def main():
    every = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    seed = int(ENV.get("GPREEMPT_SEED") or time.time_ns() % 1000000)
    print(f"GPREEMPT_SEED={seed}")
    first = random.Random(seed).randrange(every)
    step = max(1, every // 5)
    world = World(sys.argv[1])
    tried = 0
    try:
        world.plan(FOR_EVER, 1)
        world.start_daemon() or sys.exit(f"no daemon: {world.log('daemon')}")
        starts = FOR_EVER - world.left()
        starts > CALL or sys.exit(f"{starts} allocations: they are not counted")
        world.end_daemon("no failure")
        for count in (1, FOR_EVER):
            for n in range(first, starts, every):
                check_start(world, n, count)
            world.start_daemon() or sys.exit(f"no daemon: {world.log('daemon')}")
            for n in range(first % step, CALL, step):
                check_calls(world, n, count)
                tried += 3
            world.end_daemon("at the end")
            tried += len(range(first, starts, every))
    finally:
        world.end()
    if crashes > tried * SIGNALS_MAX:
        fail("too many of them ended the daemon by a signal")
    print(f"{starts} allocations at the start; {tried} failures tried, {crashes} ended the daemon by a signal")
    sys.exit(failures > 0)


main()
