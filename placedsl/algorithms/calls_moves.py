"""Annealing over the places of nodes, compiled and cached: which nodes move together, and where to.

Every step is evaluated exactly and anew; memory, support and circles are hard, so a step that breaks one is not taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.algorithms.calls_kernel import evaluate
from placedsl.graph.graph import Integers


class Schedule(NamedTuple):
    """One annealing run: its steps, the first and the last temperature relative to the value, and the seed."""

    steps: int
    hot: float
    cold: float
    seed: int


class Chosen(NamedTuple):
    """The nodes of one step: the first ``number[0]`` of ``node``; ``mark[v]`` is the step's number for these."""

    node: Integers
    mark: Integers
    number: Integers


@njit(cache=True)
def _add(calls, chosen, v, step, apart):  # type: ignore[no-untyped-def]
    """Choose a node; with ``apart`` (the device changes) all of its unit."""
    if chosen.mark[v] == step:
        return
    if not apart:
        chosen.mark[v] = step
        chosen.node[chosen.number[0]] = v
        chosen.number[0] += 1
        return
    u = calls.unit[v]
    for i in range(calls.unit_start[u], calls.unit_start[u + 1]):
        w = calls.unit_node[i]
        chosen.mark[w] = step
        chosen.node[chosen.number[0]] = w
        chosen.number[0] += 1


@njit(cache=True)
def _spread(calls, place, chosen, step, apart, up, down, most):  # type: ignore[no-untyped-def]
    """Go on from the chosen nodes to makers (``up``) and readers (``down``) at the same place, until ``most``."""
    here = place[chosen.node[0]]
    head = 0
    while head < chosen.number[0] and chosen.number[0] < most:
        v = chosen.node[head]
        head += 1
        if place[v] != here:
            continue
        if up:
            for i in range(calls.taken_start[v], calls.taken_start[v + 1]):
                w = calls.producer[calls.taken[i]]
                if place[w] == here:
                    _add(calls, chosen, w, step, apart)
        if down:
            for i in range(calls.made_start[v], calls.made_start[v + 1]):
                t = calls.made[i]
                for j in range(calls.read_start[t], calls.read_start[t + 1]):
                    w = calls.reader[j]
                    if place[w] == here:
                        _add(calls, chosen, w, step, apart)


@njit(cache=True)
def _hangers(calls, place, chosen, step, apart):  # type: ignore[no-untyped-def]
    """Choose what hangs on the chosen nodes at their place: makers that read nothing, readers that make nothing."""
    here = place[chosen.node[0]]
    for k in range(chosen.number[0]):
        v = chosen.node[k]
        for i in range(calls.taken_start[v], calls.taken_start[v + 1]):
            w = calls.producer[calls.taken[i]]
            if place[w] == here and calls.taken_start[w] == calls.taken_start[w + 1]:
                _add(calls, chosen, w, step, apart)
        for i in range(calls.made_start[v], calls.made_start[v + 1]):
            t = calls.made[i]
            for j in range(calls.read_start[t], calls.read_start[t + 1]):
                w = calls.reader[j]
                if place[w] == here and calls.made_start[w] == calls.made_start[w + 1]:
                    _add(calls, chosen, w, step, apart)


@njit(cache=True)
def _neighbour(calls, v):  # type: ignore[no-untyped-def]
    """A random maker of what node ``v`` reads or reader of what it makes (-1: none met)."""
    reads = calls.taken_start[v + 1] - calls.taken_start[v]
    makes = calls.made_start[v + 1] - calls.made_start[v]
    if reads + makes == 0:
        return -1
    k = np.random.randint(reads + makes)
    if k < reads:
        return calls.producer[calls.taken[calls.taken_start[v] + k]]
    t = calls.made[calls.made_start[v] + k - reads]
    readers = calls.read_start[t + 1] - calls.read_start[t]
    return calls.reader[calls.read_start[t] + np.random.randint(readers)] if readers else -1


