"""Local search for throughput without contiguity: a few short annealing runs from a given placement.

A heuristic without bounds.  It supports memory limits and colocation, and no other constraint.  The long search, which
the portfolio runs in processes of its own, is :mod:`placedsl.algorithms.partitions.search`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.compilation import kernels_run_compiled
from placedsl.algorithms.partitions.instance import partition_units, state_of
from placedsl.algorithms.partitions.search import anneal_from, search_from
from placedsl.algorithms.supports import PLACING, Supports
from placedsl.arrays import Integers
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem

#: Runs, each from the best placement so far: the first temperature, and how far below the best value the target is.
RUNS = ((0.03, 0.01), (0.1, 0.01), (0.01, 0.02), (0.03, 0.02))
_COLD = 0.0002
#: Steps of a run: per unit, and at most.
STEPS_PER_UNIT, MOST_STEPS = 10_000, 1_000_000
#: So many times fewer where kernels run as plain Python.
SLOWER = 100


SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=(Execution(),), constraints=PLACING, clusters=False, peaks=True
)  # fmt: skip


def improve(
    problem: Problem,
    start: Integers,
    *,
    seed: int = 0,
    deadline: float | None = None,
    found: Callable[[Integers], None] | None = None,
) -> Integers:
    """A placement (n devices) at least as good as ``start``; ``found`` is called with each improvement.

    The same seed gives the same placement unless the ``deadline`` (``time.monotonic()``) comes first.
    """
    units = partition_units(problem)
    search = search_from(units.instance, units.device_of(start), seed)
    if not np.isfinite(search.value) or search.value <= 0.0 or len(problem.machine.devices) < 2:
        return start
    steps = min(MOST_STEPS, STEPS_PER_UNIT * len(units.instance.memory)) // (1 if kernels_run_compiled() else SLOWER)
    for turn, (hot, margin) in enumerate(RUNS):
        schedule = CoolingSchedule(steps, hot, _COLD, (seed * len(RUNS) + turn) % 2**31)
        candidate = anneal_from(search, state_of(units.instance, search.best), margin, schedule)
        if candidate is not None and search.take(candidate) and found is not None:
            found(units.placement(search.best))
        if deadline is not None and time.monotonic() > deadline:
            break
    return units.placement(search.best)
