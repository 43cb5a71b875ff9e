"""Compiled: simulated annealing over one set of units, for the most valuable one whose load is within a limit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats, Integers


class Tensors(NamedTuple):
    """u units on one class of devices, and the e hyperedges between them.

    ``work``  u seconds;  ``cost``  e seconds where a set has some units of a hyperedge and not all
    ``touch_start``, ``touched``   the hyperedges of each unit;  ``pin_start``, ``pin``   the units of each hyperedge
    """

    work: Floats
    cost: Floats
    touch_start: Integers
    touched: Integers
    pin_start: Integers
    pin: Integers


@kernel(no_cpython_wrapper=True)
def _flip(tensors, inside, held, u):  # type: ignore[no-untyped-def]
    """Put unit ``u`` in or out; the change of the load."""
    enters = not inside[u]
    change = tensors.work[u] if enters else -tensors.work[u]
    for j in range(tensors.touch_start[u], tensors.touch_start[u + 1]):
        e = tensors.touched[j]
        size = tensors.pin_start[e + 1] - tensors.pin_start[e]
        before = held[e]
        held[e] += 1 if enters else -1
        if 0 < held[e] < size and not 0 < before < size:
            change += tensors.cost[e]
        elif 0 < before < size and not 0 < held[e] < size:
            change -= tensors.cost[e]
    inside[u] = enters
    return change


@kernel(allocates=True)
def anneal_set(tensors, price, limit, penalty, steps, seed, inside, best):  # type: ignore[no-untyped-def]
    """Anneal from ``inside`` (u flags); the value of the best set whose load is within ``limit``, which is in ``best``.

    The energy is the load beyond the limit times ``penalty``, less the prices of the units.  A step puts a unit in or
    out, usually one that shares a tensor with a member, or exchanges two.
    """
    np.random.seed(seed)
    units, edges = len(tensors.work), len(tensors.cost)
    held = np.zeros(edges, dtype=np.int64)
    load, value = 0.0, 0.0
    for u in range(units):
        if inside[u]:
            inside[u] = False
            load += _flip(tensors, inside, held, u)
            value += price[u]
    most = 0.0
    for u in range(units):
        best[u] = False
        most = max(most, abs(price[u]))
    best_value = 0.0
    hot, cold = 0.25 * most, 0.01 * most
    cooling = (cold / hot) ** (1.0 / max(1, steps)) if hot > 0.0 else 1.0
    temperature = hot
    for _ in range(steps):
        temperature *= cooling
        u = np.random.randint(units)
        if tensors.touch_start[u + 1] > tensors.touch_start[u] and np.random.random() < 0.7:
            # A neighbour of a member, if one is met.
            for _ in range(4):
                if inside[u]:
                    break
                u = np.random.randint(units)
            if tensors.touch_start[u + 1] > tensors.touch_start[u]:
                e = tensors.touched[np.random.randint(tensors.touch_start[u], tensors.touch_start[u + 1])]
                u = tensors.pin[np.random.randint(tensors.pin_start[e], tensors.pin_start[e + 1])]
        if not np.isfinite(tensors.work[u]):
            continue
        partner = -1
        if np.random.random() < 0.3:
            partner = np.random.randint(units)
            if partner == u or inside[partner] == inside[u] or not np.isfinite(tensors.work[partner]):
                partner = -1
        before = load
        load += _flip(tensors, inside, held, u)
        gain = price[u] if inside[u] else -price[u]
        if partner >= 0:
            load += _flip(tensors, inside, held, partner)
            gain += price[partner] if inside[partner] else -price[partner]
        change = penalty * (max(0.0, load - limit) - max(0.0, before - limit)) - gain
        if change > 0.0 and np.random.random() >= np.exp(-change / temperature):
            _flip(tensors, inside, held, u)
            if partner >= 0:
                _flip(tensors, inside, held, partner)
            load = before
            continue
        value += gain
        if load <= limit and value > best_value:
            best_value = value
            best[:] = inside
    return best_value


@kernel()
def load_of(tensors, inside):  # type: ignore[no-untyped-def]
    """The load of a set, added up anew."""
    load = 0.0
    for u in range(len(tensors.work)):
        if inside[u]:
            load += tensors.work[u]
    for e in range(len(tensors.cost)):
        held = 0
        for j in range(tensors.pin_start[e], tensors.pin_start[e + 1]):
            held += 1 if inside[tensors.pin[j]] else 0
        if 0 < held < tensors.pin_start[e + 1] - tensors.pin_start[e]:
            load += tensors.cost[e]
    return load
