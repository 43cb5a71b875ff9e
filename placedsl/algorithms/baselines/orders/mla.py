"""The method "mla": the order in which edges are shortest, divided once (MTPP, Xie et al. 2023, "zero-shot")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.orders.genetic import evolve
from placedsl.algorithms.baselines.orders.sliced_orders import Orders, fits, pairs_with_weights
from placedsl.algorithms.interface import Progress
from placedsl.algorithms.partitions.slicing_kernel import lengths_of_orders
from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.problem.problem import Problem

#: The number of evaluations is not in the paper.
POPULATION, GENERATIONS = 100, 100


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """A minimum linear arrangement by a genetic algorithm: every edge counts as long as it is."""
    return arranged(problem, budget, progress, weighted=False)


def arranged(
    problem: Problem, budget: Budget, progress: Progress, *, weighted: bool
) -> tuple[Sequence[int] | None, float]:
    """The best arrangement, divided; ``weighted``: edges count by their tensors."""
    orders = Orders(problem, budget, progress)
    maker, reader, weight = pairs_with_weights(problem, int(orders.devices[0]))
    weight = weight if weighted else np.ones(len(weight))

    def lengths(priorities: Floats) -> Floats:
        out = np.empty(len(priorities))
        lengths_of_orders(*orders.later, orders.earlier[0], maker, reader, weight, priorities, out)
        return out

    best = evolve(lengths, orders.count, POPULATION, GENERATIONS, orders.rng, lambda: orders.over)
    orders.divide(orders.order(best))
    return orders.found()


__all__ = ["arranged", "fits", "solve"]
