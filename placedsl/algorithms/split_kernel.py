"""The kernels of the search for splits: loads that follow single moves exactly, and annealing, compiled and cached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.graph.graph import Floats, Integers


class Split(NamedTuple):
    """What is to be split: u units, e edges (tensors between units) and D devices, as arrays for the kernels.

    ``work``        D x u running times (inf: not supported)
    ``memory``      u sizes; ``capacity``: D limits (inf: none)
    ``touch_start``, ``touched``   the edges of unit i are ``touched[touch_start[i]:touch_start[i + 1]]``
    ``pin_start``, ``pin``         the units of edge i are ``pin[pin_start[i]:pin_start[i + 1]]``
    ``transfer``    D x e times that a device pays which holds some but not all units of an edge
    ``order``       the units by where they stand in the graph; ``rank``: where each unit is in that order
    """

    work: Floats
    memory: Floats
    capacity: Floats
    touch_start: Integers
    touched: Integers
    pin_start: Integers
    pin: Integers
    transfer: Floats
    order: Integers
    rank: Integers


class State(NamedTuple):
    """A split and what follows from it: the device of each unit, e x D counts of an edge's units, loads, memory."""

    device: Integers
    inside: Integers
    load: Floats
    held: Floats


class Schedule(NamedTuple):
    """One annealing run: how many steps, the first and the last temperature, how far below the best value the loads
    are to come (as a share of it), and the seed of the random numbers."""

    steps: int
    hot: float
    cold: float
    below: float
    seed: int


#: What a load below the target costs, as a share of what one above it does: a slight pull towards less in all.
_PULL = 1e-3
#: What a device costs whose memory is exceeded: a constant, and so much for each time its capacity is exceeded by.
_OVERFULL, _OVERFLOW = 0.05, 10.0


@njit(cache=True)
def fill(split, state):  # type: ignore[no-untyped-def]
    """Compute counts, loads and memory from the devices alone."""
    state.inside[:] = 0
    state.load[:] = 0.0
    state.held[:] = 0.0
    for u in range(len(state.device)):
        d = state.device[u]
        state.load[d] += split.work[d, u]
        state.held[d] += split.memory[u]
    for e in range(len(split.pin_start) - 1):
        for j in range(split.pin_start[e], split.pin_start[e + 1]):
            state.inside[e, state.device[split.pin[j]]] += 1
        size = split.pin_start[e + 1] - split.pin_start[e]
        for d in range(len(state.load)):
            if 0 < state.inside[e, d] < size:
                state.load[d] += split.transfer[d, e]


@njit(cache=True)
def shift(split, state, u, b):  # type: ignore[no-untyped-def]
    """Take unit ``u`` to device ``b``, which is another one; only these two devices' loads change."""
    a = state.device[u]
    load_a, load_b = state.load[a] - split.work[a, u], state.load[b] + split.work[b, u]
    state.held[a] -= split.memory[u]
    state.held[b] += split.memory[u]
    state.device[u] = b
    for j in range(split.touch_start[u], split.touch_start[u + 1]):
        e = split.touched[j]
        size = split.pin_start[e + 1] - split.pin_start[e]
        at_a, at_b = state.inside[e, a], state.inside[e, b]
        if at_a == size:
            load_a += split.transfer[a, e]
        elif at_a == 1:
            load_a -= split.transfer[a, e]
        if at_b == 0:
            load_b += split.transfer[b, e]
        elif at_b == size - 1:
            load_b -= split.transfer[b, e]
        state.inside[e, a] = at_a - 1
        state.inside[e, b] = at_b + 1
    state.load[a], state.load[b] = load_a, load_b


@njit(cache=True)
def _energy(load, target, held, capacity):  # type: ignore[no-untyped-def]
    """What a device costs: how far its load is above the target, relatively, and its memory above its capacity."""
    cost = max(0.0, load - target) / target + _PULL * load / target
    if held > capacity:
        cost += _OVERFULL + _OVERFLOW * (held - capacity) / max(capacity, 1.0)
    return cost


@njit(cache=True)
def _length(short, long):  # type: ignore[no-untyped-def]
    """A random number of units, mostly few."""
    return 2 + int(-np.log(1.0 - np.random.random()) * (short if np.random.random() < 0.7 else long))


