"""The method "mla-weighted": as "mla", with edges that count by the size of their tensors (MTPP, Xie et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.baselines.orders.mla import arranged
from placedsl.algorithms.baselines.orders.sliced_orders import fits
from placedsl.algorithms.interface import Progress
from placedsl.budget import Budget
from placedsl.problem.problem import Problem


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """A weighted minimum linear arrangement, divided."""
    return arranged(problem, budget, progress, weighted=True)


__all__ = ["fits", "solve"]