@njit(cache=True)
def _target(calls, place, used, v):  # type: ignore[no-untyped-def]
    """A place to go to, from that of node ``v``: a neighbour's mostly, else any; a host now and then."""
    q, devices = calls.pieces, len(calls.capacity)
    kind = np.random.random()
    if kind < 0.6:
        w = _neighbour(calls, v)
        if w >= 0:
            return place[w]
    if kind < 0.8:
        d = np.random.randint(devices)
        for _ in range(devices):
            if calls.host[d]:
                return d * q
            d = (d + 1) % devices
    if kind < 0.9:
        # Somewhere empty, if there is such a place.
        p = np.random.randint(devices * q)
        for _ in range(devices * q):
            if used[p] == 0 and not calls.host[p // q]:
                return p
            p = (p + 1) % (devices * q)
    p = np.random.randint(devices * q)
    return p // q * q if calls.host[p // q] else p


@njit(cache=True)
def _choose(calls, place, chosen, u, v, apart, step):  # type: ignore[no-untyped-def]
    """The nodes that leave with node ``v``: itself, what comes before or after it, a connected part, or all."""
    chosen.number[0] = 0
    kind = np.random.random()
    _add(calls, chosen, v, step, apart)
    few = 2 + int(-np.log(1.0 - np.random.random()) * (3.0 if np.random.random() < 0.5 else 15.0))
    nodes = len(place)
    if kind < 0.2:
        return
    if kind < 0.45:
        _spread(calls, place, chosen, step, apart, True, False, nodes)
    elif kind < 0.7:
        _spread(calls, place, chosen, step, apart, False, True, nodes)
    elif kind < 0.77:
        _spread(calls, place, chosen, step, apart, True, False, few)
    elif kind < 0.84:
        _spread(calls, place, chosen, step, apart, False, True, few)
    elif kind < 0.94:
        _spread(calls, place, chosen, step, apart, True, True, few)
    else:
        for w in range(nodes):
            if place[w] == u:
                _add(calls, chosen, w, step, apart)
    _hangers(calls, place, chosen, step, apart)


@njit(cache=True)
def _occupant(place, p):  # type: ignore[no-untyped-def]
    """A random node at place ``p`` that may make room there (-1: none met)."""
    for _ in range(16):
        w = np.random.randint(len(place))
        if place[w] == p:
            return w
    return -1


@njit(cache=True)
def _exchange(calls, place, chosen, a, b, step):  # type: ignore[no-untyped-def]
    """Choose everything on two devices."""
    chosen.number[0] = 0
    for w in range(len(place)):
        d = place[w] // calls.pieces
        if d in (a, b):
            chosen.mark[w] = step
            chosen.node[chosen.number[0]] = w
            chosen.number[0] += 1


@njit(cache=True)
def _shift(calls, place, held, used, v, p):  # type: ignore[no-untyped-def]
    """Take a node to another place."""
    a = place[v]
    held[a // calls.pieces] -= calls.memory[v]
    held[p // calls.pieces] += calls.memory[v]
    used[a] -= 1
    used[p] += 1
    place[v] = p


@njit(cache=True)
def anneal(calls, place, best, best_value, room, unlike, schedule):  # type: ignore[no-untyped-def]
    """Move nodes about from ``place``, which is feasible; returns the best value met, with its places in ``best``.

    ``unlike``: there are devices that differ, so that exchanging what they hold can make a difference.
    """
    np.random.seed(schedule.seed)
    q, nodes, devices = calls.pieces, len(place), len(calls.capacity)
    held, used = np.zeros(devices), np.zeros(devices * q, dtype=np.int64)
    for v in range(nodes):
        held[place[v] // q] += calls.memory[v]
        used[place[v]] += 1
    chosen = Chosen(
        np.empty(nodes, dtype=np.int64), np.full(nodes, -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    )  # fmt: skip
    was, goes = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    value = evaluate(calls, place, room)
    temperature = schedule.hot
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.steps))
    for step in range(schedule.steps):
        temperature *= cooling
        v = np.random.randint(nodes)
        p = place[v]
        b = _target(calls, place, used, v)
        if b == p:
            continue
        x, y = p // q, b // q
        exchanged = unlike and x != y and np.random.random() < 0.05
        if exchanged:
            _exchange(calls, place, chosen, x, y, step)
        else:
            _choose(calls, place, chosen, p, v, x != y, step)
        away = chosen.number[0]
        if not exchanged and np.random.random() < 0.15:
            w = _occupant(place, b)
            if w >= 0:
                _add(calls, chosen, w, step, x != y)
        count = chosen.number[0]
        # What reaches a device from another may come apart into two of its pieces.
        last, later = nodes, b
        if q > 1 and x != y and not calls.host[y] and np.random.random() < 0.3:
            last, later = calls.rank[chosen.node[np.random.randint(away)]], y * q + np.random.randint(b - y * q, q)
        possible = True
        for i in range(count):
            w = chosen.node[i]
            was[i] = place[w]
            goes[i] = p if i >= away else later if calls.rank[w] > last else b
            if exchanged:
                d = y if place[w] // q == x else x
                goes[i] = d * q if calls.host[d] else d * q + place[w] % q
            possible = possible and np.isfinite(calls.time[goes[i] // q, w])
        if not possible:
            continue
        held_x, held_y = held[x], held[y]
        for i in range(count):
            _shift(calls, place, held, used, chosen.node[i], goes[i])
        found = np.inf
        if held[x] <= calls.capacity[x] and held[y] <= calls.capacity[y]:
            found = evaluate(calls, place, room)
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
                _shift(calls, place, held, used, chosen.node[i], was[i])
            # As they were, to the last bit.
            held[x], held[y] = held_x, held_y
    return best_value
