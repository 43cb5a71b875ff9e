"""Proven lower bounds on the largest load of any placement, from quick to strong: ``docs/bounds.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placedsl.algorithms.partitions.bounds.partition import partition_bounds
from placedsl.algorithms.partitions.bounds.relaxation import SUPPORTS, relaxation
from placedsl.algorithms.partitions.bounds.work import work_bound
from placedsl.algorithms.simple_bounds import simple_bound
from placedsl.algorithms.supports import reasons_against
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF

#: Bounds that are computed at once, by name, from quick to strong; in seconds.
QUICK_BOUNDS: dict[str, Callable[[Problem], float]] = {
    "simple": simple_bound,
    "work": lambda problem: work_bound(relaxation(problem)),
}


def proven_bounds(
    problem: Problem,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[float]:
    """Increasing lower bounds in seconds by all methods; none if the objective is not the largest load.

    ``upper()`` is the best known value (inf: none); ends when a bound is within rounding of it, which proves it
    optimal, at the ``deadline`` (``time.monotonic()``), or when ``stop()`` is true.
    """
    if reasons_against(problem, SUPPORTS):
        return
    best = -np.inf

    def done() -> bool:
        return best >= upper() * (1 - 2 * PROOF) or stop()

    for quick in QUICK_BOUNDS.values():
        bound = quick(problem)
        if bound > best:
            best = bound
            yield bound
        if done():
            return
    for bound in partition_bounds(problem, upper=upper, deadline=deadline, stop=stop):
        if bound > best:
            best = bound
            yield bound
        if done():
            return


__all__ = ["QUICK_BOUNDS", "proven_bounds"]
