"""Which ideals matter when transfers count, told during the walk: one ideal after another, without storing any.

What an ideal pays for the edges that it cuts is kept up to date, in whole parts, while the walk adds and takes away
units; whole numbers, because they do not drift.  Of the ideals that pass, the least cost of a boundary is noted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.graph.graph import Booleans, Integers


class Gate(NamedTuple):
    """What is asked of an ideal.  s states, e edges, u units; all times and weights in whole parts.

    ``touch_start``, ``touched``, ``role``, ``full``   units and edges, and what is inside of an edge that is not cut
    ``cost``     4 x 2 x e: what it adds to each of four sums that an edge is cut, by whether its maker is inside: what
                 the ideal pays, what its complement pays, and both of the edges that one boundary only can cut
    ``inside``   e what is inside now;  ``paid``  the four sums now
    ``low``, ``high``  s the weights that an ideal can have there by themselves;  ``total``  one number: the whole weight
    ``others``   2 x s what devices of other classes take, of those used and of those left
    ``time``     2 x s what the paying devices have to spend, less what boundaries add
    ``counts``   2 x s whether the ideal's own edges are theirs as well
    ``spent``, ``taken``   the knapsack of the paying class: time spent, weight taken
    ``digit``    s how many paying devices have been used;  ``least``  2 x digits the least of the last two sums so far
    """

    touch_start: Integers
    touched: np.ndarray
    role: np.ndarray
    full: np.ndarray
    cost: Integers
    inside: np.ndarray
    paid: Integers
    low: Integers
    high: Integers
    total: Integers
    others: Integers
    time: Integers
    counts: Booleans
    spent: Integers
    taken: Integers
    digit: Integers
    least: Integers


def no_gate() -> Gate:
    """Nothing is asked: no states."""
    none, few, table = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros((2, 0), dtype=np.int64)
    return Gate(
        none, few, few, few, np.zeros((4, 2, 0), dtype=np.int64), few, none, none, none, none, table, table,
        np.zeros((2, 0), dtype=np.bool_), none, none, none, table,
    )  # fmt: skip


@njit(cache=True)
def moved(gate, unit, start, now, goal):  # type: ignore[no-untyped-def]
    """Take units of a chain in or out until there are ``goal``; returns that."""
    while now != goal:
        if now < goal:
            u, sign = unit[start + now], 1
            now += 1
        else:
            now -= 1
            u, sign = unit[start + now], -1
        for j in range(gate.touch_start[u], gate.touch_start[u + 1]):
            e = gate.touched[j]
            old = gate.inside[e]
            new = old + sign * gate.role[j]
            gate.inside[e] = new
            if 0 < old < gate.full[e]:
                for k in range(4):
                    gate.paid[k] -= gate.cost[k, old & 1, e]
            if 0 < new < gate.full[e]:
                for k in range(4):
                    gate.paid[k] += gate.cost[k, new & 1, e]
    return now


@njit(cache=True)
def fitting(gate, weight):  # type: ignore[no-untyped-def]
    """Whether the ideal that the sums stand at, of this weight, matters in some state."""
    some = False
    for s in range(len(gate.low)):
        if weight < gate.low[s] or weight > gate.high[s]:
            continue
        if weight > gate.others[0, s] + _takes(gate, 0, s) or gate.total[0] - weight > gate.others[1, s] + _takes(gate, 1, s):
            continue
        some = True
        d = gate.digit[s]
        gate.least[0, d] = min(gate.least[0, d], gate.paid[2])
        gate.least[1, d] = min(gate.least[1, d], gate.paid[3])
    return some


@njit(cache=True)
def _takes(gate, side, s):  # type: ignore[no-untyped-def]
    """The weight that the paying devices of one side can take beside their transfers."""
    time = gate.time[side, s]
    if gate.counts[side, s]:
        time -= gate.paid[side]
    end = len(gate.spent) - 1
    if end < 0:  # weight is time
        return max(time, 0)
    if time <= gate.spent[0]:
        return gate.taken[0]
    if time >= gate.spent[end]:
        return gate.taken[end]
    a, b = 0, end  # the last that is spent, and the first that is not
    while b - a > 1:
        middle = (a + b) >> 1
        if gate.spent[middle] <= time:
            a = middle
        else:
            b = middle
    share = (time - gate.spent[a]) / (gate.spent[b] - gate.spent[a])
    return gate.taken[a] + np.int64(share * (gate.taken[b] - gate.taken[a])) + 1
