"""The method "random": the best division of ten thousand random orders (MTPP, Xie et al. 2023, random-10000)."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.baselines.orders.sliced_orders import AT_ONCE, Orders, fits
from placedsl.algorithms.interface import Progress
from placedsl.budget import Budget
from placedsl.problem.problem import Problem

#: How many orders.
ORDERS = 10_000


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """Orders by random priorities, the best of which counts."""
    orders = Orders(problem, budget, progress)
    for _ in range(ORDERS // AT_ONCE):
        orders.values(orders.rng.random((AT_ONCE, orders.count)))
        if orders.over:
            break
    return orders.found()


__all__ = ["fits", "solve"]
