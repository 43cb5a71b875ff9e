"""Plans of stages with equally many layers, all with the same copies, devices and option: what baselines choose among.

Layers are the nodes of the type that most nodes have; what comes before them goes to the first stage and what comes
after to the last, or each to a stage of its own.  Where no type repeats all nodes are layers, in one topological order:
sources as they stand in the file, the last that became ready first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans
from placedsl.algorithms.pipelines.parallel_plans.planned_problem import moved_by_degree
from placedsl.algorithms.supports import reasons_against
from placedsl.arrays import Floats, Integers
from placedsl.graph.graph import Graph
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

#: The evaluator decides about constraints.
SUPPORTS = replace(plans.SUPPORTS, requires=(), constraints=None, relaxes=False, further=True)


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    return reasons_against(problem, SUPPORTS) + plans.conditions(problem)


def splits(graph: Graph, most: int) -> Iterator[list[list[int]]]:
    """Groups of nodes in order, for each number of stages."""
    layers, before, after = _layers(graph, _last_ready_first(graph))
    for count in range(1, min(len(layers), most) + 1):
        yield _even(layers, count, before, after)
        if (before or after) and count + 2 <= most:
            inner = _even(layers, count, [], [])
            yield [group for group in (before, *inner, after) if group]


def in_order(graph: Graph) -> list[list[int]]:
    """All nodes by layers; the first and the last have what comes before and after."""
    layers, before, after = _layers(graph, _last_ready_first(graph))
    return _even(layers, len(layers), before, after)


def evenly(layers: list[list[int]], count: int) -> list[list[int]]:
    """Layers in so many groups, the last ones one layer larger where they do not divide."""
    return _even(layers, count, [], [])


def _even(layers: list[list[int]], count: int, before: list[int], after: list[int]) -> list[list[int]]:
    """So many groups, the last ones one layer larger where they do not divide."""
    each, more = divmod(len(layers), count)
    out, at = [], 0
    for k in range(count):
        size = each + (k >= count - more)
        out.append([v for layer in layers[at : at + size] for v in layer])
        at += size
    out[0] = before + out[0]
    out[-1] = out[-1] + after
    return out


def _last_ready_first(graph: Graph) -> list[int]:
    """The topological order that a stack gives."""
    waiting = np.bincount(graph.edge_target, minlength=graph.nodes).tolist()
    following: list[list[int]] = [[] for _ in range(graph.nodes)]
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        following[u].append(v)
    stack = [v for v in range(graph.nodes) if not waiting[v]]
    order = []
    while stack:
        v = stack.pop()
        order.append(v)
        for w in following[v]:
            waiting[w] -= 1
            if not waiting[w]:
                stack.append(w)
    return order


def _layers(graph: Graph, order: list[int]) -> tuple[list[list[int]], list[int], list[int]]:
    """Layers in order, each with what follows it before the next; and the nodes before the first and after the last."""
    types = graph.attributes.get("type")
    if types is not None and types.dtype == object:
        (usual, number), *_ = Counter(types.tolist()).most_common(1)
        if usual is not None and 2 * number > graph.nodes:
            places = [k for k, v in enumerate(order) if types[v] == usual]
            own = [v for v in order[: places[-1]] if types[v] != usual]
            return [[order[k]] for k in places], own, order[places[-1] + 1 :]
    return [[v] for v in order], [], []


class EvenPlan(NamedTuple):
    """Groups of nodes, copies of each, devices of each copy, the option of each node, and the largest load; and what
    that is where weights are exchanged while the next samples are computed."""

    groups: list[list[int]]
    copies: int
    degree: int
    options: Integers
    value: float
    overlapped: float


class EvenPlans:
    """The plans of a problem that divide its layers evenly."""

    def __init__(self, problem: Problem) -> None:
        sharing = problem.execution.data_parallelism
        assert sharing is not None
        assert sharing.options is not None
        self.problem, self.sharing, self.costs = problem, sharing, sharing.options
        self.devices = len(problem.machine.devices)
        self.capacity = float(problem.memory_limits[0])
        moved = moved_by_degree(problem, self.costs, 0)
        assert moved is not None
        self.into, self.out_of = (problem.transfer[:, 0] + side for side in moved)
        self.batch = sharing.microbatches or self.devices
        self.most = sharing.most_in_pipeline or self.devices
        self.option = self._options()

    def _options(self) -> dict[tuple[int, str], Integers]:
        """By degree and name: the option of each node, of those without one by that name the quickest; degrees at which
        every node has an option."""
        costs, nodes = self.costs, self.problem.graph.nodes
        time = costs.time[:, 0]
        able = np.flatnonzero(np.isin(costs.degree, self.sharing.tensor) & np.isfinite(time))
        out: dict[tuple[int, str], Integers] = {}
        for degree in self.sharing.tensor:
            rows = able[costs.degree[able] == degree]
            rows = rows[np.argsort(time[rows], kind="stable")][::-1]
            quickest = np.full(nodes, -1, dtype=np.int64)
            quickest[costs.node[rows]] = rows  # of several the first is written last
            if (quickest < 0).any():
                continue
            for name in dict.fromkeys(costs.name[row] for row in sorted(rows.tolist())):
                chosen = quickest.copy()
                named = np.array([row for row in rows.tolist() if costs.name[row] == name], dtype=np.int64)
                chosen[costs.node[named]] = named
                out[degree, name] = chosen
        return out

    def options_of(self, node: int, degree: int) -> Integers:
        """The options that a node may take on so many devices."""
        return self._able[node, degree] if (node, degree) in self._able else np.zeros(0, dtype=np.int64)

    @cached_property
    def _able(self) -> dict[tuple[int, int], Integers]:
        costs, out = self.costs, dict[tuple[int, int], list[int]]()
        able = np.isin(costs.degree, self.sharing.tensor) & np.isfinite(costs.time[:, 0])
        for row in np.flatnonzero(able).tolist():
            out.setdefault((int(costs.node[row]), int(costs.degree[row])), []).append(row)
        return {key: np.array(rows, dtype=np.int64) for key, rows in out.items()}

    def of(self, groups: list[list[int]], degree: int, name: str) -> list[EvenPlan]:
        """A split with options of that name wherever there are such: a plan for each number of copies that fits."""
        graph, count, options = self.problem.graph, len(groups), self.option[degree, name]
        stage = np.empty(graph.nodes, dtype=np.int64)
        for k, group in enumerate(groups):
            stage[group] = k
        allowed = [d for d in self.sharing.degrees if d * count <= self.most and d * count * degree <= self.devices]
        copies = np.array(allowed, dtype=np.int64)
        in_flight = np.repeat(np.arange(count, 0, -1)[:, None], len(copies), axis=1)
        if self.sharing.held != "pipeline":
            in_flight[:] = -(-(1 if self.sharing.held == "sample" else self.batch) // copies)
        costs = self.costs
        columns = (costs.time[:, 0], costs.weights[:, 0], costs.stash, costs.memory, costs.sharded)
        sums = np.zeros((len(columns), count))
        for row, column in zip(sums, columns, strict=True):
            np.add.at(row, stage, column[options])
        time, weights, stash, memory, sharded = sums
        held = stash[:, None] * in_flight + memory[:, None] + sharded[:, None] / copies
        copies = copies[(held <= self.capacity).all(axis=0)]
        if not len(copies):
            return []
        d, sent = copies.astype(float), np.array([self.sharing.sent(float(number)) for number in copies])
        time = time + self.transfers(stage, count, self.sharing.tensor.index(degree))
        own, exchanged = time[:, None] / d, sent * (d - 1.0) / d * weights[:, None]
        values, overlapped = (own + exchanged).max(axis=0), np.maximum(own, exchanged).max(axis=0)
        return [
            EvenPlan(groups, number, degree, options, *loads)
            for number, *loads in zip(copies.tolist(), values.tolist(), overlapped.tolist(), strict=True)
        ]

    def transfers(self, stage: Integers, count: int, g: int) -> Floats:
        """Seconds per sample that each stage pays for tensors in and out."""
        graph = self.problem.graph
        home = stage[graph.tensor_producer[graph.edge_tensor]]
        reader = stage[graph.edge_target]
        away = home != reader
        read = np.unique(np.stack((reader[away], graph.edge_tensor[away]), axis=1), axis=0)
        written = np.unique(graph.edge_tensor[away])
        maker = stage[graph.tensor_producer[written]]
        paid: Floats = np.zeros(count)
        np.add.at(paid, read[:, 0], self.into[g, read[:, 1]])
        np.add.at(paid, maker, self.out_of[g, written])
        return paid

    def placed(self, plan: EvenPlan) -> tuple[Sequence[int], float, Values]:
        """A plan on devices in their order."""
        return placed(
            self.problem, [StageOfPlan(group, plan.copies, plan.degree) for group in plan.groups], plan.options
        )


class StageOfPlan(NamedTuple):
    """The nodes of a stage, its copies, and the devices of each."""

    nodes: Sequence[int]
    copies: int
    degree: int


def placed(problem: Problem, stages: Sequence[StageOfPlan], options: Integers) -> tuple[Sequence[int], float, Values]:
    """Stages on devices in their order, as the answer of a method; ``options``: that of each node."""
    placement = [-1] * problem.graph.nodes
    copies: dict[tuple[int, ...], float] = {(d,): 0.0 for d in range(len(problem.machine.devices))}
    tensor: dict[tuple[int, ...], float] = {}
    number: dict[tuple[int, ...], float] = {}
    device = 0
    for k, stage in enumerate(stages, 1):
        copies[device,], tensor[device,], number[device,] = float(stage.copies), float(stage.degree), float(k)
        for v in stage.nodes:
            placement[v] = device
        device += stage.copies * stage.degree
    option: dict[tuple[int, ...], float] = {(v,): float(o) for v, o in enumerate(options.tolist())}
    return placement, -np.inf, {"copies": copies, "copy_size": tensor, "option": option, "order": number}
