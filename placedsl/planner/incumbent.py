"""The incumbent of a search: the best placement that the evaluator accepts, and the bounds that are proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from placedsl.arrays import Integers
from placedsl.evaluation.evaluate import Evaluation, evaluate
from placedsl.evaluation.tolerance import same
from placedsl.planner.answer import gap
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.records import dataclass
from placedsl.tolerances import CANCELLED, SAME_VALUE

#: Told of (value of the best placement or inf, bound, seconds since the start).
Progress = Callable[[float, float, float], None]


#: So many moments of a search are kept; beyond them every second one.
_MOST_MOMENTS = 400


@dataclass(frozen=True, eq=False)
class _Proof:
    """What proves a bound: in words (empty: there is none), and as a certificate (None: it has none)."""

    by: str = ""
    certificate: Mapping[str, Any] | None = None


class Incumbent:
    """The best placement that the evaluator accepts, the best bound, and the clock."""

    def __init__(self, problem: Problem, progress: Progress | None, began: float) -> None:
        self.problem, self.progress, self.began = problem, progress, began
        self.placement: Integers | None = None
        self.evaluation: Evaluation | None = None
        #: Seconds since the start, value and bound of the first objective, whenever one of them got better.
        self.history: list[tuple[float, float, float]] = []
        self.proven = [-np.inf] * len(problem.objectives)
        self.claimed = [-np.inf] * len(problem.objectives)
        #: What proves each of these, in words, and as a certificate.
        self.proofs = [_Proof()] * len(problem.objectives)
        self.claims = [_Proof()] * len(problem.objectives)
        self.verifying = 0.0
        self.last_rejected: Evaluation | None = None
        #: The range of values of each finished objective, from the most important on, which count as equal.
        self.finished: list[tuple[float, float]] = []

    @property
    def value(self) -> float:
        """The first objective's value; inf without a placement."""
        return self.evaluation.objectives[0] if self.evaluation else np.inf

    def offer(self, placement: Integers, values: Values | None = None) -> bool:
        """Take a placement if it is feasible and better; whether it is feasible."""
        start = time.monotonic()
        evaluation = evaluate(self.problem, [int(d) for d in placement], values)
        self.verifying += time.monotonic() - start
        if evaluation.violations:
            self.last_rejected = evaluation
            return False
        if self.evaluation is None or _better(evaluation.objectives, self.evaluation.objectives, self.finished):
            self.placement, self.evaluation = np.asarray(placement), evaluation
            self.tell()
        return True

    def rearrange(self, rearranged: Callable[[Problem, Integers], Integers]) -> None:
        """Exchange the placement for another one that the evaluator finds equal in all objectives."""
        if self.placement is None or self.evaluation is None:
            return
        placement, start = rearranged(self.problem, self.placement), time.monotonic()
        if (placement == self.placement).all():
            return
        evaluation = evaluate(self.problem, placement.tolist(), self.evaluation.values)
        self.verifying += time.monotonic() - start
        pairs = zip(evaluation.objectives, self.evaluation.objectives, strict=True)
        if not evaluation.violations and all(same(new, known) for new, known in pairs):
            self.placement, self.evaluation = placement, evaluation

    def finish(self, slack: float) -> float:
        """Regard the next objective as finished, and return the limit on it while later ones are minimised.

        The limit exceeds the value reached by the share ``slack``.  Solvers reach a value only to within their
        tolerances, so a placement that a later objective prefers may be worse by as much: from here on, values that
        differ from the one reached by at most this share count as equal.
        """
        assert self.evaluation is not None
        reached = self.evaluation.objectives[len(self.finished)]
        margin = slack * abs(reached)
        self.finished.append((reached - margin, reached + margin))
        return reached + margin

    @property
    def bounds(self) -> list[float]:
        """The best bound of each objective."""
        return [max(pair) for pair in zip(self.proven, self.claimed, strict=True)]

    def proof(self, objective: int = 0) -> _Proof:
        """What proves the best bound of an objective."""
        claimed = self.claimed[objective] > self.proven[objective]
        return (self.claims if claimed else self.proofs)[objective]

    def bound(
        self, value: float, objective: int = 0, *, by: str, claimed: bool = False,
        certificate: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Take a proven bound, and what proves it, in words; ``claimed`` by a solver, or proven here."""
        better = value > self.bounds[objective]
        known, proofs = (self.claimed, self.claims) if claimed else (self.proven, self.proofs)
        if value > known[objective]:
            known[objective], proofs[objective] = value, _Proof(by, certificate)
        if better:
            self.tell()

    def gap(self, objective: int = 0) -> float:
        """The relative distance of an objective from its best bound; inf without a placement."""
        if self.evaluation is None:
            return np.inf
        return gap(self.evaluation.objectives[objective], self.bounds[objective], self.evaluation.sizes[objective])

    def open(self, objective: int = 0) -> float:
        """How far from the value of an objective what counts as the same may lie; 0 without a placement."""
        known = self.evaluation
        if known is None:
            return 0.0
        return SAME_VALUE * max(abs(known.objectives[objective]), CANCELLED * known.sizes[objective])

    def refuted(self, objective: int = 0) -> bool:
        """Whether a solver's bound exceeds the value of a verified placement; if so its bounds are dropped."""
        known = self.evaluation
        if known is None or self.claimed[objective] <= known.objectives[objective] + self.open(objective):
            return False
        self.disclaim()
        return True

    def disclaim(self) -> None:
        """Drop the bounds that solvers claim."""
        self.claimed = [-np.inf] * len(self.claimed)

    def tell(self) -> None:
        """Keep the moment, and report to whoever listens."""
        moment = (time.monotonic() - self.began, self.value, self.bounds[0])
        if not self.history or self.history[-1][1:] != moment[1:]:
            self.history.append(moment)
        if len(self.history) > _MOST_MOMENTS:
            self.history = thinned(self.history)
        if self.progress is not None:
            self.progress(moment[1], moment[2], moment[0])


def thinned(moments: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Every second moment, with the last: what was reached later than said is never said to be reached sooner."""
    return [*moments[:-1][1::2], moments[-1]]


def _better(a: tuple[float, ...], b: tuple[float, ...], finished: Sequence[tuple[float, float]]) -> bool:
    """Lexicographically; what the evaluator calls the same, or is in the range of a finished objective, is equal."""
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if k < len(finished) and all(finished[k][0] <= value <= finished[k][1] for value in (x, y)):
            continue
        if x != y and not same(x, y):
            return x < y
    return False
