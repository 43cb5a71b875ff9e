"""A problem as instances of the searches for plans, and their plans as placements and values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.branching import GOALS, measured
from placedsl.algorithms.pipelines.parallel_plans.domains import Domain
from placedsl.algorithms.pipelines.parallel_plans.instance import (
    ANY_NUMBER,
    Options,
    Plan,
    PlanInstance,
    PlanLimits,
)
from placedsl.algorithms.pipelines.parallel_plans.spec_rules import SpecRules, largest
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr, rows_of
from placedsl.problem.execution import DataParallelism, OptionCosts
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


class PlannedProblem:
    """A problem as instances of the search, and plans of the search as plans of the problem."""

    def __init__(self, problem: Problem, sharing: DataParallelism, costs: OptionCosts, rules: SpecRules) -> None:
        self.problem, self.sharing, self.costs, self.rules = problem, sharing, costs, rules
        self.largest = largest(problem)
        graph = problem.graph
        self.unit = placement_units(problem, contiguous=True, devices=(0,)).unit_of_node
        self.reads = _reads(graph.edge_tensor, self.unit[graph.edge_target])
        self.between = _between(self.unit[problem.precedence_source], self.unit[problem.precedence_target])

    def instance(self, domain: Domain, device: int) -> tuple[PlanInstance, Integers]:
        """What is searched within a domain, with devices like one, and the option (a position among all) of each node
        and row of the instance's options: n x o."""
        graph, costs, columns = self.problem.graph, self.costs, self.rules.columns
        data, together = columns.of("data"), columns.of("in_flight")
        most_copies = np.minimum(domain.high[data], self.rules.copies[device])
        limits = np.stack((domain.low[data], most_copies, domain.high[together]), axis=1)
        loose = limits >= np.array([np.inf, self.largest["data"], self.largest["in_flight"]])
        limits = np.where(loose, ANY_NUMBER, limits)
        by_node: list[list[int]] = [[] for _ in range(graph.nodes)]
        for option in np.flatnonzero(domain.options & np.isfinite(costs.time[:, device])).tolist():
            by_node[costs.node[option]].append(option)
        kinds: dict[tuple[tuple[float, ...], ...], int] = {}
        kind, rows, first = np.zeros(graph.nodes, dtype=np.int64), list[tuple[int, int]](), list[int]()
        for v, own in enumerate(by_node):
            key = (tuple(limits[v].tolist()), *(
                (float(costs.degree[o]), float(costs.time[o, device]), float(costs.weights[o, device]),
                 float(costs.stash[o]), float(costs.memory[o]), float(costs.sharded[o])) for o in own))  # fmt: skip
            if key not in kinds:
                kinds[key] = len(kinds)
                first.append(len(rows))
                rows += [(o, kinds[key]) for o in own]
            kind[v] = kinds[key]
        chosen = np.array([o for o, _ in rows], dtype=np.int64)
        options = Options(
            costs.degree[chosen], np.array([k for _, k in rows], dtype=np.int64), costs.time[chosen, device],
            costs.weights[chosen, device], costs.stash[chosen], costs.memory[chosen], costs.sharded[chosen],
        )  # fmt: skip
        row = np.full((graph.nodes, len(rows)), -1, dtype=np.int64)
        for v, own in enumerate(by_node):
            start = first[int(kind[v])]
            row[v, start : start + len(own)] = own
        sharing, batch = self.sharing, self.sharing.microbatches
        devices = self._most(domain, "devices_used") or len(self.problem.machine.devices)
        of_kind = np.zeros((len(kinds), 3), dtype=np.int64)
        of_kind[kind] = limits.astype(np.int64)
        stages, copies = (
            (int(max(0.0, domain.low[columns.start[name]])), self._most(domain, name))
            for name in ("stages_used", "copies_used")
        )
        fewest, most, in_flight = of_kind.T.copy()
        moved = moved_by_degree(self.problem, costs, device)
        assert moved is not None
        tensors = self.problem.transfer[:, device]
        capacity = min(float(self.rules.capacity[device]), float(self.problem.memory_limits[device]))
        fewest_devices = int(max(0.0, domain.low[columns.start["devices_used"]]))
        required = fewest_devices if fewest_devices > 1 else 0
        further = PlanLimits(fewest, most, in_flight, stages, copies, required, float(self.rules.time[device]))
        instance = PlanInstance(
            kind, self.unit, options, self.unit[graph.tensor_producer], self.reads, tensors + moved[0],
            tensors + moved[1], *self.between, sharing.tensor, sharing.degrees, devices, capacity,
            devices if batch is None else batch, sharing.exchange, sharing.traffic, further,
            {"pipeline": 0, "batch": batch or devices, "sample": 1}[sharing.held],
        )  # fmt: skip
        return instance, row

    def _most(self, domain: Domain, name: str) -> int | None:
        """The upper end of a number; None where it says nothing."""
        high = domain.high[self.rules.columns.start[name]]
        return int(high) if high < self.largest[name] else None

    def point(self, plan: Plan) -> Floats:
        """The quantities of a plan, a value per column of the rules."""
        columns = self.rules.columns
        out = np.zeros(columns.count)
        labels = {name: k for k, name in enumerate(self.costs.labels)}
        for place, stage in enumerate(plan.stages, 1):
            known = {"tensor": stage.degree, "data": stage.copies, "in_flight": stage.in_flight, "stage": place}
            for name, value in known.items():
                out[columns.of(name)[stage.nodes]] = value
            for nodes, samples in zip(stage.chunks, stage.chunk_in_flight, strict=True):
                out[columns.of("in_flight")[nodes]] = samples
            for v, taken in stage.option.items():
                out[columns.of("takes")[v, labels[self.costs.name[taken]]]] = 1.0
        for goal in GOALS:
            out[columns.start[goal]] = measured(plan, goal)
        return out

    def placed(self, plan: Plan) -> tuple[Integers, Values]:
        """Stages on devices in their order, each on the first of its own."""
        placement = np.full(self.problem.graph.nodes, -1, dtype=np.int64)
        copies: dict[tuple[int, ...], float] = {(d,): 0.0 for d in range(len(self.problem.machine.devices))}
        tensor, option = dict[tuple[int, ...], float](), dict[tuple[int, ...], float]()
        number, clusters, chunk = (dict[tuple[int, ...], float]() for _ in range(3))
        device, levels = 0, self.sharing.across
        for place, stage in enumerate(plan.stages, 1):
            if levels is not None:
                device = levels.devices[stage.first]
                around = zip(levels.around[device], stage.across, strict=True)
                clusters |= {(cluster,): float(runs) for cluster, runs in around}
            elif stage.first >= 0:
                device = stage.first
            placement[stage.nodes] = device
            copies[device,], tensor[device,], number[device,] = float(stage.copies), float(stage.degree), float(place)
            for v, taken in stage.option.items():
                option[v,] = float(taken)
            chunk |= {(v,): float(k) for k, nodes in enumerate(stage.chunks, 1) for v in nodes.tolist()}
            device += stage.copies * stage.degree
        known = {"copies": copies, "copy_size": tensor, "option": option, "order": number}
        known |= {"chunk": chunk} if chunk else {}
        return placement, known if levels is None else {**known, "cluster_copies": clusters}


