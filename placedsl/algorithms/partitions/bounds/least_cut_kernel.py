"""Compiled: the least that the first stages of a pipeline cut, if they work so much, by branch and bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Floats, Integers

#: The whole number that no flow comes to.
ENDLESS = 2**55
#: Prices of work, per second, that are tried one after the other as long as sets are on one side of the range; so many
#: sets are looked at for one node of the tree; so many units that a node may be divided by.
_PRICES, _SETS, _CANDIDATES = (0.5, 2.0, 8.0), 9, 48


class CutNetwork(NamedTuple):
    """Units of which it is open whether they are in a set, as a network whose cuts are the sets.

    Vertices are u units, the source, which stands for units inside, the sink, and tensors.  Arcs lie by the vertex that
    they leave.

    ``start``, ``to``, ``back``   of each vertex its first arc;  of each arc where it leads, and the arc the other way
    ``room``                      of each arc a whole number
    ``from_source``, ``to_sink``  the arcs of each unit from the source and to the sink, which have no room
    ``work``                      seconds of each unit
    ``earlier_start`` …           what comes before and after each unit, of these, directly
    """

    start: Integers
    to: Integers
    back: Integers
    room: Integers
    from_source: Integers
    to_sink: Integers
    work: Floats
    earlier_start: Integers
    earlier: Integers
    later_start: Integers
    later: Integers


class CutQuestion(NamedTuple):
    """What is asked of the sets of a network.

    ``scale``              so many of a network's whole numbers are a second
    ``cut``, ``inside``    seconds that every set cuts, and works: those of units that are in it in any case
    ``low``, ``high``      seconds that a set works
    ``enough``             more seconds that are cut are of no interest
    """

    scale: float
    cut: float
    inside: float
    low: float
    high: float
    enough: float


class _Scratch(NamedTuple):
    room: Integers
    level: Integers
    at: Integers
    queue: Integers
    path: Integers
    stack: Integers
    mark: Integers
    less: Booleans
    more: Booleans
    between: Booleans


@kernel()
def _reach(net, now, source):  # type: ignore[no-untyped-def]
    """How many arcs with room lead to each vertex at least; -1: none does."""
    now.level[:] = -1
    now.level[source] = 0
    now.queue[0] = source
    first, last = 0, 1
    while first < last:
        v = now.queue[first]
        first += 1
        for a in range(net.start[v], net.start[v + 1]):
            w = net.to[a]
            if now.room[a] > 0 and now.level[w] < 0:
                now.level[w] = now.level[v] + 1
                now.queue[last] = w
                last += 1


@kernel()
def maximum_flow(net, now, source, sink):  # type: ignore[no-untyped-def]
    """The largest flow, which is taken from ``now.room`` (Dinic 1970); ``now.level`` is -1 beyond the first minimum
    cut."""
    total = 0
    while True:
        _reach(net, now, source)
        if now.level[sink] < 0:
            return total
        for v in range(len(now.at)):
            now.at[v] = net.start[v]
        depth, v = 0, source
        while True:
            if v == sink:
                amount = now.room[now.path[0]]
                for i in range(1, depth):
                    amount = min(amount, now.room[now.path[i]])
                total += amount
                for i in range(depth - 1, -1, -1):
                    a = now.path[i]
                    now.room[a] -= amount
                    now.room[net.back[a]] += amount
                    if now.room[a] == 0:
                        depth = i
                v = net.to[net.back[now.path[depth]]]
                continue
            last = net.start[v + 1]
            while now.at[v] < last:
                a = now.at[v]
                if now.room[a] > 0 and now.level[net.to[a]] == now.level[v] + 1:
                    break
                now.at[v] += 1
            if now.at[v] < last:
                now.path[depth] = now.at[v]
                v = net.to[now.at[v]]
                depth += 1
            elif depth == 0:
                break
            else:
                depth -= 1
                v = net.to[net.back[now.path[depth]]]
                now.at[v] += 1


@kernel()
def _spread(unit, start, near, fixed, value, stack):  # type: ignore[no-untyped-def]
    """Give a unit, and all that can be reached from it, this value."""
    fixed[unit] = value
    stack[0], size = unit, 1
    while size:
        size -= 1
        v = stack[size]
        for j in range(start[v], start[v + 1]):
            w = near[j]
            if fixed[w] != value:
                fixed[w] = value
                stack[size] = w
                size += 1


@kernel()
def _work_reached(unit, start, near, work, now, number):  # type: ignore[no-untyped-def]
    """The work of a unit and of all that can be reached from it through those that are ``between``."""
    now.mark[unit] = number
    now.stack[0], size = unit, 1
    total = 0.0
    while size:
        size -= 1
        v = now.stack[size]
        total += work[v]
        for j in range(start[v], start[v + 1]):
            w = near[j]
            if now.between[w] and now.mark[w] != number:
                now.mark[w] = number
                now.stack[size] = w
                size += 1
    return total


@kernel()
def _dividing_unit(net, now):  # type: ignore[no-untyped-def]
    """The unit between two sets that has most work before it as well as after it; -1: there is none between them."""
    units = len(net.work)
    members = 0
    for u in range(units):
        now.mark[u] = -1
        members += now.between[u]
    every = max(1, members // _CANDIDATES)
    unit, best, passed = -1, -1.0, 0
    for u in range(units):
        if not now.between[u]:
            continue
        passed += 1
        if passed % every == 0:
            before = _work_reached(u, net.earlier_start, net.earlier, net.work, now, 2 * u)
            after = _work_reached(u, net.later_start, net.later, net.work, now, 2 * u + 1)
            if min(before, after) > best:
                unit, best = u, min(before, after)
    return unit


@kernel()
def _priced(net, asked, fixed, price, now):  # type: ignore[no-untyped-def]
    """The least that a set cuts with the price of its work (without what all sets have), and the set's work."""
    units = len(net.work)
    for a in range(len(net.room)):
        now.room[a] = net.room[a]
    constant = 0.0
    for u in range(units):
        held = np.int64(np.floor(abs(price) * net.work[u] * asked.scale))
        if price < 0.0:
            now.room[net.from_source[u]] = held
            constant += price * net.work[u]
        else:
            now.room[net.to_sink[u]] = held
        if fixed[u] == 1:
            now.room[net.from_source[u]] = ENDLESS
        elif fixed[u] == 2:
            now.room[net.to_sink[u]] = ENDLESS
    flow = maximum_flow(net, now, units, units + 1)
    works = 0.0
    for u in range(units):
        works += net.work[u] if now.level[u] >= 0 else 0.0
    return flow / asked.scale + constant, works


