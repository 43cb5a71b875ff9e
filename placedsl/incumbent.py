"""The incumbent of a search: the best placement that the evaluator accepts, and the bounds that are proven."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placedsl.cost.evaluate import Evaluation, evaluate
from placedsl.cost.expressions import OwnValues
from placedsl.graph.graph import Integers
from placedsl.problem import Problem

#: Two values closer than this, relatively, are the same: what solvers' tolerances leave open.
SAME = 1e-6

#: Told of (value of the best placement or inf, bound, seconds since the start).
Progress = Callable[[float, float, float], None]


class Incumbent:
    """The best placement that the evaluator accepts, the best bound, and the clock."""

    def __init__(self, problem: Problem, progress: Progress | None, began: float) -> None:
        self.problem, self.progress, self.began = problem, progress, began
        self.placement: Integers | None = None
        self.evaluation: Evaluation | None = None
        self.own = [-np.inf] * len(problem.objectives)
        self.claimed = [-np.inf] * len(problem.objectives)
        self.verifying = 0.0
        self.refused: Evaluation | None = None

    @property
    def value(self) -> float:
        """The first objective's value; inf without a placement."""
        return self.evaluation.objectives[0] if self.evaluation else np.inf

    def offer(self, placement: Integers, values: OwnValues | None = None) -> bool:
        """Take a placement if it is feasible and better; whether it is feasible."""
        start = time.monotonic()
        evaluation = evaluate(self.problem, [int(d) for d in placement], values)
        self.verifying += time.monotonic() - start
        if evaluation.violations:
            self.refused = evaluation
            return False
        if self.evaluation is None or _better(evaluation.objectives, self.evaluation.objectives):
            self.placement, self.evaluation = np.asarray(placement), evaluation
            self.tell()
        return True

    @property
    def bounds(self) -> list[float]:
        """The best bound of each objective."""
        return [max(pair) for pair in zip(self.own, self.claimed, strict=True)]

    def bound(self, value: float, objective: int = 0, *, claimed: bool = False) -> None:
        """Take a proven bound; ``claimed`` by a solver, or proven here."""
        better = value > self.bounds[objective]
        known = self.claimed if claimed else self.own
        known[objective] = max(known[objective], value)
        if better:
            self.tell()

    def refuted(self) -> bool:
        """Whether a solver's bound exceeds the value of a verified placement; if so its bounds are dropped."""
        if self.evaluation is None or self.claimed[0] <= self.value + SAME * abs(self.value):
            return False
        self.claimed = [-np.inf] * len(self.claimed)
        return True

    def tell(self) -> None:
        """Report to whoever listens."""
        if self.progress is not None:
            self.progress(self.value, self.bounds[0], time.monotonic() - self.began)


def _better(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Lexicographically, with values that are the same within rounding counted as equal."""
    for x, y in zip(a, b, strict=True):
        if abs(x - y) > 1e-9 * max(abs(x), abs(y)):
            return x < y
    return False
