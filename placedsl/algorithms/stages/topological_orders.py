"""Topological orders in which neighbours tend to share a stage: what slicing cuts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.arrays import Floats, Integers, Integers32
from placedsl.graph.order import csr

_LEAST_CUT, _LAST_READY, _FIRST_READY = range(3)


def orders(costs: StageCostModel) -> Iterator[Integers]:
    """Six orders: forward and from the end, by least growth of the cut, depth first, and breadth first."""
    cost = costs.input_cost.max(axis=(0, 1), initial=0.0)
    touching = costs.touch_start, costs.touched, costs.role
    for ahead in (True, False):
        first, second = (costs.before, costs.after) if ahead else (costs.after, costs.before)
        start, later = csr(first, second, costs.units)
        waiting = np.bincount(second, minlength=costs.units)
        for rule in (_LEAST_CUT, _LAST_READY, _FIRST_READY):
            order = _order(start, later, waiting.copy(), rule, *touching, costs.readers, cost)
            yield order if ahead else order[::-1].copy()


@kernel(allocates=True)
def _order(
    start: Integers, later: Integers, waiting: Integers, rule: int, touch_start: Integers, touched: Integers32,
    role: Integers32, readers: Integers32, cost: Floats,
) -> Integers:  # fmt: skip
    """Kahn's algorithm; which of the ready units comes next is what ``rule`` says."""
    units = len(waiting)
    ready = np.empty(units, dtype=np.int64)
    inside = np.zeros(len(readers), dtype=np.int64)
    order = np.empty(units, dtype=np.int64)
    head, tail, done = 0, 0, 0
    for u in range(units):
        if waiting[u] == 0:
            ready[tail] = u
            tail += 1
    while head < tail:
        best = head
        if rule == 1:
            best = tail - 1
        elif rule == 0:
            least = np.inf
            for i in range(tail - 1, head - 1, -1):
                growth = 0.0
                for j in range(touch_start[ready[i]], touch_start[ready[i] + 1]):
                    e = touched[j]
                    if inside[e] == 0:
                        growth += cost[e]
                    elif inside[e] + role[j] == 2 * readers[e] + 1:
                        growth -= cost[e]
                if growth < least:
                    least = growth
                    best = i
        u = ready[best]
        if rule == 2:
            head += 1
        else:
            tail -= 1
            for i in range(best, tail):
                ready[i] = ready[i + 1]
        order[done] = u
        done += 1
        for j in range(touch_start[u], touch_start[u + 1]):
            inside[touched[j]] += role[j]
        for j in range(start[u], start[u + 1]):
            waiting[later[j]] -= 1
            if waiting[later[j]] == 0:
                ready[tail] = later[j]
                tail += 1
    return order[:done]
