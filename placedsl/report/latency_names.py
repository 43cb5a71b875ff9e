"""How reports on one sample's run call its tasks, where they run, and what they wait for."""

from __future__ import annotations

from placedsl.timeline.sample import SampleTimeline, Task, Wait


def name_of(timeline: SampleTimeline, task: Task) -> str:
    """A node by its name, a call by its number, a transfer by its tensor."""
    graph = timeline.problem.graph
    if task.kind == "node":
        return str(graph.names[task.first])
    if task.kind == "call":
        return f"call {task.first}"
    return f"tensor of {graph.tensor_names[task.first]}"


def place_of(timeline: SampleTimeline, task: Task) -> str:
    """The device, or from which to which device."""
    name = timeline.problem.machine.devices[task.device].name
    if task.kind != "transfer":
        return name
    return f"{timeline.problem.machine.devices[timeline.tasks[task.inputs[0]].device].name} -> {name}"


def full_name(timeline: SampleTimeline, task: Task) -> str:
    """Name and place, where the name alone does not say it."""
    return name_of(timeline, task) if task.kind == "node" else f"{name_of(timeline, task)} ({place_of(timeline, task)})"


def because(timeline: SampleTimeline, wait: Wait) -> str:
    """What a task waits for, in words; empty for nothing."""
    if wait.reason == "nothing":
        return ""
    if wait.of < 0:
        return "its given start"
    of = full_name(timeline, timeline.tasks[wait.of])
    if wait.reason == "row":
        row = timeline.rows[wait.row]
        return f"{row.kind} {row.name}: {of}" if row.kind == "port" else f"{row.name}: {of}"
    return f"its given start, after {of}" if wait.reason == "given" else of


def rules_of(timeline: SampleTimeline) -> str:
    """The schedule and what of it may not overlap."""
    problem = timeline.problem
    if problem.schedule == "calls":
        return f"calls, {problem.pieces} at most a device" if problem.pieces > 1 else "calls"
    names = [rule.name for rule in problem.rules if rule.built_in in ("sequential", "congestion")]
    return ", ".join(["dataflow", *names])
