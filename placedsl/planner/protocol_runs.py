"""Running algorithms by the protocol of plug-ins: one that is named, or in turn those of plug-ins that fit.

What they find is a placement once the evaluator accepts it; a bound is believed as a solver's is, until a verified
placement contradicts it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placedsl import plugins
from placedsl.algorithms import registry
from placedsl.algorithms.interface import Algorithm, NothingFoundError
from placedsl.budget import Budget
from placedsl.diagnostics import UsageError
from placedsl.planner.incumbent import Incumbent
from placedsl.planner.request import METHODS, Request, tried
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.tolerances import SAME_VALUE
from placedsl.units import show

#: The longest, in seconds, that an algorithm may take that nobody has named.
LONGEST_TRIAL = 10.0


@dataclass(frozen=True)
class Ended:
    """How a run ended: the algorithm's name, termination and message."""

    method: str
    termination: str
    message: str


def run_named(name: str, problem: Problem, request: Request, best: Incumbent, left: float | None) -> Ended:
    """Run the algorithm that the user has named; UsageError when it does not fit, or does not work."""
    plugin, algorithm, against = _looked_at(name, problem)
    if against:
        raise UsageError(f"method {name} does not fit: " + "; ".join(against))
    run = _Run(plugin, request, best, left)
    try:
        run.all(algorithm)
    except NothingFoundError as reason:
        return Ended(name, "ended", f"{name} found no placement: {reason}")
    if run.settled:
        return run.ended()
    if best.evaluation is None and best.last_rejected is not None:
        broken = "; ".join(v.message for v in best.last_rejected.violations[:3])
        if name in registry.own():
            return Ended(name, "ended", f"{name} found no placement that satisfies the constraints: {broken}")
        return Ended(name, "error", f"the evaluator refuses the placement that {name} gave: {broken}")
    if run.late:
        return Ended(name, "time_limit", f"the time limit was reached during {name}")
    return Ended(name, "ended", f"{name} came to its end" + ("" if best.evaluation else " without a placement"))


def run_fitting(
    problem: Problem, request: Request, best: Incumbent, left: float | None, notes: list[str]
) -> Ended | None:
    """Try what fits until one settles the problem (else None: what they found is a start and a bound).

    Nobody asked for them, so one that does not work is a note and nothing more.
    """
    seconds = LONGEST_TRIAL if left is None else min(LONGEST_TRIAL, left / 4)
    goal = problem.objectives[0]
    for name in tried():
        before = best.value
        try:
            plugin, algorithm, against = _looked_at(name, problem)
            if against:
                continue
            run = _Run(plugin, request, best, seconds)
            run.all(algorithm)
        except NothingFoundError:
            continue
        except UsageError as error:
            notes.append(f"not used: {error}")
            continue
        if run.settled:
            return run.ended()
        if best.value < before:
            notes.append(f"{name} found a placement with {goal.name} = {show(best.value, goal.dimension)}")
    return None


def run_unnamed(
    name: str, module: str, request: Request, best: Incumbent, left: float | None, notes: list[str]
) -> Ended | None:
    """Try one built-in algorithm that fits; None unless it settles the problem (it then gave a start and a bound)."""
    seconds = LONGEST_TRIAL if left is None else min(LONGEST_TRIAL, left / 4)
    plugin, before, goal = registry.built_in(name, module), best.value, best.problem.objectives[0]
    run = _Run(plugin, request, best, seconds)
    try:
        run.all(plugin.load("fits", "solve"))
    except NothingFoundError:
        return None
    if run.settled:
        return run.ended()
    if best.value < before:
        notes.append(f"{name} found a placement with {goal.name} = {show(best.value, goal.dimension)}")
    return None


def _looked_at(name: str, problem: Problem) -> tuple[plugins.Plugin, Algorithm, Sequence[str]]:
    """The plug-in, what it brings, and why that does not fit."""
    plugin = registry.find(name, METHODS)
    algorithm: Algorithm = plugin.load("fits", "solve")
    return plugin, algorithm, plugin.call(algorithm.fits, problem)


class _Run:
    """One run of one algorithm."""

    def __init__(self, plugin: plugins.Plugin, request: Request, best: Incumbent, seconds: float | None) -> None:
        self.plugin, self.best, self.seconds = plugin, best, seconds
        self.budget = Budget(seconds, request.gap or SAME_VALUE, request.workers or 0, request.seed or 0)
        self.until = None if seconds is None else time.monotonic() + seconds
        self.impossible = False

    def all(self, algorithm: Algorithm) -> None:
        """From the start to the end; PluginError for what no algorithm may say."""
        self.best.last_rejected = None
        found = self.plugin.call(algorithm.solve, self.best.problem, self.budget, self.take)
        if not isinstance(found, tuple | list) or len(found) not in (2, 3):
            raise plugins.PluginError(f"{self.plugin} failed: it gives no pair of a placement and a bound")
        self.plugin.call(self.take, *found)
        if self.best.refuted():
            raise plugins.PluginError(f"{self.plugin} failed: a verified placement refutes the bound that it claims")

    def take(self, placement: Sequence[int] | None, bound: float, values: Values | None = None) -> bool:
        """Verify a placement (with what else the answer says), note a bound; whether to stop."""
        problem = self.best.problem
        if placement is not None:
            if len(placement) != problem.graph.nodes:
                given = f"{len(placement)} of {problem.graph.nodes} nodes"
                raise plugins.PluginError(f"{self.plugin} failed: it placed {given}")
            self.best.offer(np.asarray(placement, dtype=np.int64), values)
        elif bound == np.inf and self.best.evaluation is None:
            self.impossible = True
        if -np.inf < bound < np.inf:
            self.best.bound(float(bound), by=str(self.plugin), claimed=True)
        return self.late or self.settled

    @property
    def late(self) -> bool:
        """Its time is over."""
        return self.until is not None and time.monotonic() >= self.until

    @property
    def settled(self) -> bool:
        """The only objective is proven within the gap asked for, or it is proven that there is no placement."""
        if self.best.evaluation is None:
            return self.impossible
        return len(self.best.problem.objectives) == 1 and self._distance <= self.budget.gap

    @property
    def _distance(self) -> float:
        return self.best.gap()

    def ended(self) -> Ended:
        """Termination and message of a run that is settled."""
        name = self.plugin.name
        if self.best.evaluation is None:
            return Ended(name, "infeasible", f"{name} proved that no placement satisfies the constraints")
        if self._distance <= SAME_VALUE:
            by = name if self.best.claimed[0] >= self.best.bounds[0] else "the simple bound: work shared out evenly"
            return Ended(name, "optimal", f"proven by {by}")
        return Ended(name, "gap_reached", f"within the gap that was asked for, {self.budget.gap:.3g}")
