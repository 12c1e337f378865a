# SPDX-License-Identifier: Apache-2.0
"""The acceptance criteria.

A criterion about many cells fails with the first cell that fails. It passes only if all of them
were measured with enough requests.
"""

from dataclasses import replace
from typing import Callable, NamedTuple

from cells import CELLS

REQUESTS_WANTED = 1500
PASS, FAIL, NOT_MEASURED = "PASS", "FAIL", "not measured"


class Claim(NamedTuple):
    criterion: str
    says: str
    verdict: str
    detail: str


class Question(NamedTuple):
    criterion: str
    says: str
    unit: str
    is_about: Callable  # of a Cell: whether it counts
    value: Callable  # of a CellResult: a number, or None if it is unknown
    sign: str  # how the value must be to the limit: <= or >=
    limit: Callable  # as value

    def holds(self, value, limit):
        return value >= limit if self.sign == ">=" else value <= limit

    def strain(self, value, limit):
        """How near the value is to its limit, above 1 if it fails: names the worst cell."""
        if self.sign == ">=":
            return limit / value if value > 0 else 1e9
        return value / limit if limit > 0 else 1e9 if value > limit else 0


def _pair(cell):
    return cell.lc and len(cell.be) == 1 and not cell.torch


def _several(cell):
    return cell.lc and len(cell.be) > 1


def _torch(cell):
    return cell.torch


def _is(name):
    return lambda cell: cell.name == name


def _of(arm, number, factor=1.0, plus=0.0):
    def value(result):
        found = getattr(result.arm(arm), number)
        return None if found is None else factor * found + plus
    return value


def _always(limit):
    return lambda result: limit


_added = _of("gpreempt", "p99_added_us")
_fifth_of_default = _of("default", "p99_added_us", 1 / 5)
_lost = _of("gpreempt", "lost_us_per_request")
_kept = _of("gpreempt", "be_share", 100)
_p99 = _of("gpreempt", "p99_us")

QUESTIONS = tuple(Question(*row) for row in (
    ("1a", "p99 added <= 200 us beside every best-effort load", " us",
     _pair, _added, "<=", _always(200)),
    ("1b", "p99 added <= a fifth of what default adds", " us",
     _pair, _added, "<=", _fifth_of_default),
    ("2a", "GPU time lost per request <= its own + 400 us", " us",
     _pair, _lost, "<=", lambda c: (c.kernel_us or c.cell.lc.kernel_us) + 400),
    ("2b", "GPU time lost per request <= default's + 10 %", " us",
     _pair, _lost, "<=", _of("default", "lost_us_per_request", 1.1)),
    ("3a", "two best-effort together >= 98 % of one alone", " %",
     _is("two"), _kept, ">=", _always(98)),
    ("3b", "four best-effort together >= 97 %", " %", _is("four"), _kept, ">=", _always(97)),
    ("3c", "two busy and two idle >= 97 %", " %", _is("two+idle"), _kept, ">=", _always(97)),
    ("3d", "p99 added <= 200 us beside several", " us", _several, _added, "<=", _always(200)),
    ("3e", "p99 added <= a fifth of default's beside several", " us",
     _several, _added, "<=", _fifth_of_default),
    ("4a", "PyTorch: inference p99 <= 1.5 times alone", " us",
     _torch, _p99, "<=", _of("alone", "p99_us", 1.5)),
    ("4b", "PyTorch: training within 2 points of default's", " %",
     _torch, _kept, ">=", _of("default", "be_share", 100, -2)),
    ("4c", "PyTorch: inference better than default", " us",
     _torch, _p99, "<=", _of("default", "p99_us")),
    ("4d", "PyTorch: inference better than MPS", " us", _torch, _p99, "<=", _of("mps", "p99_us")),
))


def _measured_together(report, cell):
    """The result of a cell without arms of other reports; None if there is none."""
    return next((replace(result, arms={n: arm for n, arm in result.arms.items() if not arm.of})
                 for result in report.cells if result.cell is cell), None)


def _enough(result):
    """In every arm that has requests: a comparison is as good as its weaker side."""
    return all(arm.requests >= REQUESTS_WANTED for arm in result.arms.values() if arm.requests)


def _answer(report, question):
    asked = [cell for cell in CELLS if question.is_about(cell)]
    seen = failed = few = doubtful = 0  # doubtful: too few requests, and it does not hold
    worst = None
    for cell in asked:
        result = _measured_together(report, cell)
        value, limit = (question.value(result), question.limit(result)) if result else (None, None)
        if value is None or limit is None:
            continue
        seen += 1
        holds = question.holds(value, limit)
        if _enough(result) and not report.quick:
            failed += not holds
        else:
            few += 1
            doubtful += not holds
        strain = question.strain(value, limit)
        if worst is None or strain > worst[0]:
            worst = strain, f"worst {value:.1f}{question.unit} (limit {limit:.1f}) at {cell.name}"
    verdict = FAIL if failed else PASS if seen == len(asked) and not few else NOT_MEASURED
    detail = f"none of {len(asked)} cells"
    if worst:
        detail = f"{seen} of {len(asked)} cells, {failed} failed; {worst[1]}"
    if few:
        detail += "; some with too few requests, where it " + (
            "does not hold" if doubtful else "holds")
    return Claim(question.criterion, question.says, verdict, detail)


def _judge_results(report):
    """Criterion 0: without right results none of the others counts."""
    arms = [arm for result in report.cells for arm in result.arms.values()]
    runs = sum(arm.runs for arm in arms)
    # An MPS run that starves lc is a result about MPS. With gpreempt it is a failure.
    behind = sum(result.arm("mps").starved for result in report.cells)
    failed = sum(arm.failures for arm in arms) - behind
    detail = (f"{runs + failed + behind} runs, {failed} failed, "
              f"{sum(arm.mismatches for arm in arms)} of them wrong")
    if behind:
        detail += f"; {behind} run{'s' if behind > 1 else ''} of mps could not keep up"
    return Claim("0", "every run ended with the reference's results",
                 FAIL if failed else PASS if runs else NOT_MEASURED, detail)


def judge(report):
    return [_judge_results(report)] + [_answer(report, question) for question in QUESTIONS]
