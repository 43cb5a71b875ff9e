"""Compiled: the cheapest set of units whose prices reach 1, put together from connected sets.

Sets that share no hyperedge load a device by the sum of what each loads it, so that any set is a union of connected
ones.  Where a device has few units there are few connected sets within a load, and they are the same for all prices.
What sets from some unit on load at least, for so much of the prices, is a table: dynamic programming by the least unit
of each set, which forgets only that sets do not overlap.  A search in depth, bounded by the table, does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats, Integers

#: So much less of the prices, and of a step of them, has to be reached, for what rounding takes.
_ROUNDING = 1e-9


class Connected(NamedTuple):
    """s connected sets by their least unit: ``unit`` (s), their ``load`` (s), and their units as w words of bits."""

    unit: Integers
    load: Floats
    word: NDArray[np.uint64]


class Walk(NamedTuple):
    """Where a search in depth stands: at each depth the next set that is tried, the load so far, what of the prices is
    not reached yet, and the units taken.  ``state``: depth, and sets found;  ``least``: the least load known.
    """

    set: Integers
    load: Floats
    left: Floats
    word: NDArray[np.uint64]
    state: Integers
    least: Floats


@kernel(no_cpython_wrapper=True, allocates=True)
def _of_unit(tensors, root, most, sets, made, nodes):  # type: ignore[no-untyped-def]
    """Add the connected sets whose least unit is ``root`` and that load less than ``most``; how many sets there are
    then (-1: more than there is room for), and how many nodes of ``nodes`` are left.

    Units next to the set are taken or left out, one after another; what is paid of hyperedges then is a lower bound.
    """
    units, edges = len(tensors.work), len(tensors.cost)
    inside, outside = np.zeros(edges, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    next_to, fixed = np.zeros(units, dtype=np.int64), np.zeros(units, dtype=np.int64)
    unit, side = np.zeros(units + 1, dtype=np.int64), np.zeros(units + 1, dtype=np.int64)
    load = np.zeros(units + 2)
    for v in range(root):
        fixed[v] = -1
        for j in range(tensors.touch_start[v], tensors.touch_start[v + 1]):
            outside[tensors.touched[j]] += 1
    depth, unit[0] = 0, root
    while depth >= 0 and nodes > 0:
        nodes -= 1
        v = unit[depth]
        first, last = tensors.touch_start[v], tensors.touch_start[v + 1]
        if side[depth] == 1:
            for j in range(first, last):
                e = tensors.touched[j]
                inside[e] -= 1
                if inside[e] == 0:
                    for i in range(tensors.pin_start[e], tensors.pin_start[e + 1]):
                        next_to[tensors.pin[i]] -= 1
        elif side[depth] == 2:
            for j in range(first, last):
                outside[tensors.touched[j]] -= 1
        fixed[v] = 0
        side[depth] += 1
        if side[depth] == 3 or (side[depth] == 2 and depth == 0):
            side[depth] = 0
            depth -= 1
            continue
        here = load[depth]
        if side[depth] == 1:
            fixed[v] = 1
            here += tensors.work[v]
            for j in range(first, last):
                e = tensors.touched[j]
                if inside[e] == 0:
                    here += tensors.cost[e] if outside[e] > 0 else 0.0
                    for i in range(tensors.pin_start[e], tensors.pin_start[e + 1]):
                        next_to[tensors.pin[i]] += 1
                inside[e] += 1
        else:
            fixed[v] = -1
            for j in range(first, last):
                e = tensors.touched[j]
                here += tensors.cost[e] if outside[e] == 0 and inside[e] > 0 else 0.0
                outside[e] += 1
        if not here < most:
            continue
        other = root + 1
        while other < units and (fixed[other] != 0 or next_to[other] == 0):
            other += 1
        if other < units:
            depth += 1
            unit[depth], side[depth], load[depth] = other, 0, here
            continue
        if made == len(sets.load):
            return -1, nodes
        sets.unit[made], sets.load[made] = root, here
        for w in range(sets.word.shape[1]):
            sets.word[made, w] = 0
        for u in range(root, units):
            if fixed[u] > 0:
                sets.word[made, u // 64] |= np.uint64(1) << np.uint64(u % 64)
        made += 1
    return made, nodes


@kernel()
def connected_sets(tensors, most, nodes, sets):  # type: ignore[no-untyped-def]
    """Write the connected sets that load less than ``most``; how many there are, -1 where that takes too much."""
    made = 0
    for root in range(len(tensors.work)):
        made, nodes = _of_unit(tensors, root, most, sets, made, nodes)
        if made < 0 or nodes <= 0:
            return -1
    return made


@kernel(no_cpython_wrapper=True)
def _needed(price, steps):  # type: ignore[no-untyped-def]
    """The steps of prices that are not reached yet; none that rounding may have made."""
    return np.int64(min(max(np.ceil(price * steps - _ROUNDING), 0.0), float(steps)))


@kernel()
def price_sets(sets, price, most, worth, table):  # type: ignore[no-untyped-def]
    """Write the prices of sets into ``worth`` (s; 0 for those that load ``most`` or more) and into ``table``
    ((u + 1) x (steps + 1)) what sets from each unit on load at least, for so many steps of the prices.
    """
    units, steps = len(price), table.shape[1] - 1
    for step in range(steps + 1):
        table[units, step] = np.inf if step else 0.0
    s = len(sets.load) - 1
    for unit in range(units - 1, -1, -1):
        for step in range(steps + 1):
            table[unit, step] = table[unit + 1, step]
        while s >= 0 and sets.unit[s] == unit:
            worth[s] = 0.0
            if sets.load[s] < most:
                for w in range(sets.word.shape[1]):
                    word, u = sets.word[s, w], 64 * w
                    while word:
                        if word & np.uint64(1):
                            worth[s] += price[u]
                        word >>= np.uint64(1)
                        u += 1
            if worth[s] > 0.0:
                taken = np.int64(min(np.ceil(worth[s] * steps + _ROUNDING), float(steps)))
                for step in range(1, steps + 1):
                    other = sets.load[s] + table[unit + 1, max(step - taken, 0)]
                    table[unit, step] = min(table[unit, step], other)
            s -= 1


@kernel()
def walk_on(sets, worth, table, walk, looks, found):  # type: ignore[no-untyped-def]
    """Go on with a search for so many sets that are looked at; whether it is through.

    ``found``: rows of w words for sets that load less than all before, the cheapest last; ``walk.state[1]`` of them
    were written, in turn.
    """
    units, steps = table.shape[0] - 1, table.shape[1] - 1
    depth, words = walk.state[0], sets.word.shape[1]
    while depth >= 0 and looks > 0:
        s, load, left = walk.set[depth], walk.load[depth], walk.left[depth]
        deeper = False
        while s < len(sets.load) and looks > 0:
            looks -= 1
            if load + table[sets.unit[s], _needed(left, steps)] >= walk.least[0]:
                s = len(sets.load)  # nor do sets of later units
                break
            rest, own = left - worth[s], load + sets.load[s]
            fine = worth[s] > 0.0 and own + table[sets.unit[s] + 1, _needed(rest, steps)] < walk.least[0]
            for w in range(words):
                fine = fine and not sets.word[s, w] & walk.word[depth, w]
            s += 1
            if not fine:
                continue
            if rest <= _ROUNDING:
                walk.least[0] = own
                row = walk.state[1] % len(found)
                for w in range(words):
                    found[row, w] = walk.word[depth, w] | sets.word[s - 1, w]
                walk.state[1] += 1
            elif depth + 1 < units:
                walk.set[depth], walk.set[depth + 1] = s, s
                walk.load[depth + 1], walk.left[depth + 1] = own, rest
                for w in range(words):
                    walk.word[depth + 1, w] = walk.word[depth, w] | sets.word[s - 1, w]
                depth, deeper = depth + 1, True
                break
        if deeper:
            continue
        walk.set[depth] = s
        if s == len(sets.load):
            depth -= 1
    walk.state[0] = depth
    return depth < 0
