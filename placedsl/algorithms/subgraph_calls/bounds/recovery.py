"""From a solution of the dynamic program for a reduced instance back to a device and a slot for each node.

What the reduction left out (classes, unequal accelerators, light nodes, readings) may make the latency larger than the
program's value, or the placement infeasible: it is always evaluated on the original instance.
"""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from placedsl.algorithms.subgraph_calls.bounds.reduction import ReducedInstance
from placedsl.algorithms.subgraph_calls.bounds.tables import IdealLattice, StateTable
from placedsl.algorithms.subgraph_calls.instance import CallPlacement, call_placement, latency_of
from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance
from placedsl.arrays import Floats, Integers

#: Orders of unequal accelerators that are tried, and passes over the nodes that the reduction removed.
_ORDERS, _PASSES = 720, 3

#: A step from one ideal to a larger one, and whether it is a call (else one node on a host).
IdealStep = tuple[int, int, bool]
#: From a narrow ideal, by the budget left: the steps to the next one, its number (-1: the end), what they take.
SegmentPath = tuple[list[IdealStep], int, int]


def backtrack(lattice: IdealLattice, states: StateTable, allowed: int) -> SegmentPath | None:
    """The steps by which an exploration that has just ended attained the least time (None: it improved nothing)."""
    x, j, used, called = states.found[allowed].tolist()
    if x < 0:
        return None
    steps: list[IdealStep] = []
    ideal = j
    while x >= 0:
        steps.append((int(states.ideal[x]), ideal, bool(called)))
        ideal, called, x = int(states.ideal[x]), states.called[x], int(states.before[x])
    return steps[::-1], int(lattice.narrow[j]), used


def stitch(segment_paths: dict[tuple[int, int], SegmentPath], budget: int) -> list[IdealStep] | None:
    """All steps from the beginning (-1), from each narrow ideal to the next (None: some segment is not known)."""
    steps: list[IdealStep] = []
    number, left = -1, budget
    while (found := segment_paths.get((number, left))) is not None:
        more, number, used = found
        steps += more
        left -= used
        if number < 0:
            return steps
    return None


def recover_placement(
    instance: CallInstance, problem: ReducedInstance, lattice: IdealLattice, steps: list[IdealStep]
) -> CallPlacement | None:
    """A feasible placement with these steps, removed nodes where they cost least (None: it is not feasible)."""
    number = _numbered(instance, problem, lattice, steps)
    free = _follow(instance, number)
    best, least = None, np.inf
    for places in _arrangements(instance, number):
        place = _on_devices(instance, number, places)
        if place is not None and (value := _settled(instance, place, free)) < least:
            best, least = place, value
    return None if best is None else call_placement(instance, best)


def _numbered(
    instance: CallInstance, problem: ReducedInstance, lattice: IdealLattice, steps: list[IdealStep]
) -> Integers:
    """n: the number of each node's call, -1 on a host, -2 if the node was removed."""
    names = problem.order()
    number = np.full(len(instance.unit), -2, dtype=np.int64)
    counted = 0
    for low, high, call in steps:
        for v in np.flatnonzero(lattice.inside[high] & ~lattice.inside[low]).tolist():
            number[problem.held[names[v]]] = counted if call else -1
        counted += call
    return number


def _follow(instance: CallInstance, number: Integers) -> list[int]:
    """Put removed nodes with others of their unit; returns the units that were removed as a whole."""
    free = []
    for u in range(len(instance.unit_start) - 1):
        nodes = instance.unit_node[instance.unit_start[u] : instance.unit_start[u + 1]]
        kept = number[nodes][number[nodes] > -2]
        if len(kept):
            number[nodes] = np.where(number[nodes] > -2, number[nodes], kept[0])
        else:
            free.append(u)
    return free


def _arrangements(instance: CallInstance, number: Integers) -> list[Integers]:
    """The places of the first call, the second, and so on, in every order of the accelerators that is tried."""
    accelerators = np.flatnonzero(~instance.host)
    arrays = (instance.time, instance.transfer, instance.capacity)
    alike = all((x[accelerators] == x[accelerators[:1]]).all() for x in arrays)
    calls = int(number.max(initial=-1)) + 1
    group = _linked(instance, number, calls)
    inside = number >= 0
    held = np.bincount(group[number[inside]], weights=instance.memory[inside], minlength=calls).astype(np.float64)
    out = []
    for order in islice(permutations(accelerators.tolist()), 1 if alike else _ORDERS):
        chosen = _packed(instance, order, group, held)
        if chosen is not None:
            slot = [chosen[:c].count(d) for c, d in enumerate(chosen)]
            out.append(np.array([d * instance.slots + p for d, p in zip(chosen, slot, strict=True)], dtype=np.int64))
    return out


