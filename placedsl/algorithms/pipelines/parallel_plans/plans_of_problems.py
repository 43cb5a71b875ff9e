"""Plans of a problem: when the exact search applies, what it satisfies, and the search itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans import in_turn, unlike_devices
from placedsl.algorithms.pipelines.parallel_plans import levels as plans_across
from placedsl.algorithms.pipelines.parallel_plans.branching import GOALS, Holds, settle
from placedsl.algorithms.pipelines.parallel_plans.domains import Domain, Propagation
from placedsl.algorithms.pipelines.parallel_plans.instance import Goal, Plan
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult
from placedsl.algorithms.pipelines.parallel_plans.planned_problem import (
    PlannedProblem,
    moved_by_degree,
    with_options_of,
)
from placedsl.algorithms.pipelines.parallel_plans.search import MOST_IDEALS, best_plan
from placedsl.algorithms.pipelines.parallel_plans.spec_rules import rules_of
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.supports import PLACING, Supports, ignored, reasons_against
from placedsl.arrays import Integers
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.problem.execution import Execution
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import SUPPORTED, Constraint, Problem
from placedsl.problem.values import Values

#: Seconds from one plan that is told to the next: so many, and so many times those that the telling took.
_TOLD_EVERY, _SEARCHED = 0.5, 20.0

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


#: A placement with the values of a plan, and a load that no plan is below.
Tell = Callable[[Integers, Values, float], None]


class _Told:
    """What is known of plans so far: told now and then, and when the search is broken off."""

    def __init__(self, planned: PlannedProblem, tell: Tell | None) -> None:
        self.planned, self.tell = planned, tell
        self.plan: Plan | None = None
        self.translated: Callable[[Plan], Plan] = lambda plan: plan
        self.bound, self.tell_at, self.changed, self.searches = 0.0, time.monotonic() + _TOLD_EVERY, False, 0

    def limits(self, limits: SearchLimits, translated: Callable[[Plan], Plan]) -> SearchLimits:
        """Those of the next search, whose plans are ``translated``; the first one's bounds are the problem's."""
        if self.tell is None:
            return limits
        self.searches += 1
        first = self.searches == 1

        def hears(plan: Plan | None, bound: float) -> None:
            if plan is not None and (self.plan is None or plan.value < self.plan.value):
                self.plan, self.translated, self.changed = plan, translated, True
            if first and bound > self.bound:
                self.bound, self.changed = bound, True
            if time.monotonic() > self.tell_at:
                self.say()

        return replace(limits, told=hears)

    def say(self) -> None:
        """Tell it, if it is new; the longer it takes to hear of a plan, the less often."""
        began = time.monotonic()
        if self.tell is not None and self.plan is not None and self.changed:
            self.changed = False
            self.tell(*self.planned.placed(self.translated(self.plan)), self.bound)
        ended = time.monotonic()
        self.tell_at = ended + max(_TOLD_EVERY, _SEARCHED * (ended - began))


def solve(
    problem: Problem,
    *,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
    tell: Tell | None = None,
) -> PlanFound:
    """Search for the best plan; only for problems that :func:`against` says nothing of.

    ``tell`` hears of plans on the way, which may break rules, and of the bound.
    """
    sharing = problem.execution.data_parallelism
    assert sharing is not None
    costs = sharing.options
    assert costs is not None
    limits = SearchLimits(deadline, stop)
    rules = rules_of(problem, costs, _own(problem))
    propagation = Propagation(rules, costs, sharing.degrees)
    planned = PlannedProblem(problem, sharing, costs, rules)
    told = _Told(planned, tell)

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
            options_of = {int(d): row for own, row in zip(classes, rows, strict=True) for d in own}

            def translated(plan: Plan) -> Plan:
                each = (with_options_of(Plan((stage,)), options_of[stage.first]).stages for stage in plan.stages)
                return Plan(tuple(stage for own in each for stage in own))

            found = unlike_devices.best_plan(made, classes, told.limits(limits, translated), load, goal)
            return found if found.plan is None else replace(found, plan=translated(found.plan))
        instance, row = planned.instance(domain, 0)
        own = told.limits(limits, lambda plan: with_options_of(plan, row))
        if sharing.chunks > 1:
            found = in_turn.best_plan(instance, sharing.chunks, sharing.held_at_once, own, load)
        elif levels is None:
            found = best_plan(unlike_devices.any_number(instance), own, goal, load)
            found = unlike_devices.with_devices((instance,), classes, limits, load, goal, found)
        else:
            found = plans_across.best_plan(instance, levels, own, load)
        return found if found.plan is None else replace(found, plan=with_options_of(found.plan, row))

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
    try:
        settled = settle(rules, propagation, start, goals, planned.point, asked, holds, lambda: limits.passed)
    except BaseException:  # Ctrl-C above all
        told.say()
        raise
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
