"""How reports on one sample's run call its tasks, where they run, and what they wait for."""

from __future__ import annotations

from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline, Wait
from placedsl.simulation.timeline import Task, Timeline


def name_of(timeline: Timeline, task: Task) -> str:
    """A node by its name, a call by its number, a transfer by its tensor, a stage by its pass and
    sample, what moves its tensors by the sample."""
    graph = timeline.problem.graph
    if task.kind == "node":
        return str(graph.names[task.first])
    if task.kind == "stage":
        return f"{pass_of(timeline, task)} {task.sample}"
    if task.kind == "call":
        return f"call {task.first}"
    if task.kind in ("receive", "send"):
        return f"{task.kind} {task.sample}"
    if task.kind == "weights":
        return "weights"
    return f"tensor of {graph.tensor_names[task.first]}"


def pass_of(timeline: Timeline, task: Task) -> str:
    """``forward`` or ``backward``: what computes some of the forward part is forward; ``transfer`` for transfers."""
    if task.kind in ("transfer", "receive", "send", "weights"):
        return "transfer"
    if isinstance(timeline, PipelineTimeline):
        return "backward" if timeline.stages[task.first].backward else "forward"
    backward = timeline.problem.graph.backward
    return "backward" if all(backward[v] for v in task.nodes) else "forward"


def place_of(timeline: Timeline, task: Task) -> str:
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
    if problem.execution.run == "subgraph_calls":
        return f"calls, {problem.execution.slots} at most a device" if problem.execution.slots > 1 else "calls"
    names = [rule.name for rule in problem.constraints if rule.built_in in ("sequential", "congestion")]
    return ", ".join(["dataflow", *names])
