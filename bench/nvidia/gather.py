# SPDX-License-Identifier: Apache-2.0
"""Merges the runs of all rounds, arm by arm, into a report."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import List

from cells import ARMS
from loadlog import quantile
from report import Arm


@dataclass
class Sum:
    """What one load, or one arm of a cell, did in all its runs."""
    runs: int = 0
    failures: int = 0
    mismatches: int = 0
    starved: int = 0
    late: int = 0
    window_s: float = 0.0
    latency_ns: List[int] = field(default_factory=list)
    work: List[float] = field(default_factory=list)

    def add(self, out):
        """A failed run counts as such and adds nothing else."""
        if out.error:
            self.failures += 1
            self.mismatches += out.mismatched
            self.starved += out.starved and not out.mismatched
            return
        self.runs += 1
        self.window_s += out.window_s
        self.late += out.late
        self.latency_ns += out.latency_ns
        self.work = [a + b for a, b in zip(self.work or [0.0] * len(out.work), out.work)]

    def rate(self):
        """Kernels a second of the first best-effort load; 0 if it is unknown."""
        return self.work[0] / self.window_s if self.work and self.window_s > 0 else 0

    def count_into(self, arm):
        for name in ("runs", "failures", "mismatches", "starved"):
            setattr(arm, name, getattr(arm, name) + getattr(self, name))

    def latencies_into(self, arm):
        if self.latency_ns:
            self.latency_ns.sort()
            arm.requests, arm.late = len(self.latency_ns), self.late
            arm.p50_us, arm.p99_us, arm.p999_us, arm.max_us = (
                quantile(self.latency_ns, share) / 1e3 for share in (0.5, 0.99, 0.999, 1))


class Gather:
    def __init__(self):
        self.arm = defaultdict(Sum)  # by name of the cell and arm
        self.lc_alone = defaultdict(Sum)  # by lc_key of a cell
        self.be_alone = defaultdict(Sum)  # by be_key
        self.iterations = {}  # of the kernel of an lc load, by lc_key
        self.kernel_us = {}  # its GPU time, likewise

    def _alone(self, cell):
        arm, be = Arm(), self.be_alone[cell.be_key]
        self.lc_alone[cell.lc_key].latencies_into(arm)
        if be.rate() > 0:
            arm.be_share, arm.be_share_each, arm.window_s = 1.0, [1.0], be.window_s
        return arm

    def _beside(self, cell, name, alone):
        arm, runs = Arm(), self.arm[cell.name, name]
        runs.count_into(arm)
        runs.latencies_into(arm)
        if arm.requests and alone.requests:
            arm.p99_added_us = arm.p99_us - alone.p99_us
        # All best-effort loads that compute are of one kind: one rate alone serves for all.
        expected = self.be_alone[cell.be_key].rate() * runs.window_s
        if expected > 0:
            arm.window_s = runs.window_s
            arm.be_share_each = [work / expected for work in runs.work]
            arm.be_share = sum(arm.be_share_each)
            if arm.requests:
                arm.lost_us_per_request = (1 - arm.be_share) * runs.window_s * 1e6 / arm.requests
        return arm

    def fill(self, results):
        """Fills the arms of all cells."""
        counted = set()
        for result in results:
            cell = result.cell
            alone = self._alone(cell)
            # Runs alone count in the cell that measured them, not in every cell that uses them.
            sums = self.lc_alone[cell.lc_key], self.be_alone[cell.be_key]
            for one in sums:
                if id(one) not in counted:
                    counted.add(id(one))
                    one.count_into(alone)
            arms = {name: self._beside(cell, name, alone) for name in ARMS[1:]}
            result.arms = {name: arm for name, arm in arms.items() if arm.runs or arm.failures}
            if sums[0].runs or sums[1].runs or alone.failures:
                result.arms = {"alone": alone, **result.arms}
            result.kernel_us = self.kernel_us.get(cell.lc_key)
