"""Plans of a problem: when the exact search applies, the instance that it searches, and its plan as a placement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.instance import Options, Plan, PlanInstance
from placedsl.algorithms.pipelines.parallel_plans.search import MOST_IDEALS, best_plan
from placedsl.algorithms.pipelines.state_dp import SearchLimits
from placedsl.algorithms.supports import PLACING, Supports, ignored, reasons_against
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.graph.options import Moved
from placedsl.problem.execution import DataParallelism, Execution, OptionCosts
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

#: A chain of stages over devices that are all alike.
SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=(Execution(),), requires=("contiguous",),
    constraints=PLACING | {"contiguous", "convex"}, clusters=False, data_parallelism=True, options=True,
    relaxes=True, further=(),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlanFound:
    """The best plan of a problem as a placement and values (None: there is none), its value, a proven bound of the
    problem with the rules that the search knows, and whether the search was complete."""

    placement: Integers | None
    values: Values
    value: float
    bound: float
    complete: bool
    message: str = ""


def against(problem: Problem) -> list[str]:
    """Why the search does not apply, a clause each."""
    return conditions(problem) or reasons_against(problem, SUPPORTS)


def conditions(problem: Problem) -> list[str]:
    """What is not so of the problem that every search for plans takes for granted, a clause each."""
    costs = problem.execution.options
    if costs is None:
        return ["it makes plans, with options or copies of several devices, and the spec asks for none"]
    out = []
    if len(set(problem.interchangeable(clustered=False).tolist())) > 1:
        out.append("its devices are all alike, in time, memory and links")
    elif not problem.accelerators.all():
        out.append("its devices are accelerators")
    if moved_by_degree(problem, costs) is None:
        out.append("options of one node and degree gather and scatter the same")
    return out


def beyond(problem: Problem) -> list[str]:
    """What the search leaves out of a problem that it applies to."""
    return ignored(problem, SUPPORTS)


def solve(problem: Problem, *, deadline: float | None = None, stop: Callable[[], bool] | None = None) -> PlanFound:
    """Search for the best plan; only for problems that :func:`against` says nothing of."""
    sharing = problem.execution.data_parallelism
    assert sharing is not None
    assert sharing.options is not None
    instance, row = instance_of(problem, sharing, sharing.options)
    found = best_plan(instance, SearchLimits(deadline, stop))
    message = (
        f"more than {MOST_IDEALS:,} ideals, the sets that the search is over, matter here" if found.too_many else ""
    )
    if found.plan is None:
        return PlanFound(None, {}, np.inf, found.bound, found.complete, message)
    placement, values = _placed(problem, found.plan, row)
    return PlanFound(placement, values, found.plan.value, found.bound, found.complete, message)


def instance_of(problem: Problem, sharing: DataParallelism, costs: OptionCosts) -> tuple[PlanInstance, Integers]:
    """The instance, and the option (a position in ``costs``) of each node and row of the instance's options: n x o."""
    graph = problem.graph
    degrees = sharing.tensor
    allowed = np.flatnonzero(np.isin(costs.degree, degrees) & np.isfinite(costs.time[:, 0]))
    by_node: list[list[int]] = [[] for _ in range(graph.nodes)]
    for option in allowed.tolist():
        by_node[costs.node[option]].append(option)
    kinds: dict[tuple[tuple[float, ...], ...], int] = {}
    kind, rows = np.zeros(graph.nodes, dtype=np.int64), list[tuple[int, int]]()
    for v, own in enumerate(by_node):
        key = tuple((float(costs.degree[o]), float(costs.time[o, 0]), float(costs.weights[o, 0]), float(costs.stash[o]),
                     float(costs.memory[o])) for o in own)  # fmt: skip
        if key not in kinds:
            kinds[key] = len(kinds)
            rows += [(o, kinds[key]) for o in own]
        kind[v] = kinds[key]
    chosen = np.array([o for o, _ in rows], dtype=np.int64)
    options = Options(
        costs.degree[chosen], np.array([k for _, k in rows], dtype=np.int64), costs.time[chosen, 0],
        costs.weights[chosen, 0], costs.stash[chosen], costs.memory[chosen],
    )  # fmt: skip
    first = {k: i for i, (_, k) in reversed(list(enumerate(rows)))}
    row = np.full((graph.nodes, len(rows)), -1, dtype=np.int64)
    for v, own in enumerate(by_node):
        start = first.get(int(kind[v]), 0)
        row[v, start : start + len(own)] = own
    moved = moved_by_degree(problem, costs)
    assert moved is not None
    devices = len(problem.machine.devices)
    batch = sharing.microbatches
    unit = placement_units(problem, contiguous=True, devices=(0,)).unit_of_node
    instance = PlanInstance(
        kind, unit, options, unit[graph.tensor_producer], _reads(graph.edge_tensor, unit[graph.edge_target]),
        problem.transfer[:, 0] + moved[0], problem.transfer[:, 0] + moved[1],
        *_between(unit[problem.precedence_source], unit[problem.precedence_target]), degrees, sharing.degrees, devices,
        float(problem.memory_limits[0]), devices if batch is None else batch, sharing.exchange, sharing.traffic,
    )  # fmt: skip
    return instance, row


