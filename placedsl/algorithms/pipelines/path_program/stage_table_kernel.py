"""Compiled: all stages between ideals within a load, and the cheapest path over them."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.stages.cut_edges_kernel import (
    StagePairs,
    contained,
    edge_costs,
    largest_load,
    least_load,
    mark_cuts,
)
from placedsl.arrays import Booleans, Floats, Integers, Integers32


@kernel(allocates=True)
def stages_within(
    pairs: StagePairs, classes: int, bound: float, most: int
) -> tuple[int, Integers32, Integers32, Integers32, Floats, Floats]:
    """The stages J \\ I on one device of class c that are allowed and load it no more than ``bound``.

    Their number (more than ``most``: given up), I, J, c, the load, and what the stage pays for edges in all components.
    """
    room = 1 << 12
    base, goal, kind = (np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32))
    load, moved = np.empty(room), np.empty(room)
    ideals, count = len(pairs.weight), 0
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    paid = np.zeros((pairs.limit.shape[0], classes))
    for j in range(1, ideals):
        mark_cuts(pairs, j, mark, True)
        for i in range(j):
            if not contained(pairs, i, j):
                continue
            ready = False
            for c in range(classes):
                if pairs.unsupported[c, j] != pairs.unsupported[c, i] or not least_load(pairs, i, j, c, bound) < np.inf:
                    continue
                if not ready:
                    edge_costs(pairs, i, j, mark, True, paid)
                    ready = True
                own = largest_load(pairs, i, j, c, paid, bound)
                if own == np.inf:
                    continue
                if count == most:
                    return most + 1, base, goal, kind, load, moved
                if count == room:
                    room *= 2
                    base, goal, kind = _longer(base, room), _longer(goal, room), _longer(kind, room)
                    load, moved = _longer(load, room), _longer(moved, room)
                base[count], goal[count], kind[count], load[count] = i, j, c, own
                moved[count] = paid[:, c].sum()
                count += 1
        mark_cuts(pairs, j, mark, False)
    return count, base[:count], goal[:count], kind[:count], load[:count], moved[:count]


@kernel(no_cpython_wrapper=True, allocates=True)
def _longer(values, room):  # type: ignore[no-untyped-def]
    out = np.empty(room, values.dtype)
    out[: len(values)] = values
    return out


@kernel(allocates=True)
def useful_stages(base: Integers32, goal: Integers32, open_: Booleans, nodes: int) -> Booleans:
    """Which of the stages that are open lie on a path from nothing to everything; they come by rising ``goal``."""
    stages = len(base)
    reached = np.zeros(nodes, dtype=np.bool_)
    reached[0] = True
    for s in range(stages):
        if open_[s] and reached[base[s]]:
            reached[goal[s]] = True
    ends = np.zeros(nodes, dtype=np.bool_)
    ends[nodes - 1] = True
    useful = np.zeros(stages, dtype=np.bool_)
    for s in range(stages - 1, -1, -1):
        if open_[s] and reached[base[s]] and ends[goal[s]]:
            ends[base[s]] = True
            useful[s] = True
    return useful


@kernel(allocates=True)
def cheapest_path(base: Integers32, goal: Integers32, cost: Floats, nodes: int) -> tuple[float, Integers]:
    """The least sum of costs of a path from nothing to everything, and its stages (none where there is no path).

    The stages come by rising ``goal``.
    """
    least = np.full(nodes, np.inf)
    least[0] = 0.0
    by = np.full(nodes, -1, dtype=np.int64)
    for s in range(len(base)):
        total = least[base[s]] + cost[s]
        if total < least[goal[s]]:
            least[goal[s]] = total
            by[goal[s]] = s
    if least[nodes - 1] == np.inf:
        return np.inf, np.empty(0, dtype=np.int64)
    path = np.empty(nodes, dtype=np.int64)
    length, at = 0, nodes - 1
    while at > 0:
        path[length] = by[at]
        at = base[by[at]]
        length += 1
    return least[nodes - 1], path[:length][::-1].copy()
