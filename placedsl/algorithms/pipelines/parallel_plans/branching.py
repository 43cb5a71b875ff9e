"""The best plan under rules of a spec: branch and bound over what the rules are about, plans by dynamic programming.

Each node of the tree asks for the best plan within a domain.  A plan that satisfies all rules settles its node; else
one column of a row that it breaks is divided, so that propagation excludes the plan on either side.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.domains import Domain, Propagation, broken_rows, with_literals
from placedsl.algorithms.pipelines.parallel_plans.instance import Goal, Plan
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import STRICTLY, PlanResult
from placedsl.algorithms.pipelines.parallel_plans.spec_rules import SpecRules
from placedsl.arrays import Floats, Integers

#: What a plan may be measured by.
GOALS: tuple[Goal, ...] = get_args(Goal)
#: A time that was reached may be missed by this share while a further objective is minimised: the rounding of sums.
_REACHED = 1e-12

#: Answers a question: the best plan of a domain by a goal, of those that are better than a value.
Oracle = Callable[[Domain, Goal, float], PlanResult]
#: By quantity: whether its answers keep to a lower end, and to an upper end, of that quantity in the domain.
Holds = Mapping[str, tuple[bool, bool]]


@dataclass(frozen=True, eq=False)
class Settled:
    """The best plan that satisfies the rules, and bounds; ``stuck``: constraints that branching does not decide."""

    plan: Plan | None
    values: tuple[float, ...]
    bounds: tuple[float, ...]
    complete: bool
    stuck: tuple[str, ...] = ()
    too_many: bool = False


def measured(plan: Plan, goal: str) -> float:
    """A goal of a plan."""
    match goal:
        case "time_per_sample":
            return plan.value
        case "devices_used":
            return float(plan.devices)
        case "stages_used":
            return float(len(plan.stages))
    return float(sum(stage.copies for stage in plan.stages))


def settle(
    rules: SpecRules, propagation: Propagation, start: Domain, goals: tuple[Goal, ...], point: Callable[[Plan], Floats],
    oracle: Oracle, holds: Holds, stop: Callable[[], bool],
) -> Settled:  # fmt: skip
    """The best plan by one goal after another; ``point``: the quantities of a plan, a value per column."""
    domain: Domain | None = start
    values, bounds = list[float](), list[float]()
    best: Plan | None = None
    for goal in goals:
        assert domain is not None
        tree = _Tree(rules, propagation, goal, point, oracle, holds, stop)
        plan, bound, complete = tree.search(domain, best)
        bounds.append(float(bound))
        if plan is None:
            return Settled(best, tuple(values), tuple(bounds), complete, tuple(tree.stuck), tree.too_many)
        best = plan
        values.append(measured(plan, goal))
        if not complete:
            return Settled(best, tuple(values), tuple(bounds), False, tuple(tree.stuck), tree.too_many)
        column = rules.columns.start[goal]
        reached = values[-1] * (1.0 + _REACHED) if goal == "time_per_sample" else values[-1]
        domain = domain.at_most(column, reached)
    return Settled(best, tuple(values), tuple(bounds), True)


class _Tree:
    """The tree of one goal."""

    def __init__(
        self, rules: SpecRules, propagation: Propagation, goal: Goal, point: Callable[[Plan], Floats], oracle: Oracle,
        holds: Holds, stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.rules, self.propagation, self.goal, self.point = rules, propagation, goal, point
        self.oracle, self.holds, self.stop = oracle, holds, stop
        self.stuck: dict[str, None] = {}
        self.too_many = False

    def search(self, domain: Domain, known: Plan | None) -> tuple[Plan | None, float, bool]:
        """The best plan (``known``: one that satisfies the rules), a bound, and whether that was proven."""
        best, value = known, np.inf if known is None else measured(known, self.goal)
        number = itertools.count()
        queue: list[tuple[float, int, Domain]] = []
        root = self.propagation.narrowed(domain)
        if root is not None:
            queue.append((-np.inf, next(number), root))
        settled = np.inf  # the least bound of what branching could not decide
        while queue:
            bound, _, current = heapq.heappop(queue)
            if bound > self._better_than(value):
                break
            if self.stop():
                return best, min(bound, settled, value), False
            asked = self.oracle(current, self.goal, self._better_than(value))
            self.too_many |= asked.too_many
            if not asked.complete:
                plan = asked.plan
                if plan is not None and not len(self._broken(plan)[1]):
                    best, value = plan, measured(plan, self.goal)
                rest = min((b for b, _, _ in queue), default=np.inf)
                return best, min(max(bound, asked.bound), rest, settled, value), False
            if asked.plan is None:
                continue
            own = measured(asked.plan, self.goal)
            at, broken = self._broken(asked.plan)
            if not len(broken):
                best, value = asked.plan, own
                continue
            # What stands for rows that were taken to hold is so here, whether or not the plan satisfies them.
            own_columns = slice(self.rules.columns.count, None)
            at[own_columns] = np.clip(at[own_columns], current.low[own_columns], current.high[own_columns])
            halves = self._halves(current, at, broken_rows(self.rules, at))
            if halves is None:
                self.stuck |= dict.fromkeys(self.rules.name[row] for row in broken.tolist())
                settled = min(settled, own)
                continue
            for half in halves:
                left = self.propagation.narrowed(half)
                if left is not None:
                    heapq.heappush(queue, (max(bound, asked.bound), next(number), left))
        if settled < np.inf and settled <= self._better_than(value):
            return best, settled, False
        return best, float(value), True

    def _better_than(self, value: float) -> float:
        """What a plan has to be within to count as better."""
        return value * (1.0 - STRICTLY) if self.goal == "time_per_sample" else value - 1.0

    def _broken(self, plan: Plan) -> tuple[Floats, Integers]:
        at = with_literals(self.rules, self.point(plan))
        return at, broken_rows(self.rules, at)

    def _halves(self, domain: Domain, at: Floats, broken: Integers) -> tuple[Domain, Domain] | None:
        """Two domains in place of one, divided at the plan's value of a column that a broken row holds; None if
        nothing that branching decides is left open in any of these rows."""
        rules = self.rules
        for row in broken.tolist():
            entries = np.flatnonzero(rules.row == row)
            value = float((rules.coefficient[entries] * at[rules.column[entries]]).sum())
            over = value > rules.upper[row] or (rules.strict[row] and value >= rules.upper[row])
            choices: list[tuple[float, int, bool]] = []
            literal = int(rules.literal[row])
            if literal >= 0 and self._open(domain, literal, at[literal], not rules.wanted[row]):
                choices.append((2.0, literal, not rules.wanted[row]))
            for column, factor in zip(rules.column[entries].tolist(), rules.coefficient[entries].tolist(), strict=True):
                up = (factor > 0.0) != over
                if self._open(domain, column, at[column], up):
                    choices.append((domain.high[column] - domain.low[column] + 1.0, column, up))
            if choices:
                _, column, up = min(choices)
                if up:
                    return domain.at_least(column, at[column] + 1.0), domain.at_most(column, at[column])
                return domain.at_most(column, at[column] - 1.0), domain.at_least(column, at[column])
        return None

    def _open(self, domain: Domain, column: int, value: float, up: bool) -> bool:
        """Whether a column that the search can hold has values above (below) one."""
        columns = self.rules.columns
        name = next((n for n, s in columns.start.items() if s <= column < s + int(np.prod(columns.shape[n]))), "")
        lower, upper = self.holds.get(name, (False, False))
        if not (lower if up else upper):
            return False
        return bool(domain.high[column] > value + 0.5 if up else domain.low[column] < value - 0.5)
