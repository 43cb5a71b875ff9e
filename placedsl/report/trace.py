"""A timeline in the trace event format of Chrome, which Perfetto reads: one process, one thread a device.

A complete event a piece and sample, with its transfers within it, and a flow from each piece to those of other devices
that read from it.  Times are microseconds, exact to the nanosecond, so that what follows one another does not overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from placedsl.timeline.timeline import Timeline

#: Nanoseconds of a second, and of a unit of a graph whose times have no unit: it is shown as a millisecond.
_SECOND, _UNIT = 1e9, 1e6


def trace(timeline: Timeline) -> str:
    """The trace as a JSON text."""
    head = {
        "displayTimeUnit": "ms",
        "otherData": {
            "schedule": timeline.schedule,
            "time": "as simulated" if timeline.problem.graph.time_in_seconds else "1 unit of the workload is 1 ms",
        },
    }
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events(timeline))
    return json.dumps(head)[:-1] + f', "traceEvents": [\n{lines}\n]}}\n'


def events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """The trace events: names of the process and its threads, then pieces device by device in time, then flows."""
    problem = timeline.problem
    yield {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": problem.name.strip("<>")}}
    for d, device in enumerate(problem.machine.devices):
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": d + 1, "args": {"name": device.name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": d + 1, "args": {"sort_index": d}}
    scale = _SECOND if problem.graph.time_in_seconds else _UNIT
    for d in range(len(problem.machine.devices)):
        own = [p for p, piece in enumerate(timeline.pieces) if piece.device == d]
        work = ((timeline.start[p, i], timeline.end[p, i], p, i) for p in own for i in range(timeline.samples))
        for _, _, p, i in sorted(work):
            yield from _slices(timeline, p, i, scale)
    yield from _flows(timeline, scale)


def _slices(timeline: Timeline, p: int, i: int, scale: float) -> Iterator[dict[str, Any]]:
    """A piece on a sample; within it its three steps, where it moves anything."""
    piece, costs = timeline.pieces[p], timeline.costs
    what = "backward" if piece.backward else "forward"
    begin, end = (round(float(t) * scale) for t in (timeline.start[p, i], timeline.end[p, i]))
    place = {"pid": 1, "tid": piece.device + 1}
    about = {"sample": i + 1, "piece": piece.name, "nodes": len(piece.nodes)}
    yield {
        "ph": "X", "name": f"{what} {i + 1}", "cat": what, "ts": begin / 1000, "dur": (end - begin) / 1000,
        **place, "args": about,
    }  # fmt: skip
    if costs.receive[p] or costs.send[p]:
        received = min(end, round((float(timeline.start[p, i]) + costs.receive[p]) * scale))
        sending = max(received, round((float(timeline.end[p, i]) - costs.send[p]) * scale))
        for step, a, b in (("receive", begin, received), ("compute", received, sending), ("send", sending, end)):
            if b > a:
                yield {"ph": "X", "name": step, "cat": step, "ts": a / 1000, "dur": (b - a) / 1000, **place}


def _flows(timeline: Timeline, scale: float) -> Iterator[dict[str, Any]]:
    """From the last nanosecond of each piece to the first of each that reads from it on another device."""
    number = 0
    for q, p in sorted(timeline.arcs):
        source, target = timeline.pieces[q].device, timeline.pieces[p].device
        if source == target:
            continue
        for i in range(timeline.samples):
            number += 1
            begin, end = (round(float(t) * scale) for t in (timeline.start[q, i], timeline.end[q, i]))
            arrow = {"name": "transfer", "cat": "transfer", "id": number, "pid": 1}
            yield {"ph": "s", **arrow, "tid": source + 1, "ts": max(begin, end - 1) / 1000}
            there = round(float(timeline.start[p, i]) * scale) / 1000
            yield {"ph": "f", "bp": "e", **arrow, "tid": target + 1, "ts": there}
