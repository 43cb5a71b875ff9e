"""Local search for throughput without contiguity: a few short runs of annealing from a given placement.

A heuristic: it gives placements and no bound.  It knows memory, support and colocation, and no other rule.  The long
search, in processes of its own, is :mod:`placedsl.algorithms.split_search`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placedsl.algorithms.split import state_of, units_of
from placedsl.algorithms.split_kernel import Schedule
from placedsl.algorithms.split_search import anneal_once, begin
from placedsl.expressions import Provided
from placedsl.graph.graph import Integers
from placedsl.problem import Problem

#: Runs, each from the best placement so far: where the temperature starts, and how far below the best the target is.
RUNS = ((0.03, 0.01), (0.1, 0.01), (0.01, 0.02), (0.03, 0.02))
_COLD = 0.0002
#: Steps of one run: so many a unit, up to a most.
STEPS_A_UNIT, MOST_STEPS = 10_000, 1_000_000


def fits(problem: Problem) -> bool:
    """Whether the search knows all that the problem asks for."""
    goal = problem.objectives[0].body
    timed = isinstance(goal, Provided) and goal.name == "time_per_sample" and problem.schedule == "pipedream"
    known = all(r.built_in in ("memory", "colocated") for r in problem.rules)
    plain = not problem.machine.clusters
    return timed and known and plain and not (problem.soft or problem.variables or problem.own_formulations)


def improve(
    problem: Problem,
    start: Integers,
    *,
    seed: int = 0,
    deadline: float | None = None,
    found: Callable[[Integers], None] | None = None,
) -> Integers:
    """A placement at least as good as ``start``; ``found`` hears of each better one.

    The same seed gives the same placement unless the ``deadline`` (``time.monotonic()``) comes first.
    """
    units = units_of(problem)
    search = begin(units.split, units.device_of(start), seed)
    if not np.isfinite(search.value) or search.value <= 0.0 or len(problem.machine.devices) < 2:
        return start
    steps = min(MOST_STEPS, STEPS_A_UNIT * len(units.split.memory))
    for turn, (hot, below) in enumerate(RUNS):
        schedule = Schedule(steps, hot, _COLD, below, (seed * len(RUNS) + turn) % 2**31)
        if anneal_once(search, state_of(units.split, search.best), schedule) and found is not None:
            found(units.placement(search.best))
        if deadline is not None and time.monotonic() > deadline:
            break
    return units.placement(search.best)
