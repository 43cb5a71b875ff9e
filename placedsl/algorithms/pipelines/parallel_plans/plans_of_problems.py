"""Plans of a problem: when the exact search applies, the instance that it searches, and its plan as a placement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans import in_turn, unlike_devices
from placedsl.algorithms.pipelines.parallel_plans import levels as plans_across
from placedsl.algorithms.pipelines.parallel_plans.branching import GOALS, Holds, measured, settle
from placedsl.algorithms.pipelines.parallel_plans.domains import Domain, Propagation
from placedsl.algorithms.pipelines.parallel_plans.instance import (
    ANY_NUMBER,
    Goal,
    Options,
    Plan,
    PlanInstance,
    PlanLimits,
)
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult
from placedsl.algorithms.pipelines.parallel_plans.search import MOST_IDEALS, best_plan
from placedsl.algorithms.pipelines.parallel_plans.spec_rules import SpecRules, largest, rules_of
from placedsl.algorithms.pipelines.state_dp import SearchLimits
from placedsl.algorithms.supports import PLACING, Supports, ignored, reasons_against
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr, rows_of
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.problem.execution import DataParallelism, Execution, OptionCosts
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import SUPPORTED, Constraint, Problem
from placedsl.problem.values import Values

#: A chain of stages over devices that are all alike.
SUPPORTS = Supports(
    objectives=GOALS, executions=(Execution(),), requires=("contiguous",),
    constraints=PLACING | {"contiguous", "convex"}, clusters=False, data_parallelism=True, options=True, relaxes=True,
)  # fmt: skip


#: The same with several chunks a stage.
IN_TURN = replace(
    SUPPORTS, objectives=("time_per_sample",), constraints=PLACING | {"contiguous"}, chunks=True, further=(),
)  # fmt: skip

#: The same over clusters whose copies share samples.
ACROSS = replace(SUPPORTS, objectives=("time_per_sample",), clusters=True, further=())

#: Which ends of a quantity the searches keep to ("": what stands for whether rows hold).
HOLDS_ACROSS: Holds = {
    "": (True, True), "tensor": (True, True), "takes": (True, True), "data": (True, True), "in_flight": (False, True),
    "copies_used": (False, True),
}  # fmt: skip
HOLDS_IN_TURN: Holds = {
    **HOLDS_ACROSS, "stages_used": (True, True), "copies_used": (True, True), "devices_used": (False, True),
}  # fmt: skip
HOLDS: Holds = {
    **HOLDS_ACROSS, "stages_used": (True, True), "copies_used": (True, True), "devices_used": (True, True),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlanFound:
    """The best plan of a problem as a placement and values (None: there is none), the values of the goals that were
    settled, proven bounds of the goals, whether the search was complete, and what it left out."""

    placement: Integers | None
    values: Values
    goals: tuple[float, ...]
    bounds: tuple[float, ...]
    complete: bool
    beyond: tuple[str, ...] = ()
    message: str = ""


def against(problem: Problem) -> list[str]:
    """Why the search does not apply, a clause each."""
    supported = _supported(problem)
    return conditions(problem, supported in (IN_TURN, ACROSS)) or reasons_against(problem, supported)


def _supported(problem: Problem) -> Supports:
    if problem.execution.chunks > 1:
        return IN_TURN
    if problem.execution.cluster_levels is not None:
        return ACROSS
    return SUPPORTS


def _classes(problem: Problem) -> list[Integers]:
    """The devices of each class of like ones."""
    number = problem.interchangeable(clustered=False)
    return [np.flatnonzero(number == k) for k in range(int(number.max(initial=-1)) + 1)]


def conditions(problem: Problem, alike: bool = True) -> list[str]:
    """What is not so of the problem that every search for plans takes for granted, a clause each; ``alike``: whether
    that is also that its devices are."""
    costs = problem.execution.options
    if costs is None:
        return ["it makes plans, with options or copies of several devices, and the spec asks for none"]
    out = []
    if alike and len(_classes(problem)) > 1:
        out.append("it requires devices that are all alike, in time, memory and links")
    elif not problem.accelerators.all():
        out.append("it requires devices that are accelerators")
    if moved_by_degree(problem, costs, 0) is None:
        out.append("it requires that options of one node and degree gather and scatter the same")
    known: dict[tuple[int, int], float] = {}
    if any(
        known.setdefault((v, t), z) != z
        for v, t, z in zip(costs.node.tolist(), costs.degree.tolist(), costs.sharded.tolist(), strict=True)
    ):
        out.append("it requires that options of one node and degree divide the same bytes among copies")
    sent: dict[tuple[int, int], float] = {}
    if problem.execution.cluster_levels is not None and any(
        sent.setdefault((v, t), w) != w
        for v, t, w in zip(costs.node.tolist(), costs.degree.tolist(), costs.weights[:, 0].tolist(), strict=True)
    ):
        out.append(
            "it requires that options of one node and degree have the same weights, where clusters share samples"
        )
    return out


def beyond(problem: Problem) -> list[str]:
    """What the search leaves out of a problem that it applies to: names of constraints, variables, and objectives."""
    costs = problem.execution.options
    assert costs is not None
    left = set(rules_of(problem, costs, _own(problem)).beyond)
    known = {rule.name for rule in _own(problem)} - left
    out = [name for name in ignored(problem, _supported(problem)) if name not in known]
    if _supported(problem) is not SUPPORTS:
        return out
    return out + [f"then {goal.name}" for goal in problem.objectives[len(_goals(problem)) :]]


def _own(problem: Problem) -> list[Constraint]:
    """The constraints that the search does not satisfy by construction."""
    known = _supported(problem).constraints
    assert known is not None
    return [rule for rule in problem.constraints if rule.equivalent not in {*known, SUPPORTED}]


def _goals(problem: Problem) -> tuple[Goal, ...]:
    """The objectives, up to the first one that no plan is measured by."""
    out = list[Goal]()
    for goal in problem.objectives:
        name = goal.body.name if isinstance(goal.body, Provided) else ""
        if name not in GOALS:
            break
        out.append(GOALS[GOALS.index(name)])
    return tuple(out)


def solve(problem: Problem, *, deadline: float | None = None, stop: Callable[[], bool] | None = None) -> PlanFound:
    """Search for the best plan; only for problems that :func:`against` says nothing of."""
    sharing = problem.execution.data_parallelism
    assert sharing is not None
    costs = sharing.options
    assert costs is not None
    limits = SearchLimits(deadline, stop)
    rules = rules_of(problem, costs, _own(problem))
    propagation = Propagation(rules, costs, sharing.degrees)
    planned = _PlannedProblem(problem, sharing, costs, rules)

    def asked(domain: Domain, goal: Goal, within: float) -> PlanResult:
        load = domain.high[rules.columns.start["time_per_sample"]]
        if goal == "time_per_sample":
            load = min(load, within)
        else:
            domain = domain.at_most(rules.columns.start[goal], within)
        if any(domain.high[rules.columns.start[name]] < 1.0 for name in GOALS[1:]):
            return PlanResult(None, np.inf, True)
        if len(classes) > 1:
            made, rows = zip(*(planned.instance(domain, int(own[0])) for own in classes), strict=True)
            found = unlike_devices.best_plan(made, classes, limits, load, goal)
            options_of = {int(d): row for own, row in zip(classes, rows, strict=True) for d in own}
            if found.plan is None:
                return found
            stages = (_with_options_of(Plan((stage,)), options_of[stage.first]).stages for stage in found.plan.stages)
            return replace(found, plan=Plan(tuple(stage for own in stages for stage in own)))
        instance, row = planned.instance(domain, 0)
        if sharing.chunks > 1:
            found = in_turn.best_plan(instance, sharing.chunks, sharing.held_at_once, limits, load)
        elif levels is None:
            found = best_plan(unlike_devices.any_number(instance), limits, goal, load)
            found = unlike_devices.with_devices((instance,), classes, limits, load, goal, found)
        else:
            found = plans_across.best_plan(instance, levels, limits, load)
        return found if found.plan is None else replace(found, plan=_with_options_of(found.plan, row))

    classes = _classes(problem)
    able = np.isin(costs.degree, sharing.tensor) & np.isfinite(costs.time).any(axis=1)
    start = Domain(rules.low, rules.high, able)
    levels = None if sharing.across is None else _levels(sharing.across, float(costs.per_byte[0]))
    goals, holds, most = _goals(problem), HOLDS, MOST_IDEALS
    if levels is not None:
        goals, holds, most = goals[:1], HOLDS_ACROSS, plans_across.MOST_IDEALS
    elif sharing.chunks > 1:
        goals, holds, most = goals[:1], HOLDS_IN_TURN, in_turn.most_ideals(sharing.chunks)
    elif len(classes) > 1:
        most = unlike_devices.MOST_IDEALS
    settled = settle(rules, propagation, start, goals, planned.point, asked, holds, lambda: limits.passed)
    message = ""
    if settled.too_many:
        message = f"more than {most:,} ideals, the sets that the search is over, matter here"
        message += "" if levels is None else " ('colocated by' a layer, or 'fuse', makes fewer)"
    elif not (settled.complete or settled.stuck or limits.passed):
        message = "the search has room for so many states, and tries so many choices of options, only"
    if message and sharing.chunks > 1 and settled.plan is None:
        message += ", and no division of one order of the nodes was found that fits"
    left = (*beyond(problem), *settled.stuck)
    if settled.plan is None:
        return PlanFound(None, {}, (), settled.bounds, settled.complete, left, message)
    placement, values = planned.placed(settled.plan)
    return PlanFound(placement, values, settled.values, settled.bounds, settled.complete, left, message)


def _levels(across: ClusterLevels, own: float) -> plans_across.PlanLevels:
    """Clusters that share samples, for the search; ``own``: seconds per byte over the link of a device."""
    slower = tuple((across.per_byte / own).tolist() if own > 0.0 else [0.0] * len(across.per_byte))
    return plans_across.PlanLevels(across.size, across.crossing, slower)


class _PlannedProblem:
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


def _with_options_of(plan: Plan, row: Integers) -> Plan:
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
