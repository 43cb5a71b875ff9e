"""One sample's run as one JSON object: latency, critical path, tasks, and what is busy when."""

from __future__ import annotations

from typing import Any

from placedsl.report.document import SCHEMA
from placedsl.timeline.sample import SampleTimeline, Task, Wait


def sample_document(timeline: SampleTimeline) -> dict[str, Any]:
    """The timeline as plain data.

    Times are in ``unit``: seconds, or empty where the workload's times have no unit.  Tasks and rows are called by
    their positions in ``tasks`` and ``rows``.
    """
    problem = timeline.problem
    return {
        "schema": SCHEMA,
        "schedule": problem.schedule,
        "rules": [rule.name for rule in problem.rules if rule.built_in in ("sequential", "congestion")],
        "unit": "s" if problem.graph.time_in_seconds else "",
        "latency": timeline.latency,
        "critical_path": [{"task": k, **_wait(timeline.wait(k))} for k in timeline.critical],
        "rows": [
            {
                "kind": row.kind, "name": row.name, "tasks": list(row.tasks), "busy": timeline.busy(r),
                "idle": [
                    {"from": begin, "to": end, **({"waits_for": None} if wait is None else _wait(wait))}
                    for begin, end, wait in timeline.gaps(r)
                ],
            }
            for r, row in enumerate(timeline.rows)
        ],
        "tasks": [_task(timeline, task) for task in timeline.tasks],
    }  # fmt: skip


def _wait(wait: Wait) -> dict[str, Any]:
    out: dict[str, Any] = {"waits_for": wait.of if wait.of >= 0 else None, "reason": wait.reason}
    return out | ({"row": wait.row} if wait.reason == "row" else {})


def _task(timeline: SampleTimeline, task: Task) -> dict[str, Any]:
    problem = timeline.problem
    device = problem.machine.devices[task.device].name
    times = {"start": task.start, "finish": task.finish}
    if task.kind == "node":
        return {"kind": "node", "node": problem.graph.ids[task.first], "device": device, **times}
    if task.kind == "call":
        nodes = [problem.graph.ids[v] for v in task.nodes]
        moving = {"receive": task.receive, "send": task.send}
        return {"kind": "call", "call": task.first, "device": device, **times, **moving, "nodes": nodes}
    maker = problem.graph.ids[int(problem.graph.tensor_producer[task.first])]
    return {"kind": "transfer", "tensor": task.first, "of": maker, "to": device, **times}
