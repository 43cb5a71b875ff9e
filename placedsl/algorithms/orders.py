"""Topological orders in which neighbours tend to share a stage: what slicing cuts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from placedsl.algorithms.chains import by_key
from placedsl.algorithms.stages import Stages
from placedsl.graph.graph import Integers

_LEAST_CUT, _LAST_READY, _FIRST_READY = range(3)


def orders(stages: Stages) -> Iterator[Integers]:
    """Six orders: forward and from the end, by least growth of the cut, depth first, and breadth first."""
    cost = stages.read_meter.max(axis=(0, 1), initial=0.0)
    touching = stages.touch_start, stages.touched, stages.role
    for ahead in (True, False):
        first, second = (stages.before, stages.after) if ahead else (stages.after, stages.before)
        start, later = by_key(stages.units, first, second)
        waiting = np.bincount(second, minlength=stages.units)
        for rule in (_LEAST_CUT, _LAST_READY, _FIRST_READY):
            order = _order(start, later, waiting.copy(), rule, *touching, stages.readers, cost)
            yield order if ahead else order[::-1].copy()


@njit(cache=True)
def _order(start, later, waiting, rule, touch_start, touched, role, readers, cost):  # type: ignore[no-untyped-def]
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
