"""The planner of PipeDream-2BW (Narayanan et al. 2021, "Memory-efficient pipeline-parallel DNN training", section 4).

It tries each number of stages of equally many layers, each number of copies of them, and activations computed anew in
all layers or in none; the largest load counts, of computation and transfers or of the exchange of weights, which 2BW
hides behind the computation of later samples.  It knows no tensor parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.even_splits import EvenPlan, EvenPlans, fits, splits
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

__all__ = ["fits", "solve"]


def solve(
    problem: Problem,
    budget: Budget,  # noqa: ARG001 - a few seconds at most, and between splits it is asked whether to stop
    progress: Progress,
) -> tuple[Sequence[int] | None, float] | tuple[Sequence[int] | None, float, Values]:
    """Its choice; without a bound."""
    plans, best = EvenPlans(problem), None
    for groups in splits(problem.graph, len(problem.machine.devices)):
        if progress(None, -np.inf):
            break
        found: list[EvenPlan] = [plan for key in plans.option if key[0] == 1 for plan in plans.of(groups, *key)]
        for plan in found:
            best = plan if best is None or plan.overlapped < best.overlapped else best
    if best is None:
        raise NothingFoundError("no even split fits with one option everywhere and without tensor parallelism")
    return plans.placed(best)
