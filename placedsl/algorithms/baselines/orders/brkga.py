"""The method "brkga": orders by priorities that a genetic algorithm improves (MTPP, Xie et al. 2023, brkga-10000)."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.baselines.orders.genetic import evolve
from placedsl.algorithms.baselines.orders.sliced_orders import Orders, fits
from placedsl.algorithms.interface import Progress
from placedsl.budget import Budget
from placedsl.problem.problem import Problem

POPULATION, GENERATIONS = 100, 100


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """A hundred generations of a hundred orders; what counts is the largest load of the best division of each."""
    orders = Orders(problem, budget, progress)
    evolve(orders.values, orders.count, POPULATION, GENERATIONS, orders.rng, lambda: orders.over)
    return orders.found()


__all__ = ["fits", "solve"]
