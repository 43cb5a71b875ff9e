"""Compiled: simulated annealing over the places of nodes: which nodes move together, and where to.

Every step is evaluated exactly and from scratch.  Memory, support and cycles are hard constraints: a step that violates
one is not taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.subgraph_calls.latency_kernel import evaluate
from placedsl.arrays import Integers


class ChosenNodes(NamedTuple):
    """The nodes of one step: the first ``number[0]`` entries of ``node``; ``mark[v]`` is the number of the step for
    these.
    """

    node: Integers
    mark: Integers
    number: Integers


@kernel()
def _add(instance, chosen, v, step, apart):  # type: ignore[no-untyped-def]
    """Choose a node, together with its whole unit if ``apart`` (the device changes)."""
    if chosen.mark[v] == step:
        return
    if not apart:
        chosen.mark[v] = step
        chosen.node[chosen.number[0]] = v
        chosen.number[0] += 1
        return
    u = instance.unit[v]
    for i in range(instance.unit_start[u], instance.unit_start[u + 1]):
        w = instance.unit_node[i]
        chosen.mark[w] = step
        chosen.node[chosen.number[0]] = w
        chosen.number[0] += 1


@kernel(no_cpython_wrapper=True)
def _add_reachable(instance, place, chosen, step, apart, up, down, most):  # type: ignore[no-untyped-def]
    """Extend the chosen nodes to producers (``up``) and readers (``down``) at the same place, up to ``most``."""
    here = place[chosen.node[0]]
    head = 0
    while head < chosen.number[0] and chosen.number[0] < most:
        v = chosen.node[head]
        head += 1
        if place[v] != here:
            continue
        if up:
            for i in range(instance.taken_start[v], instance.taken_start[v + 1]):
                w = instance.producer[instance.taken[i]]
                if place[w] == here:
                    _add(instance, chosen, w, step, apart)
        if down:
            for i in range(instance.made_start[v], instance.made_start[v + 1]):
                t = instance.made[i]
                for j in range(instance.read_start[t], instance.read_start[t + 1]):
                    w = instance.reader[j]
                    if place[w] == here:
                        _add(instance, chosen, w, step, apart)


@kernel(no_cpython_wrapper=True)
def _add_leaves(instance, place, chosen, step, apart):  # type: ignore[no-untyped-def]
    """Choose the neighbours of the chosen nodes at their place that read nothing or make nothing."""
    here = place[chosen.node[0]]
    for k in range(chosen.number[0]):
        v = chosen.node[k]
        for i in range(instance.taken_start[v], instance.taken_start[v + 1]):
            w = instance.producer[instance.taken[i]]
            if place[w] == here and instance.taken_start[w] == instance.taken_start[w + 1]:
                _add(instance, chosen, w, step, apart)
        for i in range(instance.made_start[v], instance.made_start[v + 1]):
            t = instance.made[i]
            for j in range(instance.read_start[t], instance.read_start[t + 1]):
                w = instance.reader[j]
                if place[w] == here and instance.made_start[w] == instance.made_start[w + 1]:
                    _add(instance, chosen, w, step, apart)


@kernel(no_cpython_wrapper=True)
def _neighbour(instance, v):  # type: ignore[no-untyped-def]
    """A random producer of an input of node ``v``, or reader of an output (-1: none met)."""
    reads = instance.taken_start[v + 1] - instance.taken_start[v]
    makes = instance.made_start[v + 1] - instance.made_start[v]
    if reads + makes == 0:
        return -1
    k = np.random.randint(reads + makes)
    if k < reads:
        return instance.producer[instance.taken[instance.taken_start[v] + k]]
    t = instance.made[instance.made_start[v] + k - reads]
    readers = instance.read_start[t + 1] - instance.read_start[t]
    return instance.reader[instance.read_start[t] + np.random.randint(readers)] if readers else -1


@kernel(no_cpython_wrapper=True)
def _target(instance, place, used, v):  # type: ignore[no-untyped-def]
    """A place to move to, for node ``v``: usually that of a neighbour, sometimes a host, an empty or any other one."""
    q, devices = instance.slots, len(instance.capacity)
    kind = np.random.random()
    if kind < 0.6:
        w = _neighbour(instance, v)
        if w >= 0:
            return place[w]
    if kind < 0.8:
        d = np.random.randint(devices)
        for _ in range(devices):
            if instance.host[d]:
                return d * q
            d = (d + 1) % devices
    if kind < 0.9:
        # An empty place of an accelerator, if there is one.
        p = np.random.randint(devices * q)
        for _ in range(devices * q):
            if used[p] == 0 and not instance.host[p // q]:
                return p
            p = (p + 1) % (devices * q)
    p = np.random.randint(devices * q)
    return p // q * q if instance.host[p // q] else p


@kernel(no_cpython_wrapper=True)
def _choose(instance, place, chosen, u, v, apart, step):  # type: ignore[no-untyped-def]
    """The nodes that move with node ``v``: itself, its predecessors or successors, a connected part, or all at its
    place.
    """
    chosen.number[0] = 0
    kind = np.random.random()
    _add(instance, chosen, v, step, apart)
    few = 2 + int(-np.log(1.0 - np.random.random()) * (3.0 if np.random.random() < 0.5 else 15.0))
    nodes = len(place)
    if kind < 0.2:
        return
    if kind < 0.45:
        _add_reachable(instance, place, chosen, step, apart, True, False, nodes)
    elif kind < 0.7:
        _add_reachable(instance, place, chosen, step, apart, False, True, nodes)
    elif kind < 0.77:
        _add_reachable(instance, place, chosen, step, apart, True, False, few)
    elif kind < 0.84:
        _add_reachable(instance, place, chosen, step, apart, False, True, few)
    elif kind < 0.94:
        _add_reachable(instance, place, chosen, step, apart, True, True, few)
    else:
        for w in range(nodes):
            if place[w] == u:
                _add(instance, chosen, w, step, apart)
    _add_leaves(instance, place, chosen, step, apart)


@kernel(no_cpython_wrapper=True)
def _occupant(place, p):  # type: ignore[no-untyped-def]
    """A random node at place ``p``, to be exchanged (-1: none met)."""
    for _ in range(16):
        w = np.random.randint(len(place))
        if place[w] == p:
            return w
    return -1


@kernel(no_cpython_wrapper=True)
def _exchange(instance, place, chosen, a, b, step):  # type: ignore[no-untyped-def]
    """Choose all nodes on two devices."""
    chosen.number[0] = 0
    for w in range(len(place)):
        d = place[w] // instance.slots
        if d in (a, b):
            chosen.mark[w] = step
            chosen.node[chosen.number[0]] = w
            chosen.number[0] += 1


@kernel(no_cpython_wrapper=True)
def _move(instance, place, held, used, v, p):  # type: ignore[no-untyped-def]
    """Move a node to another place."""
    a = place[v]
    held[a // instance.slots] -= instance.memory[v]
    held[p // instance.slots] += instance.memory[v]
    used[a] -= 1
    used[p] += 1
    place[v] = p


# Longer than 80 lines: one step, whose parts share most of its variables.
@kernel(allocates=True)
def anneal(instance, place, best, best_value, scratch, unequal, schedule):  # type: ignore[no-untyped-def]
    """Anneal from the feasible places ``place`` (n); returns the best latency met, with its places in ``best`` (n).

    The energy is the latency; temperatures are shares of it.  ``unequal``: some accelerators differ, so that exchanging
    the nodes of two can make a difference.
    """
    np.random.seed(schedule.seed)
    q, nodes, devices = instance.slots, len(place), len(instance.capacity)
    held, used = np.zeros(devices), np.zeros(devices * q, dtype=np.int64)
    for v in range(nodes):
        held[place[v] // q] += instance.memory[v]
        used[place[v]] += 1
    chosen = ChosenNodes(
        np.empty(nodes, dtype=np.int64), np.full(nodes, -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    )  # fmt: skip
    was, goes = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    value = evaluate(instance, place, scratch)
    temperature = schedule.hot
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.steps))
    for step in range(schedule.steps):
        temperature *= cooling
        v = np.random.randint(nodes)
        p = place[v]
        b = _target(instance, place, used, v)
        if b == p:
            continue
        x, y = p // q, b // q
        exchanged = unequal and x != y and np.random.random() < 0.05
        if exchanged:
            _exchange(instance, place, chosen, x, y, step)
        else:
            _choose(instance, place, chosen, p, v, x != y, step)
        away = chosen.number[0]
        if not exchanged and np.random.random() < 0.15:
            w = _occupant(place, b)
            if w >= 0:
                _add(instance, chosen, w, step, x != y)
        count = chosen.number[0]
        # Nodes that reach another device may be divided between two of its slots.
        last, later = nodes, b
        if q > 1 and x != y and not instance.host[y] and np.random.random() < 0.3:
            last, later = instance.rank[chosen.node[np.random.randint(away)]], y * q + np.random.randint(b - y * q, q)
        possible = True
        for i in range(count):
            w = chosen.node[i]
            was[i] = place[w]
            goes[i] = p if i >= away else later if instance.rank[w] > last else b
            if exchanged:
                d = y if place[w] // q == x else x
                goes[i] = d * q if instance.host[d] else d * q + place[w] % q
            possible = possible and np.isfinite(instance.time[goes[i] // q, w])
        if not possible:
            continue
        held_x, held_y = held[x], held[y]
        for i in range(count):
            _move(instance, place, held, used, chosen.node[i], goes[i])
        found = np.inf
        if held[x] <= instance.capacity[x] and held[y] <= instance.capacity[y]:
            found = evaluate(instance, place, scratch)
        change = found - value
        if change <= 0.0 or (
            np.isfinite(found) and np.random.random() < np.exp(-change / (temperature * max(value, 1e-300)))
        ):
            value = found
            if value < best_value * (1.0 - 1e-12):
                best_value = value
                best[:] = place
        else:
            for i in range(count):
                _move(instance, place, held, used, chosen.node[i], was[i])
            # Restore the previous values exactly.
            held[x], held[y] = held_x, held_y
    return best_value