def _linked(instance: CallInstance, number: Integers, calls: int) -> Integers:
    """For each call the first of those that share an accelerator with it, because nodes of one unit are in both."""
    inside = np.flatnonzero(number >= 0)
    links = coo_array(
        (np.ones(len(inside)), (number[inside], calls + instance.unit[inside])), shape=(calls + len(instance.unit),) * 2
    )
    label = connected_components(links, directed=False)[1][:calls]
    return np.unique(label, return_index=True)[1][np.unique(label, return_inverse=True)[1]].astype(np.int64)


def _packed(instance: CallInstance, order: tuple[int, ...], group: Integers, held: Floats) -> list[int] | None:
    """For each call the accelerator: one each in ``order`` if that makes one call, else the heaviest group first, each
    to the fullest that has room (None: some call finds none).
    """
    if instance.slots == 1:
        return list(order[: len(group)]) if len(group) <= len(order) else None
    room, free = instance.capacity.copy(), np.full(len(instance.capacity), instance.slots)
    size = np.bincount(group, minlength=len(group))
    chosen = np.zeros(len(group), dtype=np.int64)
    for g in sorted(np.unique(group).tolist(), key=lambda g: -held[g]):
        able = [d for d in order if room[d] >= held[g] and free[d] >= size[g]]
        if not able:
            return None
        d = min(able, key=lambda d: float(room[d]))
        chosen[group == g] = d
        room[d] -= held[g]
        free[d] -= size[g]
    return [int(d) for d in chosen]


def _on_devices(instance: CallInstance, number: Integers, places: Integers) -> Integers | None:
    """A place for each node, removed ones on hosts or else with a neighbour (None: neither supports some node)."""
    hosts = np.flatnonzero(instance.host)
    place = np.where(number >= 0, places[np.maximum(number, 0)] if len(places) else -1, -1)
    undone = []
    for u in range(len(instance.unit_start) - 1):
        nodes = instance.unit_node[instance.unit_start[u] : instance.unit_start[u + 1]]
        if (number[nodes] >= 0).all():
            continue
        total = instance.time[hosts][:, nodes].sum(axis=1)
        if len(hosts) and np.isfinite(total.min()):
            place[nodes[number[nodes] < 0]] = hosts[int(np.argmin(total))] * instance.slots
        else:
            undone.append(nodes)
    while undone:
        waiting = []
        for nodes in undone:
            near = [p for p in _near(instance, place, nodes) if p >= 0]
            near = [p for p in near if np.isfinite(instance.time[p // instance.slots, nodes]).all()]
            if near:
                place[nodes[number[nodes] < 0]] = near[0]
            else:
                waiting.append(nodes)
        if len(waiting) == len(undone):
            return None
        undone = waiting
    return place


def _near(instance: CallInstance, place: Integers, nodes: Integers) -> list[int]:
    """The places of the producers and readers around some nodes."""
    near: set[int] = set()
    for v in nodes.tolist():
        inputs = instance.taken[instance.taken_start[v] : instance.taken_start[v + 1]]
        near.update(place[instance.producer[inputs]].tolist())
        for t in instance.made[instance.made_start[v] : instance.made_start[v + 1]].tolist():
            near.update(place[instance.reader[instance.read_start[t] : instance.read_start[t + 1]]].tolist())
    return sorted(near)


def _settled(instance: CallInstance, place: Integers, free: list[int]) -> float:
    """The latency after moving removed units to places of neighbours where that is better (``place`` is changed)."""
    value = latency_of(instance, place)
    for _ in range(_PASSES):
        before = value
        for u in free:
            nodes = instance.unit_node[instance.unit_start[u] : instance.unit_start[u + 1]]
            for p in _near(instance, place, nodes):
                old = place[nodes]
                place[nodes] = p
                changed = latency_of(instance, place)
                if changed < value:
                    value = changed
                else:
                    place[nodes] = old
        if value == before:
            break
    return value
