"""Whether some of a problem's rules can hold together, on any solver; nothing is minimised.

Placements that were found before answer most questions.  Then dynamic programming, where contiguous pieces are
asked for, and then a program for a solver.  A placement counts when the evaluator accepts it, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import reasons_against
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.graph.contraction import precedence
from placedsl.grounding.build import Grounded, build
from placedsl.lowering.lower import lower
from placedsl.planner.request import Request, solvers_for
from placedsl.problem import expressions as core
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Constraint, Objective, Problem
from placedsl.problem.values import Values
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.units import NUMBER

#: Dynamic programming finds a placement under any objective and schedule, for these do not matter here.
_PIPELINES = replace(contiguous.SUPPORTS, objectives=(), executions=())
#: Ideals that dynamic programming may look at for one question; above it a solver is quicker.
_MOST_IDEALS = 20_000


@dataclass
class Feasibility:
    """Answers questions about one problem until a deadline (of ``time.monotonic``; None: no limit).

    ``formulation`` states the problem; ``request`` has the solver, the threads and the seed.  ``fixed_order``: how
    the backward part runs through a pipeline does not depend on which rules are asked about.  ``progress`` hears
    ``purpose``, what the questions are for, and how many have been asked.
    """

    problem: Problem
    formulation: Formulation
    request: Request
    deadline: float | None = None
    isolated: bool = True
    fixed_order: bool = False
    known: list[tuple[int, ...]] = field(default_factory=list)
    asked: int = 0
    progress: Callable[[str], None] = lambda _: None
    purpose: str = ""
    _refuted: set[frozenset[str]] = field(default_factory=set)
    _verdicts: dict[tuple[int, ...], dict[str, bool]] = field(default_factory=dict)

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, at least 0 (None: no limit)."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def begins(self, purpose: str) -> None:
        """What is asked from here on, in words for ``progress``."""
        self.purpose = purpose
        self.progress(purpose)

    def together(self, rules: Sequence[Constraint], *, supported: bool = True) -> bool | None:
        """Whether some placement satisfies these rules; None when the time or the solver did not allow to tell.

        Without ``supported`` every device runs every node (in no time where the graph has none).
        """
        part = restricted(self.problem, rules, fixed_order=self.fixed_order)
        if not supported:
            part = replace(part, time=np.where(np.isinf(part.time), 0.0, part.time))
        if any(self._satisfies(placement, part, supported) for placement in reversed(self.known)):
            return True
        asked = frozenset(_key(rule, part, supported) for rule in rules)
        if asked in self._refuted or (~np.isfinite(part.time)).all(axis=1).any():
            return False
        if self.left == 0.0:
            return None
        self.asked += 1
        self.progress(f"{self.purpose}, question {self.asked}")
        found = self._by_dynamic_programming(part)
        found = self._by_solver(part) if found is None else found
        if found is False:
            self._refuted.add(asked)
        return found

    def _satisfies(self, placement: tuple[int, ...], part: Problem, supported: bool) -> bool:
        """Whether a known placement satisfies a problem; each rule is evaluated once a placement."""
        if not np.isfinite(part.time[np.arange(len(placement)), list(placement)]).all():
            return False
        verdicts = self._verdicts.setdefault(placement, {})
        new = tuple(r for r in part.constraints if _key(r, part, supported) not in verdicts)
        broken = {v.rule for v in evaluate(replace(part, constraints=new), placement).violations} if new else set()
        if not broken <= {r.name for r in new}:
            return False  # it does not run by itself, without the numbers of calls say; its rules were not evaluated
        verdicts |= {_key(r, part, supported): r.name not in broken for r in new}
        return all(verdicts[_key(r, part, supported)] for r in part.constraints)

    def accepts(self, part: Problem, placement: Integers, values: Values | None = None) -> bool:
        """Whether a placement satisfies a problem; it is remembered if it does (and is all that is decided)."""
        given = tuple(int(d) for d in placement)
        if evaluate(part, given, values).violations:
            return False
        if not part.variables:
            self.known.append(given)
        return True

    def _by_dynamic_programming(self, part: Problem) -> bool | None:
        if part.variables or reasons_against(part, _PIPELINES):
            return None
        seconds = 5.0 if self.left is None else min(5.0, self.left / 4)
        found = contiguous.solve(part, deadline=time.monotonic() + seconds, most=_MOST_IDEALS)
        if found.placement is not None:
            return True if self.accepts(part, found.placement) else None
        return False if found.complete else None

    def _by_solver(self, part: Problem) -> bool | None:
        grounded = build(part, self.formulation)
        if grounded.never:
            return False
        for name in solvers_for(part, self.request.solver):
            found = self._asked_of(name, part, grounded)
            if found is not None:
                return found
        return None

    def _asked_of(self, name: str, part: Problem, grounded: Grounded) -> bool | None:
        from placedsl.solvers.registry import get

        features = get(name).features
        try:
            program = lower(grounded.program, native=features.native, integral=features.integers_only).program
        except InputError:
            return None  # without a rule that is left out, times need not end
        if self.left == 0.0:
            return None
        accepted = False

        def heard(point: Floats | None, _value: float, _bound: float) -> bool:
            nonlocal accepted
            if point is not None and not accepted:
                accepted = self.accepts(part, grounded.placement(point), grounded.values(point))
            return accepted

        budget = Budget(self.left, workers=self.request.workers or 0, seed=self.request.seed or 0)
        outcome = (run_isolated if self.isolated else run_here)(name, program, budget, heard)
        if accepted:
            return True
        if outcome.termination == "interrupted":
            raise KeyboardInterrupt
        if outcome.incumbent is not None:
            point = outcome.incumbent
            return True if self.accepts(part, grounded.placement(point), grounded.values(point)) else None
        return False if outcome.termination == "infeasible" else None


def _colocations(rules: Sequence[Constraint]) -> set[str]:
    return {rule.by for rule in rules if rule.built_in == "colocated"}


def _key(rule: Constraint, part: Problem, supported: bool) -> str:
    """What a rule means is told by its name, and by what else of a problem it may look at."""
    return f"{rule.name} {part.orientation} {supported}"


def restricted(problem: Problem, rules: Sequence[Constraint], *, fixed_order: bool = False) -> Problem:
    """The problem with these rules only and nothing to minimise, as if the spec had no others.

    How the backward part runs through a pipeline depends on the colocations that the spec asks for, unless it is
    of ``fixed_order``.
    """
    nothing = core.Constant(0.0, problem.objectives[0].span)
    goal = Objective("nothing", nothing, NUMBER, problem.objectives[0].span)
    part = replace(problem, constraints=tuple(rules), objectives=(goal,))
    if fixed_order or _colocations(rules) == _colocations(problem.constraints):
        return part
    before, after, orientation = precedence(problem.graph, part.colocation_groups())
    return replace(part, precedence_source=before, precedence_target=after, orientation=orientation)
