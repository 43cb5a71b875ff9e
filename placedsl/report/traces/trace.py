"""A timeline in the trace event format of Chrome, which Perfetto reads.

Devices are threads of one process, ports and links those of another; where tasks of a row overlap it has several
threads.  Flows lead along the tensors: from what makes or brings one to what reads it elsewhere.  Times are
microseconds, exact to the nanosecond, so that what follows one another does not overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from placedsl.report.task_names import because, name_of, pass_of, place_of, rules_of
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline
from placedsl.simulation.timeline import Task, Timeline

#: Nanoseconds of a second, and of a unit of a graph whose times have no unit: it is shown as a millisecond.
_SECOND, _UNIT = 1e9, 1e6
_DEVICES, _WAYS = 1, 2


def trace(timeline: PipelineTimeline | SampleTimeline) -> str:
    """The trace as a JSON text."""
    head = {
        "displayTimeUnit": "ms",
        "otherData": {
            "schedule": timeline.schedule if isinstance(timeline, PipelineTimeline) else rules_of(timeline),
            "time": "as simulated" if timeline.problem.graph.time_in_seconds else "1 unit of the workload is 1 ms",
        },
    }
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events(timeline))
    return json.dumps(head)[:-1] + f', "traceEvents": [\n{lines}\n]}}\n'


def events(timeline: PipelineTimeline | SampleTimeline) -> Iterator[dict[str, Any]]:
    """The trace events: names of processes and threads, slices row by row, then flows."""
    many = isinstance(timeline, PipelineTimeline)
    problem = timeline.problem
    yield _named("process_name", _DEVICES, 0, name=problem.name.strip("<>"))
    ways = dict.fromkeys(f"{row.kind}s" for row in timeline.rows if row.kind != "device")
    if ways:
        yield _named("process_name", _WAYS, 0, name=" and ".join(ways))
    first: dict[int, tuple[int, int]] = {}  # where the slice of each task is that its flows start and end at
    last: dict[int, tuple[int, int]] = {}
    slices: list[dict[str, Any]] = []
    critical = set(timeline.critical)
    thread = 0
    for r, row in enumerate(timeline.rows):
        process = _DEVICES if row.kind == "device" else _WAYS
        idle: list[list[int]] = [[]] if many else []  # a device that does nothing has a thread among many samples
        for number, lane in enumerate(timeline.lanes(r) or idle):
            thread += 1
            yield _named("thread_name", process, thread, name=row.name + (f" ({number + 1})" if number else ""))
            yield _named("thread_sort_index", process, thread, sort_index=thread - many)
            for k in lane:
                first.setdefault(k, (process, thread))
                last[k] = (process, thread)
                slices += _slices(timeline, k, (process, thread), critical=k in critical)
    yield from slices
    yield from _flows(timeline, "transfer" if many else "tensor", first, last)


def _named(what: str, process: int, thread: int, **about: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": about}


def _span(timeline: Timeline, task: Task) -> tuple[int, int]:
    """Start and finish in nanoseconds."""
    scale = _SECOND if timeline.problem.graph.time_in_seconds else _UNIT
    return round(task.start * scale), round(task.finish * scale)


def _slices(
    timeline: PipelineTimeline | SampleTimeline, k: int, at: tuple[int, int], *, critical: bool
) -> Iterator[dict[str, Any]]:
    """A task; within a call or a stage that moves anything its three steps."""
    task = timeline.tasks[k]
    begin, end = _span(timeline, task)
    place = {"pid": at[0], "tid": at[1]}
    about: dict[str, Any]
    if isinstance(timeline, PipelineTimeline):
        category = pass_of(timeline, task)
        piece = {} if task.kind == "weights" else {"piece": timeline.stages[task.first].name}
        about = {"sample": task.sample, **piece, "nodes": len(task.nodes)}
    else:
        category = f"{task.kind},critical" if critical else task.kind
        about = {"where": place_of(timeline, task), "waits for": because(timeline, timeline.wait(k))}
        about |= ({"nodes": len(task.nodes)} if task.kind == "call" else {}) | {"critical": critical}
    yield {
        "ph": "X", "name": name_of(timeline, task), "cat": category,
        "ts": begin / 1000, "dur": (end - begin) / 1000, **place, "args": about,
    }  # fmt: skip
    if task.receive or task.send:
        scale = _SECOND if timeline.problem.graph.time_in_seconds else _UNIT
        received = min(end, round((task.start + task.receive) * scale))
        sending = max(received, round((task.finish - task.send) * scale))
        for step, a, b in (("receive", begin, received), ("compute", received, sending), ("send", sending, end)):
            if b > a:
                yield {"ph": "X", "name": step, "cat": step, "ts": a / 1000, "dur": (b - a) / 1000, **place}


def _flows(
    timeline: Timeline, word: str, first: dict[int, tuple[int, int]], last: dict[int, tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """From the last nanosecond of what makes or brings a tensor to the first of what needs it elsewhere."""
    number = 0
    for of, k in timeline.arrows():
        source, target = last[of], first[k]
        if source == target:
            continue
        number += 1
        begin, end = _span(timeline, timeline.tasks[of])
        arrow = {"name": word, "cat": word, "id": number}
        yield {"ph": "s", **arrow, "pid": source[0], "tid": source[1], "ts": max(begin, end - 1) / 1000}
        there = _span(timeline, timeline.tasks[k])[0] / 1000
        yield {"ph": "f", "bp": "e", **arrow, "pid": target[0], "tid": target[1], "ts": there}