def _reads(tensor: Integers, unit: Integers) -> tuple[Integers, Integers]:
    """Pairs of tensors and units, each once."""
    pairs = np.unique(np.stack((tensor, unit), axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _between(before: Integers, after: Integers) -> tuple[Integers, Integers]:
    """Pairs of different units, each once."""
    pairs = np.unique(np.stack((before, after), axis=1)[before != after], axis=0)
    return pairs[:, 0], pairs[:, 1]


def moved_by_degree(problem: Problem, costs: OptionCosts) -> tuple[Floats, Floats] | None:
    """g x t seconds that reading, or sending, a tensor takes beside the tensor itself; None where that depends on more
    than the degree."""
    graph, sharing = problem.graph, problem.execution.data_parallelism
    assert sharing is not None
    readers, tensors = graph.edge_target, graph.edge_tensor
    found = []
    for moved, ends in (
        (costs.gathered, (readers, tensors)),
        (costs.scattered, (graph.tensor_producer, np.arange(graph.tensors))),
    ):
        out = np.zeros((len(sharing.tensor), graph.tensors))
        amounts = _amounts(moved)
        nodes_of: dict[int, list[int]] = {}
        for node, tensor in zip(*(end.tolist() for end in ends), strict=True):
            nodes_of.setdefault(node, []).append(tensor)
        known: dict[tuple[int, int], float] = {}
        for option, (node, degree) in enumerate(zip(costs.node.tolist(), costs.degree.tolist(), strict=True)):
            if degree not in sharing.tensor:
                continue
            g = sharing.tensor.index(degree)
            for tensor in nodes_of.get(node, ()):
                amount = amounts.get((option, tensor), 0.0)
                if known.setdefault((g, tensor), amount) != amount:
                    return None
                out[g, tensor] = amount * costs.per_byte[0]
        found.append(out)
    return found[0], found[1]


def _amounts(moved: Moved) -> dict[tuple[int, int], float]:
    return {(o, t): x for o, t, x in zip(*(column.tolist() for column in moved), strict=True)}


def _placed(problem: Problem, plan: Plan, row: Integers) -> tuple[Integers, Values]:
    """Stages on devices in their order, each on the first of its own."""
    placement = np.full(problem.graph.nodes, -1, dtype=np.int64)
    copies: dict[tuple[int, ...], float] = {(d,): 0.0 for d in range(len(problem.machine.devices))}
    tensor, option, number = (
        dict[tuple[int, ...], float](),
        dict[tuple[int, ...], float](),
        dict[tuple[int, ...], float](),
    )
    device = 0
    for place, stage in enumerate(plan.stages, 1):
        placement[stage.nodes] = device
        copies[device,], tensor[device,], number[device,] = float(stage.copies), float(stage.degree), float(place)
        for v, taken in stage.option.items():
            option[v,] = float(row[v, taken])
        device += stage.copies * stage.degree
    return placement, {"copies": copies, "tensor": tensor, "option": option, "stage": number}
