"""Proven lower bounds on the largest load of any placement: ``docs/bounds.md``.

Each bound is a function that gives an increasing stream; all may run beside a search, which they are told the best
value of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from placedsl.algorithms.bounds.partition import SAME, partition_bounds
from placedsl.algorithms.bounds.relaxation import fits
from placedsl.algorithms.bounds.work import work_bounds
from placedsl.algorithms.simple_bound import simple_bound
from placedsl.problem import Problem


class Bound(Protocol):
    """A stream of increasing proven lower bounds on the first objective, in its unit."""

    def __call__(
        self, problem: Problem, *, upper: Callable[[], float], deadline: float | None, stop: Callable[[], bool]
    ) -> Iterator[float]:
        """``upper``: the best known value (inf: none); ``deadline``: ``time.monotonic()``, None for none."""


def _simple(
    problem: Problem, *, upper: Callable[[], float], deadline: float | None, stop: Callable[[], bool]
) -> Iterator[float]:
    del upper, deadline, stop
    yield simple_bound(problem)


#: By name, from quick to strong.
BOUNDS: dict[str, Bound] = {"simple": _simple, "work": work_bounds, "partition": partition_bounds}


def proven_bounds(
    problem: Problem,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[float]:
    """Ever better bounds by all methods; nothing where the objective is not the largest load.

    Ends when a bound is within rounding of ``upper()``: then the best known value is optimal.
    """
    if not fits(problem):
        return
    best = -np.inf
    for bound in BOUNDS.values():
        for value in bound(problem, upper=upper, deadline=deadline, stop=stop):
            if value > best:
                best = value
                yield value
            if best >= upper() * (1 - 2 * SAME) or stop():
                return


__all__ = ["BOUNDS", "Bound", "fits", "proven_bounds"]
