"""The kernel of the dynamic program over ideals, compiled once and cached."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def extend(  # type: ignore[no-untyped-def]
    first, last, cover_start, cover_rank, cover_ideal, units, work, possible, rest, memory, capacity,
    touch_start, touched, pins, transfer, free, stride, spare, value, came_from, came_by, limit,
):  # fmt: skip
    """Extend ideals ``first`` to ``last - 1`` by every set that one device can take; returns the pairs met.

    ``limit[0]`` is the largest load that is still of interest; it falls as complete chains are found.
    """
    kinds = work.shape[0]
    states = value.shape[1]
    everything = value.shape[0] - 1
    inside = np.zeros(len(pins), dtype=np.int64)
    at = np.zeros(units + 1, dtype=np.int64)
    edge = np.zeros(units + 1, dtype=np.int64)
    rank = np.zeros(units + 1, dtype=np.int64)
    load = np.zeros((units + 1, kinds))
    moved = np.zeros((units + 1, kinds))
    held = np.zeros(units + 1)
    barred = np.zeros((units + 1, kinds), dtype=np.int64)
    pairs = 0
    live = np.zeros(states, dtype=np.int64)
    for base in range(first, last):
        if base == everything:
            continue
        alive = 0
        for s in range(states):
            # What is left must fit into the devices that are left, on the fastest device each.
            if value[base, s] <= limit[0] and rest[base] <= spare[s] * limit[0] * (1.0 + 1e-9):
                live[alive] = s
                alive += 1
        if alive == 0:
            continue
        depth = 0
        at[0] = base
        edge[0] = cover_start[base]
        rank[0] = -1
        held[0] = 0.0
        for c in range(kinds):
            load[0, c] = 0.0
            moved[0, c] = 0.0
            barred[0, c] = 0
        while depth >= 0:
            ideal = at[depth]
            if edge[depth] == cover_start[ideal + 1]:
                if depth > 0:
                    v = rank[depth]
                    for j in range(touch_start[v], touch_start[v + 1]):
                        inside[touched[j]] -= 1
                depth -= 1
                continue
            e = edge[depth]
            edge[depth] += 1
            v = cover_rank[e]
            if v < rank[depth]:
                continue
            deeper = depth + 1
            held[deeper] = held[depth] + memory[v]
            open_kind = False
            for c in range(kinds):
                load[deeper, c] = load[depth, c] + work[c, v]
                barred[deeper, c] = barred[depth, c] + (0 if possible[c, v] else 1)
                if barred[deeper, c] == 0 and load[deeper, c] <= limit[0] and held[deeper] <= capacity[c]:
                    open_kind = True
            if not open_kind:
                continue
            for c in range(kinds):
                moved[deeper, c] = moved[depth, c]
            for j in range(touch_start[v], touch_start[v + 1]):
                t = touched[j]
                inside[t] += 1
                if inside[t] == 1:
                    for c in range(kinds):
                        moved[deeper, c] += transfer[c, t]
                elif inside[t] == pins[t]:
                    for c in range(kinds):
                        moved[deeper, c] -= transfer[c, t]
            depth = deeper
            pairs += 1
            goal = cover_ideal[e]
            at[depth] = goal
            edge[depth] = cover_start[goal]
            rank[depth] = v
            for c in range(kinds):
                if barred[depth, c] or held[depth] > capacity[c]:
                    continue
                cost = load[depth, c] + moved[depth, c]
                if cost > limit[0]:
                    continue
                for i in range(alive):
                    s = live[i]
                    if not free[s, c]:
                        continue
                    reached = value[base, s]
                    reached = max(reached, cost)
                    into = s + stride[c]
                    if reached < value[goal, into]:
                        value[goal, into] = reached
                        came_from[goal, into] = base
                        came_by[goal, into] = c
                        if goal == everything and reached < limit[0]:
                            limit[0] = reached
    return pairs


@njit(cache=True)
def remaining(cover_start, cover_rank, cover_ideal, least):  # type: ignore[no-untyped-def]
    """For each ideal, the sum of ``least`` over what is not in it."""
    rest = np.zeros(len(cover_start) - 1)
    rest[0] = least.sum()
    for ideal in range(len(rest)):
        for e in range(cover_start[ideal], cover_start[ideal + 1]):
            rest[cover_ideal[e]] = rest[ideal] - least[cover_rank[e]]
    return rest
