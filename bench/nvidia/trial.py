# SPDX-License-Identifier: Apache-2.0
"""One run: some loads together, in one arm, for one window.

`setup` names the programs and folders of all runs: the options of `run`, and of them `own`, a
private folder with a short name (it has the sockets of MPS), `logs`, a folder for the files of the
loads, and `trials`, the number of runs so far.
"""

import os
import signal
import time
from dataclasses import dataclass, field

from cells import WARM_UP, LcLoad
from loadlog import LoadLog
from process import Child, Failed, TimedOut, end_orphans, watch

EXIT_WRONG_RESULT = 3  # of a load
EXIT_SKIPPED = 77
STARVED_AFTER_S = 30  # and three times the window


@dataclass
class Trial:
    label: str  # for file names
    arm: str
    lc: LcLoad  # None: best-effort work only
    be: tuple
    requests: int
    iterations: int  # of the lc kernel; 0: the load measures how many it needs
    settle_ms: int
    window_ms: int  # without lc
    seed: int


@dataclass
class Outcome:
    error: str = ""  # the first thing that went wrong
    skipped: bool = False  # a load cannot run on this machine
    mismatched: bool = False  # a result was wrong
    starved: bool = False  # lc did not end in time
    latency_ns: list = field(default_factory=list)
    window_s: float = 0.0
    work: list = field(default_factory=list)  # kernels or steps in the window, of each be load
    iterations: int = 0
    kernel_ns: int = 0
    late: int = 0
    gpu: str = ""


class Errors(list):
    """What went wrong, in order. `with errors:` notes a failure and goes on."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _trace):
        if isinstance(error, (Failed, OSError)):
            self.append(str(error))
            return True
        return False


class Mps:
    """NVIDIA's MPS for one run: a control daemon as our child, in directories of its own."""

    def __init__(self, control, folder):
        self.control, self.folder = control, folder
        pipes, logs = f"{folder}/mps", f"{folder}/mps-log"
        os.makedirs(pipes, mode=0o700, exist_ok=True)
        os.makedirs(logs, mode=0o700, exist_ok=True)
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": pipes, "CUDA_MPS_LOG_DIRECTORY": logs}
        self.pipe = f"{pipes}/control"
        if os.path.exists(self.pipe):
            os.unlink(self.pipe)  # of the last run: it must not be taken for the new one
        self.daemon = Child("the MPS daemon", [control, "-f"], f"{folder}/mps-daemon", self.env,
                            death_signal=signal.SIGTERM)

    def wait_ready(self):
        deadline = time.monotonic() + 10
        while not os.path.exists(self.pipe):
            if time.monotonic() >= deadline:
                raise TimedOut("the MPS daemon opened no pipe in 10 s")
            watch([self.daemon], None, time.monotonic() + 0.05)

    def stop(self):
        """Tells it to quit, and ends by force what did not. Call it when its clients have ended."""
        with Errors():
            if not self.daemon.ended:
                control = Child("MPS quit", [self.control], f"{self.folder}/mps-quit", self.env)
                control.tell("quit")
                control.end(10, terminate=False)
        with Errors():
            self.daemon.end(5, terminate=False)
        end_orphans()  # its server


