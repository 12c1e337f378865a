# SPDX-License-Identifier: Apache-2.0
"""The results as plain data: filled by runs or read from JSON, written as JSON."""

import json
import math
import os
import sys
from dataclasses import asdict, dataclass, field
from typing import Dict, List, Optional

import cells as table
from process import Failed

BENCHMARK = "gpreempt-nvidia"
NOTES_MAX = 16
FILE_MAX_BYTES = 16 << 20
COUNTS = ("runs", "failures", "mismatches", "starved", "requests", "late")
LATENCIES = ("p50_us", "p99_us", "p999_us", "max_us")
NUMBERS = LATENCIES + ("p99_added_us", "window_s", "be_share", "lost_us_per_request")
TEXTS = ("machine", "gpu", "driver", "date", "command")


@dataclass
class Arm:
    """Fields are named as in the JSON. None is an unknown number, never 0."""
    runs: int = 0
    failures: int = 0
    mismatches: int = 0  # failures with a wrong result
    starved: int = 0  # failures because lc did not end in time, with right results
    requests: int = 0  # 0: there are no latencies
    late: int = 0  # requests launched more than 100 us after their time
    p50_us: Optional[float] = None
    p99_us: Optional[float] = None
    p999_us: Optional[float] = None
    max_us: Optional[float] = None
    p99_added_us: Optional[float] = None  # p99 less the p99 alone of the same report
    window_s: Optional[float] = None
    be_share: Optional[float] = None  # all best-effort loads together, of one of them alone
    be_share_each: List[float] = field(default_factory=list)
    lost_us_per_request: Optional[float] = None  # GPU time that best-effort work lost
    of: str = ""  # date of the report it was kept from, if not the report of its cell


@dataclass
class CellResult:
    cell: table.Cell
    arms: Dict[str, Arm] = field(default_factory=dict)  # those with a run, in the order of ARMS
    kernel_us: Optional[float] = None  # the GPU time of one request as measured
    date: str = ""  # of the file it was read from
    skipped: bool = False
    notes: List[str] = field(default_factory=list)  # what went wrong, one sentence each

    def arm(self, name):
        return self.arms.get(name) or Arm()

    def note(self, text):
        if len(self.notes) < NOTES_MAX:
            self.notes.append(text)


@dataclass
class Report:
    machine: str = ""
    gpu: str = ""
    driver: str = ""
    date: str = ""
    command: str = ""
    rounds: int = 0
    quick: bool = False
    cells: List[CellResult] = field(default_factory=list)


# ---- writing ----


def _rounded(value):
    return round(value, 5) if isinstance(value, float) else value


def _arm_as_dict(name, arm, cell):
    out = {"arm": name, **{key: _rounded(value) for key, value in asdict(arm).items()}}
    if not out["of"]:
        del out["of"]
    each = (arm.be_share_each + [0.0] * len(cell.be))[:len(cell.be)]
    out["be_share_each"] = [] if arm.be_share is None else [round(share, 4) for share in each]
    return out


def _cell_as_dict(result):
    cell = result.cell
    return {"name": cell.name, "about": cell.about, "kernel_us": _rounded(result.kernel_us),
            "period_us": cell.lc.period_us if cell.lc else None, "skipped": result.skipped,
            "be": cell.be, "arms": [_arm_as_dict(*item, cell) for item in result.arms.items()],
            "notes": [{"note": note} for note in result.notes]}


def to_json(report, claims):
    value = {"benchmark": BENCHMARK, "version": 1, **{key: getattr(report, key) for key in TEXTS},
             "rounds": report.rounds, "quick": report.quick,
             "cells": [_cell_as_dict(result) for result in report.cells],
             "verdicts": [claim._asdict() for claim in claims]}
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_file(path, text):
    """Writes a file whole or not at all."""
    try:
        with open(f"{path}.new", "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}") from error


# ---- reading: what is missing or of another type counts as unknown ----


def _member(value, name, kind, default):
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, kind) else default


def _text(value, name):
    return _member(value, name, str, "")


def _items(value, name):
    return _member(value, name, list, [])


def _number(value, name):
    number = _member(value, name, (int, float), math.nan)
    return float(number) if -1e15 < number < 1e15 else None


def _count(value, name):
    number = _number(value, name) or 0
    return int(number) if 0 < number < 1e9 else 0


def _is_note_of(note, arm):
    """Notes begin with "round N, ARM: "."""
    return note.partition(", ")[2].startswith(f"{arm}:")


def _read_arm(value, name, notes):
    arm = Arm(of=_text(value, "of"), **{key: _count(value, key) for key in COUNTS},
              **{key: _number(value, key) for key in NUMBERS})
    if "starved" not in value:  # a report from before they were counted has them in its notes
        arm.starved = sum(_is_note_of(note, name) and ": lc did not end in time" in note
                          for note in notes)
    arm.starved = min(arm.starved, arm.failures)
    if not arm.requests or None in (getattr(arm, key) for key in LATENCIES):
        arm.requests = 0
        arm.p50_us = arm.p99_us = arm.p999_us = arm.max_us = None
    if arm.be_share is None or arm.window_s is None:
        arm.be_share = arm.window_s = None
    arm.be_share_each = [_number({"each": each}, "each") or 0.0
                         for each in _items(value, "be_share_each")]
    return arm


def _keep_arms(result, former):
    """Arms that only the former report of this cell has stay, with its notes about them."""
    for name, arm in former.arms.items():
        if name not in result.arms:
            arm.of = arm.of or former.date
            result.arms[name] = arm
            for note in former.notes:
                if _is_note_of(note, name):
                    result.note(note)
    result.arms = {name: result.arms[name] for name in table.ARMS if name in result.arms}


def _read_cell(report, value, date):
    cell = table.find(_text(value, "name"))
    if not cell:
        print(f"bench: there is no cell '{_text(value, 'name')}' any more: it is left out",
              file=sys.stderr)
        return
    notes = [_text(note, "note") for note in _items(value, "notes")]
    kernel_us = _number(value, "kernel_us") or 0
    result = CellResult(cell, kernel_us=kernel_us if kernel_us > 0 else None, date=date,
                        skipped=bool(_number(value, "skipped")))
    for arm in _items(value, "arms"):
        if _text(arm, "arm") in table.ARMS:
            result.arms[arm["arm"]] = _read_arm(arm, arm["arm"], notes)
    for note in notes:
        result.note(note)
    former = next((other for other in report.cells if other.cell is cell), CellResult(cell))
    _keep_arms(result, former)
    report.cells = [other for other in report.cells if other is not former] + [result]


def _join(former, text):
    """Parts that were measured on different machines or days are told apart by these texts."""
    return former if text in former else f"{former}; {text}" if former else text


def read_into(report, path):
    """Adds the cells of a file. A cell that is already there is replaced.

    Arms that the file does not have stay with the date of their report: they are shown, but not
    compared with the others.
    """
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read(FILE_MAX_BYTES))
    except OSError as error:
        raise Failed(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failed(f"{path} is not a report of this benchmark: {error}") from error
    if _text(value, "benchmark") != BENCHMARK or not isinstance(value.get("cells"), list):
        raise Failed(f"{path} is not a report of this benchmark")
    for key in TEXTS:
        setattr(report, key, _join(getattr(report, key), _text(value, key)))
    report.rounds = _count(value, "rounds")
    report.quick |= bool(_number(value, "quick"))
    for cell in value["cells"]:
        _read_cell(report, cell, _text(value, "date"))
    report.cells.sort(key=lambda result: table.CELLS.index(result.cell))
