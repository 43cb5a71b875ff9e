"""The baseline "equi": stages of equally many layers, all with the same copies, devices and option.

Tarnawski et al. 2021 use it in place of the planner of PipeDream-2BW (Narayanan et al. 2021), which divides repeated
transformer layers evenly.  Layers are the nodes of the type that most nodes have; what comes before them goes to the
first stage and what comes after to the last, or each to a stage of its own.  Where no type repeats all nodes are
layers, in one topological order: sources as they stand in the file, the last that became ready first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans
from placedsl.algorithms.supports import reasons_against
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.graph.graph import Graph
from placedsl.problem.execution import DataParallelism, OptionCosts
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

#: The evaluator decides about constraints.
SUPPORTS = replace(plans.SUPPORTS, requires=(), constraints=None, relaxes=False, further=True)


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    return reasons_against(problem, SUPPORTS) + plans.conditions(problem)


def solve(
    problem: Problem,
    budget: Budget,  # noqa: ARG001 - a few seconds at most, and between splits it is asked whether to stop
    progress: Progress,
) -> tuple[Sequence[int] | None, float] | tuple[Sequence[int] | None, float, Values]:
    """The best even split; without a bound, for uneven ones may be better."""
    sharing = problem.execution.data_parallelism
    assert sharing is not None
    assert sharing.options is not None
    search = _Search(problem, sharing, sharing.options)
    for groups in _splits(problem.graph, len(problem.machine.devices)):
        if progress(None, -np.inf):
            break
        search.groups(groups)
    if search.best is None:
        raise NothingFoundError("no even split fits with one option and one degree everywhere")
    return search.placed()


def _splits(graph: Graph, most: int) -> Iterator[list[list[int]]]:
    """Groups of nodes in order, for each number of stages."""
    order = _last_ready_first(graph)
    layers, before, after = _layers(graph, order)
    for count in range(1, min(len(layers), most) + 1):
        yield _even(layers, count, before, after)
        if (before or after) and count + 2 <= most:
            inner = _even(layers, count, [], [])
            yield [group for group in (before, *inner, after) if group]


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


class _Search:
    """The best of the splits that it is shown."""

    def __init__(self, problem: Problem, sharing: DataParallelism, costs: OptionCosts) -> None:
        self.problem, self.sharing, self.costs = problem, sharing, costs
        self.devices = len(problem.machine.devices)
        self.capacity = float(problem.memory_limits[0])
        moved = plans.moved_by_degree(problem, costs)
        assert moved is not None
        self.into, self.out_of = (problem.transfer[:, 0] + side for side in moved)
        self.batch = sharing.microbatches or self.devices
        self.most = sharing.most_in_pipeline or self.devices
        self.option = self._options()
        self.value = np.inf
        self.best: tuple[list[list[int]], int, int, Integers] | None = None

    def _options(self) -> dict[tuple[int, str], Integers]:
        """By degree and name that all nodes have: the option of each node."""
        out: dict[tuple[int, str], Integers] = {}
        costs, nodes = self.costs, self.problem.graph.nodes
        for option, (v, name, degree) in enumerate(
            zip(costs.node.tolist(), costs.name, costs.degree.tolist(), strict=True)
        ):
            if degree in self.sharing.tensor and np.isfinite(costs.time[option, 0]):
                out.setdefault((degree, name), np.full(nodes, -1, dtype=np.int64))[v] = option
        return {key: options for key, options in out.items() if (options >= 0).all()}

    def groups(self, groups: list[list[int]]) -> None:
        """Try all degrees and options for a split."""
        graph, count = self.problem.graph, len(groups)
        stage = np.empty(graph.nodes, dtype=np.int64)
        for k, group in enumerate(groups):
            stage[group] = k
        copies = np.array([d for d in self.sharing.degrees if d * count <= self.most], dtype=np.int64)
        in_flight = np.repeat(np.arange(count, 0, -1)[:, None], len(copies), axis=1)
        if self.sharing.held != "pipeline":
            in_flight[:] = -(-(1 if self.sharing.held == "sample" else self.batch) // copies)
        sent = np.array([self.sharing.sent(float(d)) for d in copies])
        for (degree, _), options in self.option.items():
            allowed = copies * count * degree <= self.devices
            if not allowed.any():
                break
            costs = self.costs
            columns = (costs.time[:, 0], costs.weights[:, 0], costs.stash, costs.memory, costs.sharded)
            sums = np.zeros((len(columns), count))
            for row, column in zip(sums, columns, strict=True):
                np.add.at(row, stage, column[options])
            time, weights, stash, memory, sharded = sums
            held = stash[:, None] * in_flight + memory[:, None] + sharded[:, None] / copies
            allowed = allowed & (held <= self.capacity).all(axis=0)
            if not allowed.any():
                continue
            time = time + self._transfers(stage, count, self.sharing.tensor.index(degree))
            d = copies[allowed].astype(float)
            loads = time[:, None] / d + sent[allowed] * (d - 1.0) / d * weights[:, None]
            values = loads.max(axis=0)
            best = int(values.argmin())
            if values[best] < self.value:
                self.value = float(values[best])
                self.best = groups, int(d[best]), degree, options

    def _transfers(self, stage: Integers, count: int, g: int) -> Floats:
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

    def placed(self) -> tuple[Sequence[int], float, Values]:
        """The best split on devices in their order."""
        assert self.best is not None
        groups, own, degree, options = self.best
        placement = [-1] * self.problem.graph.nodes
        copies: dict[tuple[int, ...], float] = {(d,): 0.0 for d in range(self.devices)}
        tensor: dict[tuple[int, ...], float] = {}
        number: dict[tuple[int, ...], float] = {}
        for k, group in enumerate(groups):
            device = k * own * degree
            copies[device,], tensor[device,], number[device,] = float(own), float(degree), float(k + 1)
            for v in group:
                placement[v] = device
        option: dict[tuple[int, ...], float] = {(v,): float(o) for v, o in enumerate(options.tolist())}
        return placement, -np.inf, {"copies": copies, "tensor": tensor, "option": option, "stage": number}