def with_options_of(plan: Plan, row: Integers) -> Plan:
    """A plan whose options are positions among all options."""
    return Plan(tuple(
        replace(stage, option={v: int(row[v, taken]) for v, taken in stage.option.items()}) for stage in plan.stages
    ))  # fmt: skip


def _reads(tensor: Integers, unit: Integers) -> tuple[Integers, Integers]:
    """Pairs of tensors and units, each once."""
    pairs = np.unique(np.stack((tensor, unit), axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _between(before: Integers, after: Integers) -> tuple[Integers, Integers]:
    """Pairs of different units, each once."""
    pairs = np.unique(np.stack((before, after), axis=1)[before != after], axis=0)
    return pairs[:, 0], pairs[:, 1]


def moved_by_degree(problem: Problem, costs: OptionCosts, device: int) -> tuple[Floats, Floats] | None:
    """g x t seconds that reading, or sending, a tensor takes on a device beside the tensor itself; None where that
    depends on more than the degree."""
    graph, sharing = problem.graph, problem.execution.data_parallelism
    assert sharing is not None
    allowed = np.flatnonzero(np.isin(costs.degree, sharing.tensor))
    degree = np.searchsorted(sharing.tensor, costs.degree[allowed])
    found = []
    for moved, nodes, tensors in (
        (costs.gathered, graph.edge_target, graph.edge_tensor),
        (costs.scattered, graph.tensor_producer, np.arange(graph.tensors)),
    ):
        start, of_node = csr(nodes, tensors, graph.nodes)
        at, row = rows_of(start, costs.node[allowed])
        key, tensor = allowed[at] * graph.tensors + of_node[row], of_node[row]
        amount = np.zeros(len(key))
        own = moved.option * graph.tensors + moved.tensor
        if len(own):
            order = np.argsort(own)
            place = np.minimum(np.searchsorted(own[order], key), len(own) - 1)
            amount = np.where(own[order][place] == key, moved.amount[order][place], 0.0)
        least = np.full((len(sharing.tensor), graph.tensors), np.inf)
        most = np.zeros(least.shape)
        np.minimum.at(least, (degree[at], tensor), amount)
        np.maximum.at(most, (degree[at], tensor), amount)
        if (least < most).any():
            return None
        found.append(np.where(np.isfinite(least), least, 0.0) * costs.per_byte[device])
    return found[0], found[1]
