"""One sample's run as tasks on rows: what each device, port or link does when, and what everything waits for.

The times come from the evaluator; what each task waits for is found here, from the problem and the times alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import ClassVar, Protocol

from placedsl.problem.problem import Problem
from placedsl.simulation.timeline import Row, Task, Timeline
from placedsl.tolerances import EQUAL_COSTS

_PORTS = (("port", "out of"), ("port", "into"))


class SampleTimes(Protocol):
    """When everything happens, as the evaluator gives it."""

    @property
    def start(self) -> Sequence[float]:
        """Of each node."""

    @property
    def finish(self) -> Sequence[float]:
        """Of each node."""

    @property
    def sent(self) -> Mapping[tuple[int, int], float]:
        """When a tensor leaves for a device."""

    @property
    def arrived(self) -> Mapping[tuple[int, int], float]:
        """When a tensor has arrived on a device."""

    @property
    def calls(self) -> Mapping[tuple[int, int], tuple[float, float]]:
        """Start and finish by device and number of the call."""


@dataclass(frozen=True)
class Wait:
    """Why a task does not start earlier.

    ``reason``  ``"input"``: it needs what ``of`` makes or brings; ``"row"``: ``of`` occupies ``row`` until then;
                ``"given"``: its start was given, nothing else holds it up from the end of ``of`` on (-1: from the
                beginning); ``"nothing"``: it starts at the beginning
    """

    reason: str
    of: int = -1
    row: int = -1


@dataclass(frozen=True, eq=False, repr=False)
class SampleTimeline(Timeline):
    """What happens to one sample, from its first node to its last.  Times are seconds, or in the graph's own unit."""

    title: ClassVar[str] = "SampleTimeline"

    problem: Problem
    latency: float
    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]

    @cached_property
    def before(self) -> Mapping[tuple[int, int], int]:
        """By task and exclusive row, the task that occupies the row before it."""
        out: dict[tuple[int, int], int] = {}
        for r, row in enumerate(self.rows):
            busy = [k for k in row.tasks if self.tasks[k].finish > self.tasks[k].start] if row.exclusive else []
            out |= {(later, r): earlier for earlier, later in itertools.pairwise(busy)}
        return out

    def wait(self, task: int) -> Wait:
        """What this task waits for last; an input goes before the row where both end at once."""
        own = self.tasks[task]
        waits = [Wait("input", of) for of in own.inputs]
        waits += [Wait("row", self.before[task, r], r) for r in own.rows if (task, r) in self.before]
        slack = EQUAL_COSTS * self.latency
        for wait in waits:
            if self.tasks[wait.of].finish >= own.start - slack:
                return wait
        if own.start <= slack:
            return Wait("nothing")
        return Wait("given", max(waits, key=lambda wait: self.tasks[wait.of].finish).of if waits else -1)

    @cached_property
    def critical(self) -> tuple[int, ...]:
        """The critical path: the task that ends last, and what each on it waits for, from the beginning on."""
        if not self.tasks:
            return ()
        path = [max(range(len(self.tasks)), key=lambda k: self.tasks[k].finish)]
        while (of := self.wait(path[-1]).of) >= 0:
            path.append(of)
        return tuple(reversed(path))

    def busy(self, row: int) -> float:
        """How long something runs on a row."""
        gaps = self.gaps(row)
        return max(0.0, self.latency - fsum(end - begin for begin, end, _ in gaps))

    def gaps(self, row: int) -> list[tuple[float, float, Wait | None]]:
        """When nothing runs on a row: from, to, and why its next task does not start earlier (None: there is none)."""
        out: list[tuple[float, float, Wait | None]] = []
        until, slack = 0.0, EQUAL_COSTS * self.latency
        for k in self.rows[row].tasks:
            if self.tasks[k].start > until + slack:
                out.append((until, self.tasks[k].start, self.wait(k)))
            until = max(until, self.tasks[k].finish)
        if self.latency > until + slack:
            out.append((until, self.latency, None))
        return out


def timeline_of(
    problem: Problem, placement: Sequence[int], times: SampleTimes, piece: Mapping[tuple[int, ...], float]
) -> SampleTimeline:
    """The timeline of a placement's run; ``piece``: which call of its device each node is in (schedule ``calls``)."""
    in_calls = problem.execution.run == "subgraph_calls"
    tasks = _calls(problem, placement, times, piece) if in_calls else _flow(problem, placement, times)
    return _on_rows(problem, placement, tasks, max(times.finish, default=0.0))


