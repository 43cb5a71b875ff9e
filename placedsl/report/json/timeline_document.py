"""A timeline as one JSON object."""

from __future__ import annotations

from typing import Any

from placedsl.report.json.answer_document import SCHEMA, finite
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline, Wait
from placedsl.simulation.timeline import Task


def timeline_document(timeline: PipelineTimeline | SampleTimeline) -> dict[str, Any]:
    """The timeline as plain data; what is not known (no steady state, no sizes) is null.

    Times are in ``unit``: seconds, or empty where the workload's times have no unit.
    """
    return _sample(timeline) if isinstance(timeline, SampleTimeline) else _pipeline(timeline)


def _pipeline(timeline: PipelineTimeline) -> dict[str, Any]:
    """Measures, devices and pieces; what each piece did when is in the trace."""
    problem, costs = timeline.problem, timeline.costs
    ids, devices = problem.graph.written.ids, problem.machine.devices
    stages = timeline.stages
    return {
        "schema": SCHEMA,
        "schedule": timeline.schedule,
        "samples": timeline.samples,
        "microbatches": timeline.microbatches or None,
        "unit": "s" if problem.graph.time_in_seconds else "",
        "total": timeline.total,
        "time_per_sample": finite(timeline.time_per_sample),
        "largest_load": timeline.largest_load,
        "ramp_up": timeline.ramp_up,
        "bubble": timeline.bubble,
        "samples_in_flight": timeline.samples_in_flight,
        "devices": [
            {
                "name": devices[d].name, "load": float(timeline.loads[d]), "idle": float(timeline.idle[d]),
                "samples_in_flight": int(timeline.device_samples_in_flight[d]), **_held(timeline, d),
            }
            for d in timeline.devices
        ],
        "pieces": [
            {
                "name": stage.name, "device": devices[stage.device].name,
                "devices": [devices[d].name for d in timeline.sharing(stage.device)], "backward": stage.backward,
                "nodes": [ids[v] for v in problem.graph.members(stage.nodes)],
                "reads": [stages[q].name for q, reader in sorted(timeline.arcs) if reader == p],
                "receive": costs.receive[p], "compute": costs.compute[p], "send": costs.send[p],
                **({"stream": costs.stream[p]} if costs.stream else {}),
            }
            for p, stage in enumerate(stages)
        ],
    }  # fmt: skip


def _held(timeline: PipelineTimeline, device: int) -> dict[str, Any]:
    """What lies on a device: of a plan its memory, else the tensors between its pieces."""
    if timeline.memory is not None:
        return {"memory": float(timeline.memory[device])}
    return {
        "tensors_in_flight": int(timeline.tensors_in_flight[device]),
        "bytes_in_flight": finite(float(timeline.bytes_in_flight[device])),
    }


def _sample(timeline: SampleTimeline) -> dict[str, Any]:
    """Latency, critical path, tasks, and what is busy when; by positions in ``tasks`` and ``rows``."""
    problem = timeline.problem
    return {
        "schema": SCHEMA,
        "schedule": problem.execution.name,
        "rules": [rule.name for rule in problem.constraints if rule.built_in in ("sequential", "congestion")],
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
