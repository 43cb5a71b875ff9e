"""The baseline "equi": the best plan whose stages have equally many layers, and the same copies, devices and option.

Tarnawski et al. 2021 use it in place of the planner of PipeDream-2BW (Narayanan et al. 2021), which divides repeated
transformer layers evenly.
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
    """The best even split; without a bound, for uneven ones may be better."""
    plans, best = EvenPlans(problem), None
    for groups in splits(problem.graph, len(problem.machine.devices)):
        if progress(None, -np.inf):
            break
        found: list[EvenPlan] = [plan for key in plans.option for plan in plans.of(groups, *key)]
        for plan in found:
            best = plan if best is None or plan.value < best.value else best
    if best is None:
        raise NothingFoundError("no even split fits with one option and one degree everywhere")
    return plans.placed(best)