@kernel()
def _bounded(net, asked, fixed, bound, now):  # type: ignore[no-untyped-def]
    """What sets of a node cut at least (``bound`` is known), and a unit to divide it by (-1: there is no need)."""
    units = len(net.work)
    least, most = asked.inside, asked.inside
    for u in range(units):
        least += net.work[u] if fixed[u] == 1 else 0.0
        most += net.work[u] if fixed[u] != 2 else 0.0
        # The least set, and the largest.
        now.less[u], now.more[u] = fixed[u] == 1, fixed[u] != 2
    if least > asked.high or most < asked.low:
        return np.inf, -1
    price, tried = 0.0, 0
    has_less, has_more = False, False
    cut_less, cut_more, work_less, work_more = 0.0, 0.0, 0.0, 0.0
    for _ in range(_SETS):
        value, works = _priced(net, asked, fixed, price, now)
        cut = value - price * works
        value += asked.cut + price * asked.inside
        bound = max(bound, value - max(price * asked.low, price * asked.high))
        if bound >= asked.enough or asked.low <= asked.inside + works <= asked.high:
            return bound, -1
        if asked.inside + works < asked.low:
            has_less, cut_less, work_less = True, cut, works
            for u in range(units):
                now.less[u] = now.level[u] >= 0
        else:
            has_more, cut_more, work_more = True, cut, works
            for u in range(units):
                now.more[u] = now.level[u] >= 0
        if has_less and has_more:
            # The price at which both sets are worth the same.
            again = (cut_less - cut_more) / (work_more - work_less)
            if abs(again - price) <= 1e-9 * max(abs(again), abs(price)):
                break
            price = again
        elif tried < len(_PRICES):
            price = -_PRICES[tried] if has_less else _PRICES[tried]
            tried += 1
        else:
            break
    for u in range(units):
        now.between[u] = fixed[u] == 0 and now.more[u] and not now.less[u]
    return bound, _dividing_unit(net, now)


@kernel(allocates=True)
def _scratch(net):  # type: ignore[no-untyped-def]
    """Room to work in."""
    units, vertices = len(net.work), len(net.start) - 1
    return _Scratch(
        np.empty_like(net.room), np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64),
        np.empty(vertices, dtype=np.int64), np.empty(vertices + 1, dtype=np.int64),
        np.empty(units + 1, dtype=np.int64), np.empty(units, dtype=np.int64), np.empty(units, dtype=np.bool_),
        np.empty(units, dtype=np.bool_), np.empty(units, dtype=np.bool_),
    )  # fmt: skip


@kernel(allocates=True)
def cheapest_set(net, asked, price):  # type: ignore[no-untyped-def]
    """The least set that cuts least with the price of its work."""
    now = _scratch(net)
    _priced(net, asked, np.zeros(len(net.work), dtype=np.int8), price, now)
    return now.level[: len(net.work)] >= 0


@kernel(allocates=True)
def least_cut(net, asked, most):  # type: ignore[no-untyped-def]
    """What is cut at least by sets that work from ``low`` to ``high`` s, or ``enough``; by a tree of so many nodes.

    For any price of work p, what a set cuts and p times its work are together at least the minimum cut; so a set of the
    range cuts at least that less the larger of p low and p high.  Where the sets of the best prices work less and more
    than the range, a unit that they differ in is outside in one half of a node, and inside in the other.
    """
    units, now = len(net.work), _scratch(net)
    # 1: inside, 2: outside, 0: open.
    tree = np.zeros((most + 1, units), dtype=np.int8)
    bound, divide = np.full(most + 1, np.inf), np.full(most + 1, -1, dtype=np.int64)
    bound[0], divide[0] = _bounded(net, asked, tree[0], -np.inf, now)
    count = 1
    while True:
        node = 0
        for i in range(1, count):
            if bound[i] < bound[node]:
                node = i
        if bound[node] >= asked.enough or divide[node] < 0 or count >= most:
            return min(bound[node], asked.enough)
        unit, known = divide[node], bound[node]
        for u in range(units):
            tree[count, u] = tree[node, u]
        _spread(unit, net.later_start, net.later, tree[node], 2, now.stack)
        _spread(unit, net.earlier_start, net.earlier, tree[count], 1, now.stack)
        bound[node], divide[node] = _bounded(net, asked, tree[node], known, now)
        bound[count], divide[count] = _bounded(net, asked, tree[count], known, now)
        count += 1
