"""Proven lower bounds on the largest load of any placement, from quick to strong: ``docs/bounds.md``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from placedsl.algorithms.exchange import ALONE, Exchange
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.flow import flow_bounds
from placedsl.algorithms.partitions.bounds.partition import partition_bounds
from placedsl.algorithms.partitions.bounds.relaxation import SUPPORTS, relaxation, unit_in_words
from placedsl.algorithms.partitions.bounds.work import work_bound
from placedsl.algorithms.simple_bounds import SIMPLE, STREAMED, simple_bound, streamed_bound
from placedsl.algorithms.supports import reasons_against
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF

#: Bounds that are computed at once, by name, from quick to strong; in seconds.
QUICK_BOUNDS: dict[str, Callable[[Problem], float]] = {
    "simple": simple_bound,
    "streamed": streamed_bound,
    "work": lambda problem: work_bound(relaxation(problem)).value,
}
#: Most seconds of looking for minimum cuts before other bounds begin.
_FLOW_SECONDS = 10.0


def proven_bounds(
    problem: Problem,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    exchange: Exchange = ALONE,
) -> Iterator[Bound]:
    """Increasing lower bounds by all methods but programs; none if the objective is not the largest load.

    ``upper()`` is the best known value (inf: none); ends when a bound is within rounding of it, which proves it
    optimal, at the ``deadline`` (``time.monotonic()``), or when ``stop()`` is true.  ``exchange``: the line to others.
    """
    if reasons_against(problem, SUPPORTS):
        return
    best = -np.inf

    def over() -> bool:
        return (deadline is not None and time.monotonic() > deadline) or stop()

    for bound in _bounds(problem, upper, over, exchange):
        if bound.value > best:
            best = bound.value
            yield bound
        if best >= upper() * (1 - 2 * PROOF) or stop():
            return


def _bounds(
    problem: Problem, upper: Callable[[], float], over: Callable[[], bool], exchange: Exchange
) -> Iterator[Bound]:
    """One method after the other."""
    relaxed = relaxation(problem)
    quick = (
        Bound(simple_bound(problem), SIMPLE, {"kind": "simple"}),
        Bound(streamed_bound(problem), STREAMED, {"kind": "streamed"}),
        work_bound(relaxed),
    )
    best = max(bound.value for bound in quick)
    yield from quick
    if relaxed.units and np.isfinite(best):
        for bound in flow_bounds(relaxed, unit_in_words(problem, relaxed), best, upper, over, _FLOW_SECONDS):
            best = bound.value
            yield bound
    yield from partition_bounds(problem, upper=upper, over=over, known=best, exchange=exchange)


__all__ = ["QUICK_BOUNDS", "proven_bounds"]
