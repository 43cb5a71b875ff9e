"""Compiled: the set of units of the least load among those whose prices reach 1, by branch and bound over cuts.

The least of  load(S) + prize * (1 - price(S))  over all sets is a bound for every prize >= 0, and a minimum cut: the
load is work and cut hyperedges, prizes are what a vertex has from the source.  At each node of the tree the prize is
raised or lowered to where the cheapest set within it and the cheapest beyond it have the same value; a unit that is in
one of both alone is what it branches on.  Whole numbers throughout, so that flows and cuts are exact.

Going down adds to what vertices have from the source or owe to the sink, and so does a change of the prize: a flow
stays one, and only what was added is sent on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.partitions.bounds.set_annealing_kernel import load_of
from placedsl.arrays import Booleans, Floats, Integers

#: The distance of what reaches no deficit; and more than all flow there is: inside or outside whatever it takes.
FAR, BIG = 1 << 30, 1 << 48
#: The most prizes all prices together bring; and prizes tried at a node.
_MOST_PRIZES, _TRIALS = float(1 << 46), 8


class Network(NamedTuple):
    """u units, the vertices of the hyperedges after them, and arcs, by their tails.

    ``start``, ``head``  the arcs of each vertex and where they lead;  ``back``  the arc that leads back
    ``capacity``         of each arc;  ``work``  of each unit (-1: it may be in no set)
    ``pin_start``, ``pin``, ``cost``   the units and the cost of each hyperedge
    """

    start: Integers
    head: Integers
    back: Integers
    capacity: Integers
    work: Integers
    pin_start: Integers
    pin: Integers
    cost: Integers


class Tree(NamedTuple):
    """The nodes from the root to the present one, by depth, and where the search stands.

    ``residual``, ``excess``  what arcs can take and vertices have too much (or, below 0, owe);  ``prize``  per price
    ``lower``      the bound of a node;  ``unit``, ``tried``  what it branches on, and how many sides are behind it
    ``below``, ``beyond``      u flags: the cheapest sets known whose prices do not reach 1, and do
    ``fixed``      of each unit: 1 inside, -1 outside, 0 neither
    ``state``      depth; whether its node is new; the least load known; nodes so far
    ``distance``, ``queue``, ``flag``, ``arc``   space for flows
    """

    residual: Integers
    excess: Integers
    prize: Floats
    lower: Integers
    unit: Integers
    tried: Integers
    below: Booleans
    beyond: Booleans
    fixed: Integers
    state: Integers
    distance: Integers
    queue: Integers
    flag: Booleans
    arc: Integers


@kernel(no_cpython_wrapper=True)
def _measure(network, residual, excess, distance, queue):  # type: ignore[no-untyped-def]
    """The distances of vertices to deficits."""
    begin = end = 0
    for v in range(len(excess)):
        distance[v] = FAR
        if excess[v] < 0:
            distance[v] = 0
            queue[end] = v
            end += 1
    while begin < end:
        v = queue[begin]
        begin += 1
        for a in range(network.start[v], network.start[v + 1]):
            u = network.head[a]
            if distance[u] == FAR and residual[network.back[a]] > 0:
                distance[u] = distance[v] + 1
                queue[end] = u
                end += 1


@kernel(no_cpython_wrapper=True)
def _waiting(network, excess, tree):  # type: ignore[no-untyped-def]
    """Queue all vertices with too much that reach a deficit; their number."""
    end = 0
    for v in range(len(excess)):
        tree.arc[v] = network.start[v]
        tree.flag[v] = excess[v] > 0 and tree.distance[v] < FAR
        if tree.flag[v]:
            tree.queue[end] = v
            end += 1
    return end


@kernel(no_cpython_wrapper=True)
def _send(network, residual, excess, tree):  # type: ignore[no-untyped-def]
    """Send what vertices have too much to deficits until none is within reach; distances hold afterwards."""
    distance, queue, waits, arc = tree.distance, tree.queue, tree.flag, tree.arc
    size = len(excess) + 1
    _measure(network, residual, excess, distance, queue)
    begin, end, looked = 0, _waiting(network, excess, tree), 0
    while begin != end:
        u = queue[begin]
        begin = begin + 1 if begin + 1 < size else 0
        waits[u] = False
        while excess[u] > 0 and distance[u] < FAR:
            a = arc[u]
            if a == network.start[u + 1]:
                least = 2 * size
                for b in range(network.start[u], network.start[u + 1]):
                    if residual[b] > 0:
                        least = min(least, distance[network.head[b]] + 1)
                distance[u] = least if least < 2 * size else FAR
                arc[u] = network.start[u]
                looked += network.start[u + 1] - network.start[u]
                continue
            v = network.head[a]
            if residual[a] <= 0 or distance[v] != distance[u] - 1:
                arc[u] = a + 1
                continue
            sent = min(excess[u], residual[a])
            residual[a] -= sent
            residual[network.back[a]] += sent
            excess[u] -= sent
            excess[v] += sent
            if excess[v] > 0 and not waits[v]:
                queue[end] = v
                waits[v] = True
                end = end + 1 if end + 1 < size else 0
        if looked > 4 * len(residual):
            looked = 0
            _measure(network, residual, excess, distance, queue)
            begin, end = 0, _waiting(network, excess, tree)
    _measure(network, residual, excess, distance, queue)


@kernel(no_cpython_wrapper=True)
def _prize_of(prize, price):  # type: ignore[no-untyped-def]
    """What one unit brings, in whole numbers, and no less."""
    return np.int64(np.ceil(prize * price))


@kernel()
def plant(network, price, cutoff, tree):  # type: ignore[no-untyped-def]
    """Begin a search for sets of a load below ``cutoff``."""
    tree.state[0], tree.state[1], tree.state[2], tree.state[3] = 0, 1, cutoff, 0
    tree.prize[0], tree.lower[0] = float(cutoff), -1
    for a in range(len(network.capacity)):
        tree.residual[0, a] = network.capacity[a]
    for v in range(tree.excess.shape[1]):
        tree.excess[0, v] = 0
    for u in range(len(network.work)):
        tree.fixed[u] = 0 if network.work[u] >= 0 else -1
        tree.excess[0, u] = _prize_of(tree.prize[0], price[u]) - network.work[u] if network.work[u] >= 0 else -BIG


@kernel(no_cpython_wrapper=True)
def _bounded(network, price, tree, depth, best):  # type: ignore[no-untyped-def]
    """Bound a new node; whether there is something left below it."""
    units = len(price)
    below, beyond = tree.below[depth], tree.beyond[depth]
    low = high = size = 0.0
    for u in range(units):
        size += abs(price[u])
        below[u] = tree.fixed[u] > 0
        beyond[u] = below[u] or (tree.fixed[u] == 0 and price[u] > 0.0)
        low += price[u] if below[u] else 0.0
        high += price[u] if beyond[u] else 0.0
    if high < 1.0:
        return False
    low_load, high_load = load_of(network, below), load_of(network, beyond)
    prize, lower = tree.prize[depth], tree.lower[depth]
    residual, excess, inside = tree.residual[depth], tree.excess[depth], tree.flag
    for _ in range(_TRIALS):
        _send(network, residual, excess, tree)
        reached, bound = 0.0, np.int64(np.floor(prize))
        for u in range(units):
            inside[u] = tree.distance[u] == FAR
            if inside[u]:
                reached += price[u]
                bound -= _prize_of(prize, price[u])
        load = np.int64(load_of(network, inside))  # exact: whole numbers below 2^53
        lower = max(lower, bound + load)
        better = False
        if reached >= 1.0:
            if load < tree.state[2]:
                tree.state[2] = load
                for u in range(units):
                    best[u] = inside[u]
            better = load + prize * (1.0 - reached) < high_load + prize * (1.0 - high) - 0.5
            if better:
                high, high_load = reached, float(load)
                for u in range(units):
                    beyond[u] = inside[u]
        else:
            better = load + prize * (1.0 - reached) < low_load + prize * (1.0 - low) - 0.5
            if better:
                low, low_load = reached, float(load)
                for u in range(units):
                    below[u] = inside[u]
        if lower >= tree.state[2] or low >= 1.0 or high <= low:
            break
        other = max(0.0, min((high_load - low_load) / (high - low), _MOST_PRIZES / size))
        if abs(other - prize) <= 1e-9 * prize or (not better and other == prize):
            break
        for u in range(units):
            if network.work[u] >= 0:
                excess[u] += _prize_of(other, price[u]) - _prize_of(prize, price[u])
        prize = other
    tree.prize[depth], tree.lower[depth] = prize, lower
    return lower < tree.state[2]


@kernel(no_cpython_wrapper=True)
def _pick(network, price, tree, depth):  # type: ignore[no-untyped-def]
    """The unit to branch on, -1: none is left.  One that only one of both sets has, whose price and flow are large."""
    chosen, most = -1, -1.0
    for u in range(len(price)):
        if tree.fixed[u] == 0 and tree.below[depth, u] != tree.beyond[depth, u]:
            flow = 1.0
            for a in range(network.start[u], network.start[u + 1]):
                flow += abs(float(network.capacity[a] - tree.residual[depth, a]))
            if abs(price[u]) * flow > most:
                chosen, most = u, abs(price[u]) * flow
    if chosen < 0:
        for u in range(len(price)):
            if tree.fixed[u] == 0 and abs(price[u]) > most:
                chosen, most = u, abs(price[u])
    return chosen


@kernel()
def search(network, price, tree, cutoff, nodes, best):  # type: ignore[no-untyped-def]
    """Go on for so many nodes; whether the search is through.

    ``cutoff``: sets of this load and beyond do not matter.  ``state[2]`` is the least load found below the cutoffs, or
    the least of them, and ``best`` (u flags) its set.
    """
    depth, end = tree.state[0], tree.state[3] + nodes
    tree.state[2] = min(tree.state[2], cutoff)
    while depth >= 0 and tree.state[3] < end:
        if tree.state[1]:
            tree.state[1] = 0
            tree.state[3] += 1
            tree.unit[depth] = -1
            if _bounded(network, price, tree, depth, best):
                tree.unit[depth] = _pick(network, price, tree, depth)
                tree.tried[depth] = 0
        u = tree.unit[depth]
        deep = depth + 1 >= len(tree.lower)
        if u >= 0 and deep and tree.lower[depth] < tree.state[2]:
            return False  # no room for what is below it
        if u < 0 or tree.tried[depth] == 2 or tree.lower[depth] >= tree.state[2]:
            if u >= 0:
                tree.fixed[u] = 0
            depth -= 1
            tree.state[0] = depth
            continue
        enters = tree.tried[depth] == 1
        tree.tried[depth] += 1
        tree.fixed[u] = 1 if enters else -1
        for a in range(len(network.head)):
            tree.residual[depth + 1, a] = tree.residual[depth, a]
        for v in range(tree.excess.shape[1]):
            tree.excess[depth + 1, v] = tree.excess[depth, v]
        tree.excess[depth + 1, u] += BIG if enters else -BIG
        tree.prize[depth + 1], tree.lower[depth + 1] = tree.prize[depth], tree.lower[depth]
        depth += 1
        tree.state[0], tree.state[1] = depth, 1
    return depth < 0


@kernel()
def proven(tree):  # type: ignore[no-untyped-def]
    """What no set is below, as far as the search has come."""
    least = tree.state[2]
    for depth in range(tree.state[0] + 1):
        if tree.unit[depth] < 0 or tree.tried[depth] < 2 or depth == tree.state[0]:
            least = min(least, max(tree.lower[depth], 0))
    return least
