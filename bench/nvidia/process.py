# SPDX-License-Identifier: Apache-2.0
"""Child processes: started, waited for with a deadline, ended.

Only processes that were started here are signalled, and none outlives the program, however that
ends. Deadlines are times of time.monotonic(), in seconds. Waiting means to look every 20 ms, which
takes no measurable time from the loads.
"""

import ctypes
import os
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOOK_S = 0.02

_libc = ctypes.CDLL(None)
_stop_signal = 0


class Failed(Exception):
    """What went wrong, in one sentence."""


class TimedOut(Failed):
    pass


class Stopped(Exception):
    """The program received SIGINT, SIGTERM or SIGHUP."""


def _on_stop(number, _frame):
    global _stop_signal
    _stop_signal = number


def stop_signal():
    """The signal that asked this program to stop, or 0."""
    return _stop_signal


def prepare():
    """Once, at the start: signals end the waits below, and orphans of children become ours."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_stop)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _become_child(parent, death_signal):
    # A process group of its own: Ctrl-C reaches this program alone, which ends the children.
    os.setpgid(0, 0)
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(126)


class Child:
    """A process. Its output is in the files FILES.out and FILES.err."""

    def __init__(self, name, argv, files, env=None, death_signal=signal.SIGKILL):
        parent = os.getpid()
        self.name, self.files = name, files
        try:
            with open(f"{files}.out", "wb") as out, open(f"{files}.err", "wb") as err:
                self._process = subprocess.Popen(
                    [str(word) for word in argv], bufsize=0, env={**os.environ, **(env or {})},
                    stdin=subprocess.PIPE, stdout=out, stderr=err,
                    preexec_fn=lambda: _become_child(parent, death_signal))
        except (OSError, subprocess.SubprocessError) as error:
            raise Failed(f"{name}: cannot start {argv[0]}: {error}") from error
        self.pid = self._process.pid

    @property
    def status(self):
        """Exit status, or 128 + signal; None while it runs."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    @property
    def ended(self):
        return self._process.poll() is not None

    def output(self, kind="out"):
        """The lines of its output, each with its end."""
        with open(f"{self.files}.{kind}", errors="replace") as file:
            return file.readlines()

    def how_it_ended(self):
        words = [line.strip() for line in self.output("err") if line.strip()]
        return f"{self.name} ended with status {self.status}" + (f": {words[-1]}" if words else "")

    def expect(self, line, deadline):
        """Waits until it has printed that line."""
        while True:
            ended = self.ended  # before reading: a line that it printed last still counts
            if f"{line}\n" in self.output():
                return
            if ended:
                raise Failed(self.how_it_ended())
            if time.monotonic() >= deadline:
                raise TimedOut(f"{self.name} did not print '{line}' in time")
            watch([], None, time.monotonic() + LOOK_S)

    def tell(self, line):
        """Writes a line to its stdin. It is no error if the child has ended."""
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except OSError:
            pass

    def terminate(self):
        self._process.terminate()

    def end(self, grace_s, terminate=True):
        """Closes its stdin, sends SIGTERM unless told not to, and SIGKILL after grace_s seconds.

        Works after this program was asked to stop, and twice. Raises TimedOut after a SIGKILL.
        """
        self._process.stdin.close()
        if terminate:
            self.terminate()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise TimedOut(f"{self.name} did not end within {grace_s} s and was killed") from None


def watch(children, awaited, deadline):
    """Waits until `awaited` has ended, or without one until the deadline has passed.

    If any other of the children ends meanwhile, that is an error.
    """
    while True:
        for child in children:
            if child.ended and child is not awaited:
                raise Failed(child.how_it_ended())
        if _stop_signal:
            raise Stopped()
        if awaited and awaited.ended:
            return
        left = deadline - time.monotonic()
        if left <= 0 and awaited:
            raise TimedOut(f"{awaited.name} did not end in time")
        if left <= 0:
            return
        time.sleep(min(left, LOOK_S))


def _signal_children(number):
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            pids = [int(word) for word in file.read().split()]
        for pid in pids:
            os.kill(pid, number)
        return bool(pids)
    except OSError:
        return False


def end_orphans():
    """Ends what children left behind. Call it when every Child has ended."""
    for tries in range(150):  # 3 s, the last of them with SIGKILL
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if not _signal_children(signal.SIGTERM if tries < 100 else signal.SIGKILL):
            return
        time.sleep(LOOK_S)
