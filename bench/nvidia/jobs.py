# SPDX-License-Identifier: Apache-2.0
"""For the smaller benchmarks: loads and programs that end with the script, and what they did."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import process
import programs
from loadlog import LoadLog
from process import Child, Failed, Stopped


class Jobs:
    """Processes by name. Their files are in `folder`, a private one that ends with the script."""

    def __init__(self, folder, load, gpreempt):
        self.folder, self.load, self.gpreempt = folder, load, gpreempt
        self.children = []

    def spawn(self, name, *argv, **options):
        child = Child(name, argv, os.path.join(self.folder, name), **options)
        self.children.append(child)
        return child

    def start(self, name, *argv, **options):
        """Starts a program and waits until it prints `ready`."""
        child = self.spawn(name, *argv, **options)
        child.expect("ready", time.monotonic() + 60)
        return child

    def start_load(self, name, *words, before=()):
        return self.start(name, *before, self.load, *words, "--out", f"{self.folder}/{name}.log")

    def start_job(self, name):
        """A program that fills the GPU, at once."""
        job = self.start_load(name, "be", "long")
        job.tell("go")
        return job

    def start_scheduler(self, *words):
        return self.start("schedule", self.gpreempt, "schedule", *words,
                          death_signal=signal.SIGTERM)

    @staticmethod
    def log(child):
        """What a load did. Call it when the load has ended; a wrong result is a failure."""
        log = LoadLog(f"{child.files}.log")
        if child.status or not log.right:
            raise Failed(f"{child.how_it_ended()} ({log.check})")
        return log


def pause(seconds, *children):
    """Sleeps. It is a failure if one of the children ends meanwhile."""
    process.watch(children, None, time.monotonic() + seconds)


def stop(*children, grace_s=15):
    """In this order: a scheduler before the loads that it may hold."""
    for child in children:
        child.end(grace_s)


def setting(name, default):
    """A whole number from the environment."""
    return int(os.environ.get(name) or default)


def show_machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if shutil.which(query[0]):
        subprocess.run(query, check=True)
    print(time.strftime("%Y-%m-%d", time.gmtime()), flush=True)


def main(script, gpreempt=None):
    """Runs script(jobs) and exits. Every process that it started has ended then."""
    status, jobs, folder = 0, None, None
    try:
        load, gpreempt = programs.load(), programs.gpreempt(gpreempt)
        process.prepare()
        folder = tempfile.mkdtemp(prefix="gpreempt-bench-", dir="/tmp")
        jobs = Jobs(folder, load, gpreempt)
        script(jobs)
    except (Stopped, KeyboardInterrupt):  # the latter while it builds
        status = 128 + (process.stop_signal() or signal.SIGINT)
    except (Failed, OSError, subprocess.SubprocessError) as error:
        print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        status = 1
    finally:
        for child in reversed(jobs.children if jobs else []):
            try:
                child.end(15)
            except Failed as error:
                print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        process.end_orphans()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)
