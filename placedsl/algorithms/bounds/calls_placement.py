"""From what the dynamic program found for a reduced problem back to a device and a piece for each node.

What the reduction left out (classes, unlike accelerators, light nodes, readings) may make the latency larger than what
the program found, or the placement infeasible: it is always evaluated on the problem as it was.
"""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np

from placedsl.algorithms.bounds.calls_kernel import Labels, Lattice
from placedsl.algorithms.bounds.calls_reduction import Reduced
from placedsl.algorithms.calls import Answer, answer_of, latency_of
from placedsl.algorithms.calls_kernel import Calls
from placedsl.graph.graph import Integers

#: Orders of unlike accelerators that are tried, and passes over the nodes that the reduction took away.
_ORDERS, _PASSES = 720, 3

#: What ran from one ideal to a larger one, and whether as a call (else one node on a host).
Run = tuple[int, int, bool]
#: From a narrow ideal, by the calls left: the runs to the next one, which that is (-1: all is done), the calls used.
Way = tuple[list[Run], int, int]


def way(lattice: Lattice, labels: Labels, calls: int) -> Way | None:
    """How an exploration that has just ended met the least time (None: it met nothing better than what was known)."""
    x, j, used = labels.found[calls].tolist()
    if x < 0:
        return None
    runs: list[Run] = []
    ideal, so_far = j, used
    while x >= 0:
        runs.append((int(labels.ideal[x]), ideal, so_far > labels.used[x]))
        ideal, so_far, x = int(labels.ideal[x]), int(labels.used[x]), int(labels.before[x])
    return runs[::-1], int(lattice.narrow[j]), used


def joined(ways: dict[tuple[int, int], Way], calls: int) -> list[Run] | None:
    """All runs from the beginning (-1), from one narrow ideal to the next (None: some way is not known)."""
    runs: list[Run] = []
    number, left = -1, calls
    while (found := ways.get((number, left))) is not None:
        more, number, used = found
        runs += more
        left -= used
        if number < 0:
            return runs
    return None


def placed(calls: Calls, problem: Reduced, lattice: Lattice, runs: list[Run]) -> Answer | None:
    """A feasible placement that runs these, what was taken away where it costs least (None: that is not feasible)."""
    number = _numbered(calls, problem, lattice, runs)
    free = _follow(calls, number)
    best, least = None, np.inf
    for slots in _arrangements(calls):
        place = _on_devices(calls, number, slots)
        if place is not None and (value := _settled(calls, place, free)) < least:
            best, least = place, value
    return None if best is None else answer_of(calls, best)


def _numbered(calls: Calls, problem: Reduced, lattice: Lattice, runs: list[Run]) -> Integers:
    """The call that each node is in, -1 on a host, -2 where it was taken away."""
    names = problem.order()
    number = np.full(len(calls.unit), -2, dtype=np.int64)
    counted = 0
    for low, high, call in runs:
        for v in np.flatnonzero(lattice.inside[high] & ~lattice.inside[low]).tolist():
            number[problem.held[names[v]]] = counted if call else -1
        counted += call
    return number


def _follow(calls: Calls, number: Integers) -> list[int]:
    """Put the nodes that were taken away with others of their unit; returns the units that were taken away whole."""
    free = []
    for u in range(len(calls.unit_start) - 1):
        nodes = calls.unit_node[calls.unit_start[u] : calls.unit_start[u + 1]]
        kept = number[nodes][number[nodes] > -2]
        if len(kept):
            number[nodes] = np.where(number[nodes] > -2, number[nodes], kept[0])
        else:
            free.append(u)
    return free


def _arrangements(calls: Calls) -> list[Integers]:
    """Which place the first call has, the second, and so on."""
    accelerators = np.flatnonzero(~calls.host)
    alike = all((x[accelerators] == x[accelerators[:1]]).all() for x in (calls.time, calls.transfer, calls.capacity))
    pieces = np.arange(calls.pieces)
    out = []
    for order in islice(permutations(accelerators.tolist()), 1 if alike else _ORDERS):
        places = np.array(order, dtype=np.int64)[:, None] * calls.pieces + pieces
        out.append(places.ravel())
        if calls.pieces > 1:
            out.append(places.T.ravel())
    return out


def _on_devices(calls: Calls, number: Integers, slots: Integers) -> Integers | None:
    """A place for each node, what was taken away on hosts or else with a neighbour (None: somewhere neither does)."""
    hosts = np.flatnonzero(calls.host)
    place = np.where(number >= 0, slots[np.maximum(number, 0)] if len(slots) else -1, -1)
    undone = []
    for u in range(len(calls.unit_start) - 1):
        nodes = calls.unit_node[calls.unit_start[u] : calls.unit_start[u + 1]]
        if (number[nodes] >= 0).all():
            continue
        total = calls.time[hosts][:, nodes].sum(axis=1)
        if len(hosts) and np.isfinite(total.min()):
            place[nodes[number[nodes] < 0]] = hosts[int(np.argmin(total))] * calls.pieces
        else:
            undone.append(nodes)
    while undone:
        waiting = []
        for nodes in undone:
            near = [p for p in _near(calls, place, nodes) if p >= 0]
            near = [p for p in near if np.isfinite(calls.time[p // calls.pieces, nodes]).all()]
            if near:
                place[nodes[number[nodes] < 0]] = near[0]
            else:
                waiting.append(nodes)
        if len(waiting) == len(undone):
            return None
        undone = waiting
    return place


def _near(calls: Calls, place: Integers, nodes: Integers) -> list[int]:
    """The places of what some nodes read from, and of what reads from them."""
    near: set[int] = set()
    for v in nodes.tolist():
        near.update(place[calls.producer[calls.taken[calls.taken_start[v] : calls.taken_start[v + 1]]]].tolist())
        for t in calls.made[calls.made_start[v] : calls.made_start[v + 1]].tolist():
            near.update(place[calls.reader[calls.read_start[t] : calls.read_start[t + 1]]].tolist())
    return sorted(near)


def _settled(calls: Calls, place: Integers, free: list[int]) -> float:
    """The latency, once units that were taken away have gone to neighbours' places where that is better."""
    value = latency_of(calls, place)
    for _ in range(_PASSES):
        before = value
        for u in free:
            nodes = calls.unit_node[calls.unit_start[u] : calls.unit_start[u + 1]]
            for p in _near(calls, place, nodes):
                old = place[nodes]
                place[nodes] = p
                changed = latency_of(calls, place)
                if changed < value:
                    value = changed
                else:
                    place[nodes] = old
        if value == before:
            break
    return value
