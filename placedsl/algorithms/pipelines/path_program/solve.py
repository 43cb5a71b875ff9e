"""The program over paths, run on a problem."""

from __future__ import annotations

import time
from collections.abc import Callable

from placedsl.algorithms.pipelines.path_program.instance import instance
from placedsl.algorithms.pipelines.path_program.search import PathSearch
from placedsl.arrays import Integers
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem


def solve(
    problem: Problem, found: Callable[[Integers], None], prove: Callable[[float], None], *,
    deadline: float | None = None, seed: int = 0,
) -> bool:  # fmt: skip
    """Search, telling placements that the evaluator accepts and bounds (infinity: there is no placement).

    ``deadline``: a ``time.monotonic()`` value.  Whether all is settled.
    """
    known = instance(problem)
    if known is None:
        return False

    def accept(placement: Integers) -> bool:
        if evaluate(problem, [int(d) for d in placement]).violations:
            return False
        found(placement)
        return True

    def left() -> float | None:
        return None if deadline is None else deadline - time.monotonic()

    return PathSearch(known, accept, prove, left, seed).run()
