"""Compiled: simulated annealing over partitions of units; memory limits are soft, support is hard."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.partitions.load_kernel import move_unit, recompute

#: Cost of load below the target, as a share of that above it: a slight pull towards less load in total.
_PULL = 1e-3
#: Penalty for exceeding a device's memory: a constant, and a multiple of the relative excess.
_OVERFULL, _OVERFLOW = 0.05, 10.0


@kernel(no_cpython_wrapper=True)
def device_energy(load, target, memory_used, capacity):  # type: ignore[no-untyped-def]
    """The cost of a device: its load above the target, relative to the target, and a penalty for memory above its
    capacity.
    """
    cost = max(0.0, load - target) / target + _PULL * load / target
    if memory_used > capacity:
        cost += _OVERFULL + _OVERFLOW * (memory_used - capacity) / max(capacity, 1.0)
    return cost


@kernel(no_cpython_wrapper=True)
def _length(short, long):  # type: ignore[no-untyped-def]
    """A random number of units, at least 2 and usually small."""
    return 2 + int(-np.log(1.0 - np.random.random()) * (short if np.random.random() < 0.7 else long))


@kernel(no_cpython_wrapper=True)
def _segment(instance, state, u, most, moved):  # type: ignore[no-untyped-def]
    """Collect in ``moved`` unit ``u`` and the units of its device within the next ``most`` positions; returns their
    number.
    """
    count = 0
    for position in range(instance.rank[u], min(len(instance.order), instance.rank[u] + most)):
        v = instance.order[position]
        if state.device[v] == state.device[u]:
            moved[count] = v
            count += 1
    return count


@kernel()
def _cluster(instance, state, u, most, moved, mark, stamp):  # type: ignore[no-untyped-def]
    """Collect in ``moved`` up to ``most`` units connected with ``u`` on its device, breadth first; returns their
    number.
    """
    moved[0] = u
    mark[u] = stamp
    count, head = 1, 0
    while head < count < most:
        v = moved[head]
        head += 1
        for j in range(instance.touch_start[v], instance.touch_start[v + 1]):
            e = instance.touched[j]
            for i in range(instance.pin_start[e], instance.pin_start[e + 1]):
                w = instance.pin[i]
                if mark[w] != stamp and state.device[w] == state.device[u] and count < most:
                    mark[w] = stamp
                    moved[count] = w
                    count += 1
    return count


@kernel(no_cpython_wrapper=True)
def _partner(state, b, neighbour):  # type: ignore[no-untyped-def]
    """A unit of device ``b`` to exchange: ``neighbour`` with probability one half, else a random one (-1: none met)."""
    if neighbour >= 0 and np.random.random() < 0.5:
        return neighbour
    for _ in range(8):
        w = np.random.randint(len(state.device))
        if state.device[w] == b:
            return w
    return -1


@kernel(allocates=True)
def anneal(instance, state, best, best_value, margin, schedule):  # type: ignore[no-untyped-def]
    """Anneal from ``state``; returns the best value met, with its partition in ``best`` (u devices).

    A step moves one unit, a segment of the order or a connected cluster to another device, usually that of a
    neighbour, or exchanges two units.  The energy (dimensionless, as are the temperatures) is the sum over the
    devices of the load above a target, which lies a share ``margin`` below the best value.  ``best_value`` > 0 is
    the value that a partition must undercut to be kept; it need not be that of ``state``.
    """
    np.random.seed(schedule.seed)
    recompute(instance, state)
    units, devices = len(state.device), len(state.load)
    target = best_value * (1.0 - margin)
    temperature = schedule.hot
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.steps))
    moved, mark = np.empty(units, dtype=np.int64), np.full(units, -1, dtype=np.int64)
    for step in range(schedule.steps):
        temperature *= cooling
        u = np.random.randint(units)
        a, b, neighbour = state.device[u], np.random.randint(devices), -1
        if instance.touch_start[u + 1] > instance.touch_start[u] and np.random.random() < 0.8:
            e = instance.touched[np.random.randint(instance.touch_start[u], instance.touch_start[u + 1])]
            neighbour = instance.pin[np.random.randint(instance.pin_start[e], instance.pin_start[e + 1])]
            b = state.device[neighbour]
        if a == b:
            continue
        kind, count, partner = np.random.random(), 1, -1
        moved[0] = u
        if 0.4 <= kind < 0.55:
            partner = _partner(state, b, neighbour)
            if partner < 0 or not np.isfinite(instance.work[a, partner]):
                continue
        elif 0.55 <= kind < 0.8:
            count = _segment(instance, state, u, _length(4, 40), moved)
        elif kind >= 0.8:
            count = _cluster(instance, state, u, _length(4, 30), moved, mark, step)
        possible = True
        for i in range(count):
            possible = possible and np.isfinite(instance.work[b, moved[i]])
        if not possible:
            continue
        load_a, load_b, memory_a, memory_b = state.load[a], state.load[b], state.memory_used[a], state.memory_used[b]
        for i in range(count):
            move_unit(instance, state, moved[i], b)
        if partner >= 0:
            move_unit(instance, state, partner, a)
        change = (
            device_energy(state.load[a], target, state.memory_used[a], instance.capacity[a])
            + device_energy(state.load[b], target, state.memory_used[b], instance.capacity[b])
            - device_energy(load_a, target, memory_a, instance.capacity[a])
            - device_energy(load_b, target, memory_b, instance.capacity[b])
        )
        if change > 0.0 and np.random.random() >= np.exp(-change / temperature):
            if partner >= 0:
                move_unit(instance, state, partner, b)
            for i in range(count):
                move_unit(instance, state, moved[i], a)
            # Restore the previous values exactly: undoing the moves only restores them up to rounding.
            state.load[a], state.load[b] = load_a, load_b
            state.memory_used[a], state.memory_used[b] = memory_a, memory_b
        elif state.load[a] < best_value and state.load[b] < best_value:
            largest = state.load.max()
            if largest < best_value * (1.0 - 1e-12) and (state.memory_used <= instance.capacity).all():
                best_value = largest
                best[:] = state.device
                if largest <= 0.0:
                    return best_value  # nothing is less
                target = min(target, largest * (1.0 - margin))
    return best_value
