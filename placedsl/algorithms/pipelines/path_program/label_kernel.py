"""Compiled: paths with the sums of their rows, ideal by ideal.

A label is a path from nothing to an ideal.  It is left out where it can be completed within no limit, by the least that
each sum still grows and by prices of all rows together, and where another label of the ideal is at most as large in
every sum.  Without a label left out for want of room, no path means that there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats, Integers, Integers32

#: A sum that is larger by this counts as no larger; limits are wider by as much for each stage of a path.
_ROUNDING = 1e-12


@kernel(allocates=True)
def completions(base: Integers32, goal: Integers32, cost: Floats, nodes: int) -> Floats:
    """The least cost from each ideal to everything; stages come by rising goal."""
    least = np.full(nodes, np.inf)
    least[nodes - 1] = 0.0
    for s in range(len(base) - 1, -1, -1):
        total = cost[s] + least[goal[s]]
        least[base[s]] = min(least[base[s]], total)
    return least


class Rows(NamedTuple):
    """R rows over stages, and what completions from each of K ideals come to; P prices of the rows.

    ``values``   stages x R;  ``limits``  R
    ``rest``     K x R, the least that each sum grows;  ``floor``  K x R, the sums up to which no completion exceeds a
                 limit: smaller ones count as those
    ``prices``   P x R, of which the first ``ranking`` say which labels come first;  ``dear``  K x P, the least price
    """

    values: Floats
    limits: Floats
    rest: Floats
    floor: Floats
    prices: Floats
    dear: Floats
    ranking: int


# Longer than 80 lines: one pass over the ideals with all these arrays.
@kernel(allocates=True)
def labelled_path(base: Integers32, start: Integers, given: Rows, room: int, most: int) -> tuple[int, Integers, int]:
    """A path within all limits: 1 and its stages; 0: there is none; -1: labels were left out for want of room.

    Stages that end at ideal j are ``start[j]:start[j + 1]``.  At most ``room`` labels are kept at an ideal, and
    ``most`` labels and comparisons of them are looked at.  The third number says how many were.
    """
    values, limits, rest, floor, prices, dear = (
        given.values, given.limits, given.rest, given.floor, given.prices, given.dear
    )  # fmt: skip
    ranking = given.ranking
    nodes, rows, kinds = len(start) - 1, len(limits), len(prices)
    within = np.empty(kinds)
    for k in range(kinds):
        within[k] = 0.0
        for r in range(rows):
            within[k] += prices[k, r] * limits[r]
    first = np.zeros(nodes + 1, dtype=np.int64)
    held = 1
    size = 1 << 12
    sums = np.zeros((size, rows))
    parent = np.full(size, -1, dtype=np.int64)
    by = np.full(size, -1, dtype=np.int64)
    first[1] = 1
    full, seen = False, 0
    wide = 1 << 12
    found, rank = np.empty((wide, rows)), np.empty(wide)
    from_, via = np.empty(wide, dtype=np.int64), np.empty(wide, dtype=np.int64)
    total = np.empty(rows)
    for j in range(1, nodes):
        count = 0
        for s in range(start[j], start[j + 1]):
            for label in range(first[base[s]], first[base[s] + 1]):
                seen += 1
                good = True
                for r in range(rows):
                    total[r] = sums[label, r] + values[s, r]
                    if total[r] + rest[j, r] > limits[r] + 1e-10:
                        good = False
                        break
                if not good:
                    continue
                worst = -np.inf
                for k in range(kinds):
                    paid = dear[j, k] - within[k]
                    for r in range(rows):
                        paid += prices[k, r] * total[r]
                    if paid > 1e-10:
                        good = False
                        break
                    if k < ranking:
                        worst = max(worst, paid)
                if not good:
                    continue
                if count == wide:
                    if wide >= 1 << 20:
                        full = True
                        continue
                    wide *= 4
                    found, rank = _taller(found, wide), _longer(rank, wide)
                    from_, via = _longer(from_, wide), _longer(via, wide)
                for r in range(rows):
                    found[count, r] = max(total[r], floor[j, r])
                mean = 0.0
                for r in range(rows):
                    mean += total[r]
                rank[count] = mean if ranking == 0 else worst
                from_[count] = label
                via[count] = s
                count += 1
        if seen > most:
            return -1, np.empty(0, dtype=np.int64), seen
        begin = held
        order = np.argsort(rank[:count])
        for position in range(count):
            c = order[position]
            beaten = False
            for label in range(begin, held):
                beaten = True
                for r in range(rows):
                    if sums[label, r] > found[c, r] + _ROUNDING:
                        beaten = False
                        break
                if beaten:
                    break
            seen += (held - begin) // 4
            if beaten:
                continue
            if held - begin == room or seen > most:
                full = True
                break
            if held == size:
                size *= 2
                sums, parent, by = _taller(sums, size), _longer(parent, size), _longer(by, size)
            sums[held] = found[c]
            parent[held], by[held] = from_[c], via[c]
            held += 1
            if j == nodes - 1:
                break
        first[j + 1] = held
    if first[nodes] == first[nodes - 1]:
        return (-1 if full else 0), np.empty(0, dtype=np.int64), seen
    path = np.empty(nodes, dtype=np.int64)
    length, at = 0, first[nodes - 1]
    while by[at] >= 0:
        path[length] = by[at]
        length += 1
        at = parent[at]
    return 1, path[:length][::-1].copy(), seen


@kernel(no_cpython_wrapper=True, allocates=True)
def _taller(values, room):  # type: ignore[no-untyped-def]
    out = np.empty((room, values.shape[1]), values.dtype)
    out[: len(values)] = values
    return out


@kernel(no_cpython_wrapper=True, allocates=True)
def _longer(values, room):  # type: ignore[no-untyped-def]
    out = np.full(room, -1, values.dtype)
    out[: len(values)] = values
    return out