@njit(cache=True)
def _segment(split, state, u, most, moved):  # type: ignore[no-untyped-def]
    """Unit ``u`` and those of its device that follow within ``most`` places of the order; how many."""
    count = 0
    for position in range(split.rank[u], min(len(split.order), split.rank[u] + most)):
        v = split.order[position]
        if state.device[v] == state.device[u]:
            moved[count] = v
            count += 1
    return count


@njit(cache=True)
def _cluster(split, state, u, most, moved, mark, stamp):  # type: ignore[no-untyped-def]
    """Unit ``u`` and the nearest of its device that it is connected with inside of it, at most ``most``; how many."""
    moved[0] = u
    mark[u] = stamp
    count, head = 1, 0
    while head < count < most:
        v = moved[head]
        head += 1
        for j in range(split.touch_start[v], split.touch_start[v + 1]):
            e = split.touched[j]
            for i in range(split.pin_start[e], split.pin_start[e + 1]):
                w = split.pin[i]
                if mark[w] != stamp and state.device[w] == state.device[u] and count < most:
                    mark[w] = stamp
                    moved[count] = w
                    count += 1
    return count


@njit(cache=True)
def _partner(state, b, neighbour):  # type: ignore[no-untyped-def]
    """A unit of device ``b``: in half of the cases the neighbour, if there is one, else any (-1: none met)."""
    if neighbour >= 0 and np.random.random() < 0.5:
        return neighbour
    for _ in range(8):
        w = np.random.randint(len(state.device))
        if state.device[w] == b:
            return w
    return -1


@njit(cache=True)
def anneal(split, state, best, best_value, schedule):  # type: ignore[no-untyped-def]
    """Move units about from ``state``; returns the best value met, with its split in ``best``.

    ``best_value`` (more than zero) is what a split must undercut to be kept; it need not be that of ``state``.  What is
    minimised is how far loads are above a target below the best value.  A step takes one unit, a segment of the order
    or a connected cluster to another device, mostly that of a neighbour, or exchanges two units.
    """
    np.random.seed(schedule.seed)
    fill(split, state)
    units, devices = len(state.device), len(state.load)
    target = best_value * (1.0 - schedule.below)
    temperature = schedule.hot
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.steps))
    moved, mark = np.empty(units, dtype=np.int64), np.full(units, -1, dtype=np.int64)
    for step in range(schedule.steps):
        temperature *= cooling
        u = np.random.randint(units)
        a, b, neighbour = state.device[u], np.random.randint(devices), -1
        if split.touch_start[u + 1] > split.touch_start[u] and np.random.random() < 0.8:
            e = split.touched[np.random.randint(split.touch_start[u], split.touch_start[u + 1])]
            neighbour = split.pin[np.random.randint(split.pin_start[e], split.pin_start[e + 1])]
            b = state.device[neighbour]
        if a == b:
            continue
        kind, count, partner = np.random.random(), 1, -1
        moved[0] = u
        if 0.4 <= kind < 0.55:
            partner = _partner(state, b, neighbour)
            if partner < 0 or not np.isfinite(split.work[a, partner]):
                continue
        elif 0.55 <= kind < 0.8:
            count = _segment(split, state, u, _length(4, 40), moved)
        elif kind >= 0.8:
            count = _cluster(split, state, u, _length(4, 30), moved, mark, step)
        possible = True
        for i in range(count):
            possible = possible and np.isfinite(split.work[b, moved[i]])
        if not possible:
            continue
        load_a, load_b, held_a, held_b = state.load[a], state.load[b], state.held[a], state.held[b]
        for i in range(count):
            shift(split, state, moved[i], b)
        if partner >= 0:
            shift(split, state, partner, a)
        change = (
            _energy(state.load[a], target, state.held[a], split.capacity[a])
            + _energy(state.load[b], target, state.held[b], split.capacity[b])
            - _energy(load_a, target, held_a, split.capacity[a])
            - _energy(load_b, target, held_b, split.capacity[b])
        )
        if change > 0.0 and np.random.random() >= np.exp(-change / temperature):
            if partner >= 0:
                shift(split, state, partner, b)
            for i in range(count):
                shift(split, state, moved[i], a)
            # As they were, to the last bit.
            state.load[a], state.load[b], state.held[a], state.held[b] = load_a, load_b, held_a, held_b
        elif state.load[a] < best_value and state.load[b] < best_value:
            largest = state.load.max()
            if largest < best_value * (1.0 - 1e-12) and (state.held <= split.capacity).all():
                best_value = largest
                best[:] = state.device
                target = min(target, largest * (1.0 - schedule.below))
    return best_value
