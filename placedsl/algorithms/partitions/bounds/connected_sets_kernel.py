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
#: A node at which more units than this are looked at counts for more than one.
_LOOKED_AT = 200


class Connected(NamedTuple):
    """s connected sets by their least unit: ``load``, and the units ``unit[first[i]:first[i + 1]]``, ascending."""

    first: Integers
    unit: NDArray[np.uint16]
    load: Floats


class Pieces(NamedTuple):
    """Sets as a search takes them, by their least ``unit``: ``load`` and ``worth`` (s), and all units as w words of
    bits."""

    unit: Integers
    load: Floats
    worth: Floats
    word: NDArray[np.uint64]


class Walk(NamedTuple):
    """Where a search in depth stands: at each depth the next set that is tried, the load so far, what of the prices is
    not reached yet, and the units taken.

    ``state``: depth, sets found, and pieces looked at;  ``least``: the least load known.
    """

    set: Integers
    load: Floats
    left: Floats
    word: NDArray[np.uint64]
    state: Integers
    least: Floats


@kernel(allocates=True)
def sets_of_unit(tensors, root, most, sets, made, nodes):  # type: ignore[no-untyped-def]
    """Add the connected sets whose least unit is ``root`` and that load less than ``most`` to ``made`` of them; how
    many there are then (-1: more than there is room for), and how many nodes of ``nodes`` are left.

    Units next to the set are taken or left out, one after another, those first by which the load grows most; what is
    paid of hyperedges then is a lower bound.
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
        nodes -= 1 + units // _LOOKED_AT
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
        other, largest = -1, -1.0
        for u in range(root + 1, units):
            if fixed[u] == 0 and next_to[u] > 0:
                more = tensors.work[u]
                for j in range(tensors.touch_start[u], tensors.touch_start[u + 1]):
                    e = tensors.touched[j]
                    more += tensors.cost[e] if inside[e] > 0 and outside[e] == 0 else 0.0
                if more > largest:
                    other, largest = u, more
        if other >= 0:
            depth += 1
            unit[depth], side[depth], load[depth] = other, 0, here
            continue
        end = sets.first[made]
        for u in range(root, units):
            if fixed[u] > 0:
                if end == len(sets.unit):
                    return -1, nodes
                sets.unit[end] = u
                end += 1
        if made == len(sets.load):
            return -1, nodes
        sets.load[made], sets.first[made + 1] = here, end
        made += 1
    return made, nodes


@kernel()
def worth_of(sets, price, most, worth):  # type: ignore[no-untyped-def]
    """Write the prices of sets that load less than ``most`` (0 for others); the least load for a worth of 1 of any."""
    least = np.inf
    for s in range(len(sets.load)):
        own = 0.0
        if sets.load[s] < most:
            for i in range(sets.first[s], sets.first[s + 1]):
                own += price[sets.unit[i]]
            if own > 0.0:
                least = min(least, sets.load[s] / own)
        worth[s] = own
    return least


@kernel()
def some_of(sets, worth, most, least, kept):  # type: ignore[no-untyped-def]
    """Write the sets that may be part of one worth 1 that loads less than ``most``, where any worth takes ``least``
    times as much; how many there are."""
    number = 0
    for s in range(len(sets.load)):
        if worth[s] > 0.0 and sets.load[s] + max(0.0, (1.0 - worth[s]) * least) < most:
            kept[number] = s
            number += 1
    return number


@kernel()
def words_of(sets, kept, word):  # type: ignore[no-untyped-def]
    """Write the units of some sets into w words of bits."""
    for n in range(len(kept)):
        for w in range(word.shape[1]):
            word[n, w] = 0
        for i in range(sets.first[kept[n]], sets.first[kept[n] + 1]):
            u = np.int64(sets.unit[i])
            word[n, u // 64] |= np.uint64(1) << np.uint64(u % 64)


@kernel(no_cpython_wrapper=True)
def _needed(price, steps):  # type: ignore[no-untyped-def]
    """The steps of prices that are not reached yet; none that rounding may have made."""
    return np.int64(min(max(np.ceil(price * steps - _ROUNDING), 0.0), float(steps)))


@kernel()
def fill_table(pieces, table):  # type: ignore[no-untyped-def]
    """Write into ``table`` ((u + 1) x (steps + 1)) what sets from each unit on load at least, for so many steps of the
    prices."""
    units, steps = table.shape[0] - 1, table.shape[1] - 1
    for step in range(steps + 1):
        table[units, step] = np.inf if step else 0.0
    s = len(pieces.load) - 1
    for unit in range(units - 1, -1, -1):
        for step in range(steps + 1):
            table[unit, step] = table[unit + 1, step]
        while s >= 0 and pieces.unit[s] == unit:
            taken = np.int64(min(np.ceil(pieces.worth[s] * steps + _ROUNDING), float(steps)))
            for step in range(1, steps + 1):
                other = pieces.load[s] + table[unit + 1, max(step - taken, 0)]
                table[unit, step] = min(table[unit, step], other)
            s -= 1


@kernel()
def walk_on(pieces, table, walk, looks, found):  # type: ignore[no-untyped-def]
    """Go on with a search for so many sets that are looked at; whether it is through.

    ``found``: rows of w words for sets that load less than all before, the cheapest last; ``walk.state[1]`` of them
    were written, in turn.
    """
    units, steps = table.shape[0] - 1, table.shape[1] - 1
    depth, words = walk.state[0], pieces.word.shape[1]
    walk.state[2] += looks
    while depth >= 0 and looks > 0:
        s, load, left = walk.set[depth], walk.load[depth], walk.left[depth]
        deeper = False
        while s < len(pieces.load) and looks > 0:
            looks -= 1
            if load + table[pieces.unit[s], _needed(left, steps)] >= walk.least[0]:
                s = len(pieces.load)  # nor do sets of later units
                break
            rest, own = left - pieces.worth[s], load + pieces.load[s]
            fine = own + table[pieces.unit[s] + 1, _needed(rest, steps)] < walk.least[0]
            for w in range(words):
                fine = fine and not pieces.word[s, w] & walk.word[depth, w]
            s += 1
            if not fine:
                continue
            if rest <= _ROUNDING:
                walk.least[0] = own
                row = walk.state[1] % len(found)
                for w in range(words):
                    found[row, w] = walk.word[depth, w] | pieces.word[s - 1, w]
                walk.state[1] += 1
            elif depth + 1 < units:
                walk.set[depth], walk.set[depth + 1] = s, s
                walk.load[depth + 1], walk.left[depth + 1] = own, rest
                for w in range(words):
                    walk.word[depth + 1, w] = walk.word[depth, w] | pieces.word[s - 1, w]
                depth, deeper = depth + 1, True
                break
        if deeper:
            continue
        walk.set[depth] = s
        if s == len(pieces.load):
            depth -= 1
    walk.state[0], walk.state[2] = depth, walk.state[2] - looks
    return depth < 0
