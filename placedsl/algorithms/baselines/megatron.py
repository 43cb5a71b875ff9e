"""The baseline "megatron": what people who launch by hand take (Narayanan et al. 2021, "Efficient large-scale language
model training on GPU clusters", takeaways 1 to 3).

Operators are split over as many devices as there are options for; then there are as few stages as fit, of equally many
layers; and as many copies as devices are left.  Activations are computed anew where nothing else fits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.even_splits import EvenPlans, fits, splits
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
    """The first that fits; without a bound."""
    plans = EvenPlans(problem)
    for degree in sorted({degree for degree, _ in plans.option}, reverse=True):
        # Options that keep less take longer: of each number of stages the quickest that fits.
        for groups in splits(problem.graph, len(problem.machine.devices)):
            if progress(None, -np.inf):
                raise NothingFoundError("it was stopped before a split fitted")
            found = [plan for at, name in plans.option if at == degree for plan in plans.of(groups, at, name)]
            if found:
                most = max(plan.copies for plan in found)
                return plans.placed(min((p for p in found if p.copies == most), key=lambda p: p.value))
    raise NothingFoundError("no even split fits with one option and one degree everywhere")