def _calls(
    problem: Problem, placement: Sequence[int], times: SampleTimes, piece: Mapping[tuple[int, ...], float]
) -> list[Task]:
    """Calls of accelerators, and nodes of hosts."""
    graph, accelerator = problem.graph, problem.accelerators
    number: dict[tuple[int, int], int] = {}
    unit, tasks, inside = [], list[Task](), list[list[int]]()
    for v, d in enumerate(placement):
        key = (d, round(piece.get((v,), 1.0))) if accelerator[d] else (-1, v)
        if key not in number:
            number[key] = len(tasks)
            start, finish = times.calls[key] if accelerator[d] else (times.start[v], times.finish[v])
            tasks.append(Task("call" if accelerator[d] else "node", key[1], d, start, finish))
            inside.append([])
        unit.append(number[key])
        inside[number[key]].append(v)
    read: list[dict[int, int]] = [{} for _ in tasks]  # tensors from outside, and who makes them
    sent: list[set[int]] = [set() for _ in tasks]
    for t, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        maker = unit[int(graph.tensor_producer[t])]
        if maker != unit[reader]:
            read[unit[reader]][t] = maker
            sent[maker].add(t)
    return [
        replace(
            task, nodes=tuple(inside[k]), inputs=tuple(sorted(set(read[k].values()))),
            receive=_moving(problem, task, read[k]), send=_moving(problem, task, sent[k]),
        )
        for k, task in enumerate(tasks)
    ]  # fmt: skip


def _moving(problem: Problem, task: Task, tensors: Mapping[int, int] | set[int]) -> float:
    """How long a call transfers these tensors; a host transfers for nothing."""
    return fsum(float(problem.transfer[t, task.device]) for t in tensors) if task.kind == "call" else 0.0


def _flow(problem: Problem, placement: Sequence[int], times: SampleTimes) -> list[Task]:
    """Nodes, and transfers of tensors to devices."""
    graph = problem.graph
    keys = sorted(times.sent)
    transfer = {key: graph.nodes + k for k, key in enumerate(keys)}
    inputs: list[set[int]] = [set() for _ in range(graph.nodes)]
    for t, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        maker = int(graph.tensor_producer[t])
        inputs[reader].add(maker if placement[maker] == placement[reader] else transfer[t, placement[reader]])
    tasks = [
        Task("node", v, d, times.start[v], times.finish[v], (v,), tuple(sorted(inputs[v])))
        for v, d in enumerate(placement)
    ]
    for t, d in keys:
        makers = (int(graph.tensor_producer[t]),)
        tasks.append(Task("transfer", t, d, times.sent[t, d], times.arrived[t, d], (), makers))
    return tasks


def _on_rows(problem: Problem, placement: Sequence[int], tasks: list[Task], latency: float) -> SampleTimeline:
    """The tasks on the rows that they occupy: each device, and the ports or links that carry something."""
    devices = problem.machine.devices
    held: dict[tuple[str, str], list[int]] = {("device", device.name): [] for device in devices}
    held |= {(kind, f"{way} {device.name}"): [] for device in devices for kind, way in _PORTS}
    if problem.device_to_device is not None:
        held |= {("link", _link(problem, a, b)): [] for a, b in problem.device_to_device.hop_ends.tolist()}
    ways = _ways(problem, placement)
    for k, task in enumerate(tasks):
        for key in ways(task) if task.kind == "transfer" else [("device", devices[task.device].name)]:
            held[key].append(k)
    congestion = {rule.by for rule in problem.constraints if rule.built_in == "congestion"}
    serial = {d.name for d in devices if problem.execution.run == "subgraph_calls" and d.kind == "accelerator"}
    serial |= {d.name for d in devices} if problem.constraint("sequential") is not None else set()
    rows, at = list[Row](), dict[int, list[int]]()
    for (kind, name), own in held.items():
        if kind != "device" and not own:
            continue
        for k in own:
            at.setdefault(k, []).append(len(rows))
        in_time = tuple(sorted(own, key=lambda k: (tasks[k].start, tasks[k].finish, k)))
        rows.append(Row(kind, name, name in serial if kind == "device" else kind in congestion, in_time))
    placed = tuple(replace(task, rows=tuple(at.get(k, ()))) for k, task in enumerate(tasks))
    return SampleTimeline(problem, latency, placed, tuple(rows))


def _ways(problem: Problem, placement: Sequence[int]) -> Callable[[Task], list[tuple[str, str]]]:
    """What a transfer occupies: ports where these are not shared; links where these are not, or nothing is said."""
    devices, between = [device.name for device in problem.machine.devices], problem.device_to_device
    by = {rule.by for rule in problem.constraints if rule.built_in == "congestion"} or {"link"}

    def ways(task: Task) -> list[tuple[str, str]]:
        home = placement[int(problem.graph.tensor_producer[task.first])]
        assert between is not None
        ends = (devices[home], devices[task.device])
        out = [(kind, f"{way} {end}") for (kind, way), end in zip(_PORTS, ends, strict=True)] if "port" in by else []
        if "link" in by:
            hops = between.hop_ends[between.hops(home, task.device)].tolist()
            out += [("link", _link(problem, a, b)) for a, b in hops]
        return out

    return ways


def _link(problem: Problem, a: int, b: int) -> str:
    devices = problem.machine.devices
    return f"{devices[a].name} -> {devices[b].name}"
