#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the programs that bench/nvidia/run starts, on a machine without a GPU: the loads
(load.cu says how they behave), `gpreempt schedule` and nvidia-cuda-mps-control.

FAKE names what goes wrong: wrong, skip, crash, short, starve or scheduler. STARTED is a file to
which every process adds a line: its pid, its arguments and its environment for MPS."""

import os
import signal
import subprocess
import sys
import time

FAKE = os.environ.get("FAKE", "")
told = False


def on_term(_signal, _frame):
    global told
    told = True


def wait_until(condition):
    while not told and not condition():
        time.sleep(0.002)


def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def write_log(lines):
    check = "mismatch 1 wrong results" if FAKE == "wrong" else "ok 0123"
    with open(option("--out"), "w") as out:
        out.write("\n".join(["gpu FAKE GPU", "iterations 77", f"check {check}", *lines, "end", ""]))
    return 3 if FAKE == "wrong" else 0


def wait_for_go():
    print("ready", flush=True)
    sys.stdin.readline()


def best_effort():
    wait_for_go()
    done = []
    while not told:
        time.sleep(0.001)
        done.append(f"d {time.monotonic_ns()}")
    return write_log(done)


def latency_critical():
    if FAKE == "skip":
        print("load: no GPU: none found", file=sys.stderr)
        return 77
    wait_for_go()
    if FAKE == "crash":
        print("load: a CUDA error", file=sys.stderr)
        return 1
    count, period_s = int(option("--count")), 1e-6 * int(option("--period-us"))
    begin = time.monotonic_ns()
    wait_until(lambda: FAKE != "starve")
    for _ in range(0 if told else count):
        time.sleep(period_s / 10)
    samples = [f"l {100_000 + 1000 * i}" for i in range(0 if told else count - (FAKE == "short"))]
    window = f"window {begin} {time.monotonic_ns()}"
    return write_log(["kernel_ns 98000", "late 1", window] + samples)


def schedule():
    print("ready", flush=True)
    wait_until(lambda: False)
    print("statistics", flush=True)
    return 1 if FAKE == "scheduler" else 0


def mps_control():
    pipes = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
    if "-f" not in sys.argv:
        if sys.stdin.readline() == "quit\n":
            os.unlink(f"{pipes}/control")
        return 0
    # The server of MPS: it does not end by itself, and outlives the daemon.
    subprocess.Popen([sys.executable, __file__, "server"])
    open(f"{pipes}/control", "w").close()
    wait_until(lambda: not os.path.exists(f"{pipes}/control"))
    return 0


def main():
    if os.environ.get("STARTED"):
        with open(os.environ["STARTED"], "a") as file:
            file.write(f"{os.getpid()} {' '.join(sys.argv[1:])} "
                       f"pipes={os.environ.get('CUDA_MPS_PIPE_DIRECTORY', '')} "
                       f"priority={os.environ.get('CUDA_MPS_CLIENT_PRIORITY', '')}\n")
    signal.signal(signal.SIGTERM, on_term)
    role = sys.argv[1] if len(sys.argv) > 1 else ""
    if role in ("be", "train"):
        return best_effort()
    if role in ("lc", "infer"):
        return latency_critical()
    if role == "schedule":
        return schedule()
    if role == "server":
        return wait_until(lambda: False)
    return mps_control()


sys.exit(main())
