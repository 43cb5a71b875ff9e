"""The method "slicegraph": the best division of a few orders (MTPP, Xie et al. 2023, Algorithm 1), for large graphs.

Orders are breadth first and depth first from either end, and a few random ones; 100,000 operators take seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.baselines.orders.sliced_orders import Orders, fits
from placedsl.algorithms.interface import Progress
from placedsl.algorithms.partitions.slicing_kernel import order_by_priority
from placedsl.budget import Budget
from placedsl.problem.problem import Problem

#: Random orders beside the others.
_RANDOM = 2


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """Each order divided as well as it can be; the best counts."""
    orders = Orders(problem, budget, progress)
    place = np.empty(orders.count)
    place[orders.units.instance.order] = np.arange(orders.count)
    for turn in range(4 + _RANDOM):
        if orders.over and orders.stage is not None:
            break
        first, then = (orders.later, orders.earlier) if turn % 2 == 0 else (orders.earlier, orders.later)
        keys = orders.rng.random(orders.count) if turn >= 4 else place if turn % 2 == 0 else -place
        order = order_by_priority(*first, then[0], keys, turn in (2, 3))
        orders.divide(order if turn % 2 == 0 else order[::-1].copy())
    return orders.found()


__all__ = ["fits", "solve"]
