# SPDX-License-Identifier: Apache-2.0
"""What is measured: the loads, the arms and the cells, and how long each of them takes."""

from dataclasses import dataclass
from typing import FrozenSet, Optional, Tuple

# Ways to run a cell. `alone` is each load by itself; the other arms are compared with it.
ARMS = ("alone", "default", "mps", "gpreempt")

WARM_UP = 20  # requests before the window
MPS_REQUESTS_MAX = 1500  # beside long blocks MPS cannot keep up: each request waits for a block


@dataclass(frozen=True)
class LcLoad:
    name: str
    kernel_us: int  # as asked for; 0: the program decides
    period_us: int
    torch: bool = False


@dataclass(frozen=True)
class Cell:
    name: str
    part: str
    about: str
    lc: Optional[LcLoad]  # None: best-effort work only
    be: Tuple[str, ...]
    requests: int = 0  # per arm, all rounds together
    window_ms: int = 0  # per round, for a cell without lc
    alone_ms: int = 2000  # per round: the first best-effort load alone
    max_rounds: int = 0  # 0: as many as asked for
    with_mps: bool = False

    @property
    def busy(self):
        """Best-effort loads that compute; an idle one only has a context."""
        return sum(kind != "idle" for kind in self.be)

    @property
    def torch(self):
        return self.lc is not None and self.lc.torch

    @property
    def settle_ms(self):
        # Several loads are rotated, which takes some turns to settle; PyTorch fills its caches.
        return 1000 if self.busy > 1 or self.torch else 300

    # The loads of these names are measured alone once per part.
    @property
    def lc_key(self):
        return (self.part, self.lc)

    @property
    def be_key(self):
        return (self.part, self.be[0])


_lc_loads = (LcLoad("100us@3ms", 100, 3000), LcLoad("100us@10ms", 100, 10000),
             LcLoad("1ms@10ms", 1000, 10000))
_every_10ms = _lc_loads[1]
_infer = LcLoad("infer@10ms", 0, 10000, torch=True)
_several = (("two", "two", ("long",) * 2), ("four", "four", ("long",) * 4),
            ("two+idle", "two and two idle", ("long", "long", "idle", "idle")))

CELLS = tuple(
    [Cell(f"{lc.name}+{be}", lc.name, f"{lc.name} beside {be}", lc, (be,), with_mps=True,
          requests=10000 if (lc.name, be) == ("100us@3ms", "long") else 1500)
     for lc in _lc_loads for be in ("long", "short", "low", "memory")]
    + [Cell(name, "several", about if "idle" in name else f"{about} best-effort", None, be,
            window_ms=4000, alone_ms=4000) for name, about, be in _several]
    + [Cell(f"100us@10ms+{name}", "several", f"100us@10ms beside {about}", _every_10ms, be,
            requests=1500, alone_ms=4000) for name, about, be in _several]
    # Two rounds: to start PyTorch takes as long as a round measures.
    + [Cell("torch", "torch", "PyTorch inference beside training", _infer, ("train",),
            requests=1500, alone_ms=5000, max_rounds=2, with_mps=True)])

PARTS = tuple(dict.fromkeys(cell.part for cell in CELLS))


def find(name):
    return next((cell for cell in CELLS if cell.name == name), None)


@dataclass(frozen=True)
class Effort:
    """How much of the cells is run: --quick shortens everything."""
    rounds: int = 3
    quick: bool = False
    arms: FrozenSet[str] = frozenset(ARMS)

    def rounds_of(self, cell):
        return min(self.rounds, cell.max_rounds or self.rounds)

    def requests(self, cell, arm):
        """Requests in one run."""
        if not cell.lc:
            return 0
        total = 60 if self.quick else cell.requests
        if arm == "mps":
            total = min(total, MPS_REQUESTS_MAX)
        return -(-total // (1 if runs_once(cell, arm) else self.rounds_of(cell)))

    def window_ms(self, cell):
        return min(cell.window_ms, 1000) if self.quick else cell.window_ms

    def alone_ms(self, cell):
        return 500 if self.quick else cell.alone_ms

    def arms_in(self, cell, round_number):
        """The arms of a cell that have a run in that round; rounds count from 0."""
        mps_round = 1 if self.rounds_of(cell) > 1 else 0
        return [arm for arm in ARMS[1:] if arm in self.arms
                and (arm != "mps" or cell.with_mps)
                and (not runs_once(cell, arm) or round_number == mps_round)]


def runs_once(cell, arm):
    """MPS beside CUDA loads has one run with all requests: its start costs as much as a round."""
    return arm == "mps" and not cell.torch


def measures_lc_alone(cells, i):
    """Whether the rounds of cells[i] also measure its lc load alone: the first of its part."""
    return cells[i].lc is not None and all(c.lc_key != cells[i].lc_key for c in cells[:i])


def measures_be_alone(cells, i):
    return all(c.be_key != cells[i].be_key for c in cells[:i])


def alone_requests(cells, cell, effort):
    """Requests of one run of the lc load alone: as the cell of the part that has most."""
    return max(effort.requests(c, "alone") for c in cells if c.lc_key == cell.lc_key)


# ---- how long ----


def _start_s(processes, torch):
    """Start and end of the processes of one run: an estimate on the safe side."""
    return (13 if torch else 1.0) + 0.4 * processes


def _serve_s(cell, requests):
    return 1e-6 * cell.lc.period_us * (requests + WARM_UP)


def _arm_s(cell, arm, effort):
    window_s = 1e-3 * effort.window_ms(cell)
    if cell.lc:
        window_s = _serve_s(cell, effort.requests(cell, arm))
    return (_start_s(len(cell.be) + bool(cell.lc), cell.torch) + 1e-3 * cell.settle_ms + window_s
            + {"mps": 3, "gpreempt": 0.3}.get(arm, 0))


def estimate_s(cells, i, effort):
    """Seconds that cells[i] takes, with its loads alone where it measures them."""
    cell, alone_s = cells[i], 0.0
    rounds = effort.rounds_of(cell)
    if "alone" in effort.arms and measures_lc_alone(cells, i):
        alone_s += _start_s(1, cell.torch) + _serve_s(cell, alone_requests(cells, cell, effort))
    if "alone" in effort.arms and measures_be_alone(cells, i):
        alone_s += _start_s(1, cell.torch) + 1e-3 * (cell.settle_ms + effort.alone_ms(cell))
    return alone_s * rounds + sum(_arm_s(cell, arm, effort) for number in range(rounds)
                                  for arm in effort.arms_in(cell, number))
