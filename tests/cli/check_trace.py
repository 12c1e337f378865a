#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_trace.py FILE: what the Trace Event Format asks of a JSON trace, and what Perfetto's reader
needs beyond it. Writes a summary as JSON, or says what is wrong and exits 1.

Events may stand in any order, except a beginning and its end (B and E), which are told by it, and
what has the same time on a curve."""
import collections
import decimal
import json
import re
import sys


def fail(text):
    sys.exit(f"{sys.argv[1]}: {text}")


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        fail(f"an object has a key twice: {keys}")
    return dict(pairs)


def is_time(value):
    return isinstance(value, (int, decimal.Decimal)) and value >= 0


def check_common(event):
    if event.get("ph") not in ("M", "X", "B", "E", "b", "e", "i", "C", "s", "t", "f"):
        fail(f"unknown phase: {event}")
    for key in ("pid", "tid"):
        if type(event.get(key)) is not int or not 0 < event[key] < 2**32:
            fail(f"{key} is no number of 32 bits: {event}")
    if not (isinstance(event.get("name"), str) and event["name"]):
        fail(f"no name: {event}")
    if event["ph"] != "M" and not is_time(event.get("ts")):
        fail(f"no time: {event}")
    if event["ph"] == "M" and not isinstance(event.get("args"), dict):
        fail(f"says nothing: {event}")
    if event["ph"] == "i" and event.get("s") not in ("g", "p", "t"):
        fail(f"whose moment is it: {event}")
    if event["ph"] == "C" and not all(map(is_time, event.get("args", {"": None}).values())):
        fail(f"no value: {event}")


def check_names(events, summary):
    """Every process and thread that is used has one name, and no thread number is used twice."""
    names, owner = {}, {}
    for event in events:
        if owner.setdefault(event["tid"], event["pid"]) != event["pid"]:
            fail(f"thread {event['tid']} belongs to two processes")
        if event["ph"] == "M" and event["name"].endswith("_name"):
            kind = event["name"].split("_")[0]
            key = kind, event["pid"] if kind == "process" else event["tid"]
            if key in names:
                fail(f"{key} is named twice")
            if not (isinstance(event["args"].get("name"), str) and event["args"]["name"]):
                fail(f"an empty name: {event}")
            names[key] = event["args"]["name"]
    for event in events:
        if event["ph"] != "M":
            for key in (("process", event["pid"]), ("thread", event["tid"])):
                if key not in names:
                    fail(f"{key} has no name: {event}")
    summary["processes"] = [v for k, v in names.items() if k[0] == "process"]
    summary["threads"] = [v for k, v in names.items() if k[0] == "thread"]


def spans_of(events):
    """Complete events, and pairs of B and E, of each thread."""
    spans, stacks = collections.defaultdict(list), collections.defaultdict(list)
    last = {}
    for event in events:
        track = event["pid"], event["tid"]
        if event["ph"] in "BE":
            if event["ts"] < last.get(track, 0):
                fail(f"comes behind a later one: {event}")
            last[track] = event["ts"]
        if event["ph"] == "X":
            if not is_time(event.get("dur")):
                fail(f"no duration: {event}")
            spans[track].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif event["ph"] == "B":
            stacks[track].append(event)
        elif event["ph"] == "E":
            if not stacks[track]:
                fail(f"an end without a beginning: {event}")
            begin = stacks[track].pop()
            if event["name"] != begin["name"]:
                fail(f"ends another one than {begin}: {event}")
            spans[track].append((begin["ts"], event["ts"], begin["name"]))
    for track, stack in stacks.items():
        if stack:
            fail(f"{track}: a beginning without an end: {stack[-1]}")
    return spans


def check_spans(events, summary):
    """Spans of a thread lie inside or beside each other."""
    time = collections.Counter()
    count = collections.Counter()
    for track, spans in spans_of(events).items():
        open_ends = []
        for begin, end, name in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                fail(f"{track}: '{name}' from {begin} to {end} sticks out of what is around it")
            open_ends.append(end)
            time[name] += end - begin
            count[name] += 1
    summary["us"] = {name: float(us) for name, us in time.items()}
    summary["count"] = dict(count)


def check_async(events, summary):
    """Each id has one beginning and one end, of the same name, in one process."""
    begins, ends = {}, {}
    for event in events:
        if event["ph"] not in "be":
            continue
        if not (isinstance(event.get("id"), str) and event["id"].startswith("0x")):
            fail(f"no id: {event}")
        if not isinstance(event.get("cat"), str):
            fail(f"no category: {event}")
        seen = begins if event["ph"] == "b" else ends
        if (event["cat"], event["id"]) in seen:
            fail(f"the id is not its own: {event}")
        seen[event["cat"], event["id"]] = event
    if begins.keys() != ends.keys():
        fail(f"without a partner: {sorted(begins.keys() ^ ends.keys())[:5]}")
    for key, begin in begins.items():
        end = ends[key]
        if end["ts"] < begin["ts"] or any(begin[k] != end[k] for k in ("pid", "tid", "name")):
            fail(f"these do not fit together: {begin} {end}")
    summary["async"] = dict(collections.Counter(cat for cat, _ in begins))


def check_flows(events):
    """Each id of an arrow has one start, before all else of it, and one end, behind all else."""
    flows = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            if "id" not in event:
                fail(f"no id: {event}")
            flows[event.get("cat"), event["name"], event["id"]].append(event)
    for flow in flows.values():
        flow.sort(key=lambda event: (event["ts"], "stf".index(event["ph"])))
        phases = "".join(event["ph"] for event in flow)
        if not re.fullmatch("st*f", phases):
            fail(f"an arrow without start or end: {flow[0]}")


def check_curves(events):
    """A curve has one value at a time."""
    seen = set()
    for event in events:
        if event["ph"] == "C":
            key = event["pid"], event["name"], event["ts"], event.get("id")
            if key in seen:
                fail(f"two values at the same time: {event}")
            seen.add(key)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(
            file,
            parse_float=decimal.Decimal,
            parse_constant=lambda word: fail(f"{word} is not JSON"),
            object_pairs_hook=unique_keys,
        )
    if trace.get("displayTimeUnit") not in ("ms", "ns") or not isinstance(
        trace.get("traceEvents"), list
    ):
        fail("not the object of the format")
    events, summary = trace["traceEvents"], {}
    for event in events:
        check_common(event)
    check_names(events, summary)
    check_spans(events, summary)
    check_async(events, summary)
    check_flows(events)
    check_curves(events)
    summary["moments"] = dict(
        collections.Counter(event["name"] for event in events if event["ph"] == "i")
    )
    summary["curves"] = sorted({event["name"] for event in events if event["ph"] == "C"})
    times = [event["ts"] for event in events if event["ph"] == "X"]
    ends = [event["ts"] + event["dur"] for event in events if event["ph"] == "X"]
    summary["from_us"] = float(min(times, default=0))
    summary["to_us"] = float(max(ends, default=0))
    json.dump(summary, sys.stdout)


main()
