# SPDX-License-Identifier: Apache-2.0
"""The result file of a load: the top of load.cu describes the format."""

import bisect
import math
import os

from process import Failed


def quantile(ordered, share):
    """The value at or below which `share` of the sorted values lie, by nearest rank; 0 of none."""
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else 0


class LoadLog:
    def __init__(self, path):
        self.latency_ns, self.done_ns = [], []
        self.from_ns = self.to_ns = 0  # the window in which requests were served
        self.iterations = self.kernel_ns = self.late = 0
        self.gpu = self.check = ""
        name = os.path.basename(path)
        try:
            with open(path, errors="replace") as file:
                words = [self._take(*line.rstrip("\n").partition(" ")[::2]) for line in file]
        except OSError as error:
            raise Failed(f"{name} has no results: {error.strerror}") from error
        except ValueError as error:
            raise Failed(f"{name} is damaged: {error}") from error
        if "end" not in words:
            raise Failed(f"{name}: the results are incomplete")

    def _take(self, word, rest):
        """One line. Unknown words are skipped."""
        if word == "l":
            self.latency_ns.append(int(rest))
        elif word == "d":
            self.done_ns.append(int(rest))
        elif word in ("gpu", "check"):
            setattr(self, word, rest)
        elif word in ("iterations", "kernel_ns", "late"):
            setattr(self, word, int(rest))
        elif word == "window":
            self.from_ns, self.to_ns = (int(number) for number in rest.split())
        return word

    @property
    def right(self):
        """Whether every result equalled the reference."""
        return self.check.split(" ")[0] == "ok"

    def _done_at(self, at_ns):
        """Kernels done at that time, from the end of the first: nothing is known before it."""
        done = self.done_ns
        after = bisect.bisect_right(done, at_ns)
        if after in (0, len(done)):
            return max(after - 1, 0)
        return after - 1 + (at_ns - done[after - 1]) / (done[after] - done[after - 1])

    def work(self, from_ns, to_ns):
        """Kernels done in the window. A kernel that crosses an edge counts by its part inside."""
        return self._done_at(to_ns) - self._done_at(from_ns)
