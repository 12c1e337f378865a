# SPDX-License-Identifier: Apache-2.0
"""The programs that the benchmarks run, and the machine that they run on.

A ready-built program is used if an option or an environment variable names it (GPREEMPT, LOAD).
Otherwise it is built in BUILD, by default build/bench-nvidia.
"""

import glob
import os
import platform
import shutil
import subprocess
import time

from process import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build", "bench-nvidia"))


def _named(name, option):
    """The program that the option or the variable of that name gives; None without either."""
    wanted = option or os.environ.get(name)
    if not wanted:
        return None
    found = shutil.which(wanted)
    if not found:
        raise Failed(f"{wanted} cannot be run: set {name} to the path of a program")
    return os.path.abspath(found)


def _build(log, *argv):
    path = os.path.join(BUILD, log)
    with open(path, "a") as out:
        try:
            return subprocess.call(argv, stdout=out, stderr=out) == 0
        except OSError as error:
            raise Failed(f"cannot run {argv[0]}: {error.strerror}") from error


def gpreempt(option=None):
    named = _named("GPREEMPT", option)
    if named:
        return named
    os.makedirs(BUILD, exist_ok=True)
    folder = os.path.join(BUILD, "gpreempt")
    if not (_build("gpreempt.log", "cmake", "-G", "Ninja", "-S", ROOT, "-B", folder,
                   "-DGPREEMPT_TESTS=OFF", "-DGPREEMPT_DAEMON=OFF")
            and _build("gpreempt.log", "cmake", "--build", folder, "--target", "gpreempt")):
        raise Failed(f"gpreempt was not built: see {BUILD}/gpreempt.log, or set GPREEMPT to the "
                     "path of a ready-built gpreempt")
    return os.path.join(folder, "gpreempt")


def load(option=None):
    named = _named("LOAD", option)
    if named:
        return named
    source, program = os.path.join(HERE, "load.cu"), os.path.join(BUILD, "load")
    if os.path.exists(program) and os.path.getmtime(program) >= os.path.getmtime(source):
        return program
    cuda = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    nvcc = shutil.which("nvcc") or shutil.which(f"{cuda}/bin/nvcc") or shutil.which(
        "/usr/local/cuda/bin/nvcc")
    if not nvcc:
        raise Failed("no nvcc in PATH, CUDA_HOME or /usr/local/cuda: install CUDA, or set LOAD to "
                     "the path of a ready-built load")
    os.makedirs(BUILD, exist_ok=True)
    for arch in ("native", "sm_90"):  # an old nvcc does not know `native`
        if _build("load.log", nvcc, "-O2", "-std=c++17", f"-arch={arch}", "-o", program, source):
            return program
    raise Failed(f"load.cu was not built: see {BUILD}/load.log")


# ---- the machine: no names of hosts or people ----


def _find_line(path, begin):
    """The rest of the first line that begins so, without blanks and a colon before it."""
    try:
        with open(path, errors="replace") as file:
            return next((line[len(begin):].strip(" \t:\n") for line in file
                         if line.startswith(begin)), "")
    except OSError:
        return ""


def describe_machine(report):
    """Fills machine, driver and date, and the GPU where the driver names it without a context."""
    cpu = _find_line("/proc/cpuinfo", "model name") or "unknown CPU"
    u = platform.uname()
    report.machine = f"{os.cpu_count()} x {cpu}, {u.system} {u.release} {u.machine}"
    report.driver = (_find_line("/sys/module/nvidia/version", "")
                     or _find_line("/proc/driver/nvidia/version", "NVRM version"))
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information"))[:1]:
        report.gpu = _find_line(path, "Model")
    report.date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def keep_gpu():
    """Keeps the first GPU initialised until this process ends.

    Without persistence mode the driver shuts it down with its last user, and each start would take
    seconds.
    """
    for path in ("/dev/nvidiactl", "/dev/nvidia0"):
        try:
            os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return  # starts are slower then