class Run:
    def __init__(self, setup, trial):
        self.setup, self.trial = setup, trial
        self.mps = self.lc = self.scheduler = None
        self.be = []
        self.starved = False
        self.from_ns = self.to_ns = 0

    def loads(self):
        return self.be + ([self.lc] if self.lc else [])

    # ---- start ----

    def _files(self, name):
        return f"{self.setup.logs}/{self.setup.trials:03}-{self.trial.label}-{name}"

    def _start_load(self, name, torch, *words):
        # Without MPS the loads must not join an MPS that happens to run on this machine.
        env = {"CUDA_MPS_PIPE_DIRECTORY": f"{self.setup.own}/none"}
        if self.mps:
            env = {**self.mps.env, "CUDA_MPS_CLIENT_PRIORITY": "0" if name == "lc" else "1"}
        program = [self.setup.python, self.setup.torch] if torch else [self.setup.load]
        files = self._files(f"{self.trial.arm}-{name}")
        return Child(name, [*program, *words, "--out", f"{files}.log",
                            "--lock", f"{self.setup.own}/lock"], files, env)

    def _start_lc(self):
        t = self.trial
        role = ["infer"] if t.lc.torch else [
            "lc", "--kernel-us", t.lc.kernel_us, "--iterations", t.iterations]
        return self._start_load("lc", t.lc.torch, *role, "--period-us", t.lc.period_us, "--count",
                                t.requests, "--warmup", WARM_UP, "--seed", t.seed)

    def start_loads(self):
        """All at once. Their lock lets them make their references one after the other."""
        t = self.trial
        torch = "train" in t.be or (t.lc and t.lc.torch)
        deadline = time.monotonic() + self.setup.ready_timeout * (2 if torch else 1)
        if t.arm == "mps":
            self.mps = Mps(self.setup.mps_control, self.setup.own)
            self.mps.wait_ready()
        for i, kind in enumerate(t.be):
            role = ["train"] if kind == "train" else ["be", kind]
            self.be.append(self._start_load(f"be{i}-{kind}", kind == "train", *role))
        if t.lc:
            self.lc = self._start_lc()
        for load in self.loads():
            load.expect("ready", deadline)

    def _start_scheduler(self):
        argv = [self.setup.gpreempt, "schedule"] + (["--lc", self.lc.pid] if self.lc else [])
        for load in self.be:
            argv += ["--be", load.pid]
        # It restores the processes when it ends, so it gets SIGTERM where loads get SIGKILL.
        self.scheduler = Child("gpreempt", argv + ["--policy", self.setup.policy],
                               self._files("scheduler"), death_signal=signal.SIGTERM)
        self.scheduler.expect("ready", time.monotonic() + 20)

    # ---- the window ----

    def _watch(self, awaited, seconds):
        others = [child for child in (self.scheduler, self.mps and self.mps.daemon) if child]
        watch(self.loads() + others, awaited, time.monotonic() + seconds)

    def measure(self):
        t = self.trial
        for load in self.be:
            load.tell("go")
        if t.arm == "gpreempt":
            self._start_scheduler()
        self._watch(None, 1e-3 * t.settle_ms)
        if not t.lc:
            self.from_ns = time.monotonic_ns()
            self._watch(None, 1e-3 * t.window_ms)
            self.to_ns = time.monotonic_ns()
            return
        self.lc.tell("go")
        try:
            # Three times what it should take: after that the load counts as starved.
            self._watch(self.lc, STARVED_AFTER_S + 3e-6 * (t.requests + WARM_UP) * t.lc.period_us)
        except TimedOut:
            self.starved = True
            raise

    # ---- the end ----

    def end_all(self, errors):
        """The scheduler comes first: a load that is held cannot end."""
        if self.scheduler:
            with errors:
                self.scheduler.end(10)
                if self.scheduler.status:
                    raise Failed(self.scheduler.how_it_ended())
        for load in self.be:
            load.terminate()  # once: a second SIGTERM kills a Python that is about to end
        for load in self.be:
            with errors:
                load.end(15, terminate=False)
        if self.lc:
            with errors:
                self.lc.end(5)
        if self.mps:
            self.mps.stop()
        end_orphans()

    def _read(self, load, out):
        if load.status not in (0, EXIT_WRONG_RESULT):
            raise Failed(load.how_it_ended())
        log = LoadLog(f"{load.files}.log")
        out.gpu = log.gpu or out.gpu
        if load.status or not log.right:
            out.mismatched = True
            raise Failed(f"{load.name}: WRONG RESULT: {log.check}")
        return log

    def _read_lc(self, out):
        log = self._read(self.lc, out)
        self.from_ns, self.to_ns = log.from_ns, log.to_ns
        for name in ("latency_ns", "late", "iterations", "kernel_ns"):
            setattr(out, name, getattr(log, name))
        if len(log.latency_ns) != self.trial.requests:
            raise Failed(f"lc answered {len(log.latency_ns)} of {self.trial.requests} requests")

    def read_results(self, out, errors):
        """Every file is read even after an error: a wrong result must be reported."""
        if self.lc:
            with errors:
                self._read_lc(out)
        for load in self.be:
            with errors:
                out.work.append(self._read(load, out).work(self.from_ns, self.to_ns))
        out.window_s = 1e-9 * (self.to_ns - self.from_ns)


def run_trial(setup, trial):
    """Returns an Outcome; nothing that was started runs any more then. Stopped passes through."""
    setup.trials += 1
    run, out, errors = Run(setup, trial), Outcome(), Errors()
    try:
        with errors:
            run.start_loads()
            run.measure()
    finally:
        run.end_all(errors)
    out.skipped = bool(errors) and EXIT_SKIPPED in [load.status for load in run.loads()]
    out.starved = run.starved
    if not errors or run.starved:
        run.read_results(out, errors)
    out.error = errors[0] if errors else ""
    return out
