"""Compiled: annealing over partitions whose tensors go from device to device; either end pays for the way between them.

Memory limits are soft, support is hard, as in :mod:`.annealing_kernel`.  The state is
:class:`.load_kernel.PartitionState`, with tensors in the place of hyperedges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.partitions.annealing_kernel import device_energy
from placedsl.algorithms.partitions.load_kernel import streamed
from placedsl.arrays import Booleans, Floats, Integers


class RoutedInstance(NamedTuple):
    """What is partitioned: u units and t tensors over D devices.

    ``work``      D x u running times in seconds (inf: not supported)
    ``memory``    u sizes in bytes; ``capacity``: D limits in bytes (inf: none)
    ``touch_start``, ``touched``   the tensors of unit i are ``touched[touch_start[i]:touch_start[i + 1]]``
    ``pin_start``, ``pin``         the units of tensor i, the one that makes it first
    ``way``       t x D x D seconds from device to device
    ``pays``      D: whether the device pays for transfers
    ``at_once``   whether a tensor is sent to all its readers at once
    ``per_byte``, ``room``   as in :class:`.load_kernel.PartitionInstance`
    """

    work: Floats
    memory: Floats
    capacity: Floats
    touch_start: Integers
    touched: Integers
    pin_start: Integers
    pin: Integers
    way: Floats
    pays: Booleans
    at_once: bool
    per_byte: Floats
    room: Floats


@kernel(no_cpython_wrapper=True)
def _add_transfers(instance, state, tensor, sign):  # type: ignore[no-untyped-def]
    """Add what a tensor costs the devices, or take it away."""
    home = state.device[instance.pin[instance.pin_start[tensor]]]
    sent = 0.0
    for d in range(len(state.load)):
        if d != home and state.pins_on_device[tensor, d] > 0:
            taken = instance.way[tensor, home, d]
            sent = max(sent, taken) if instance.at_once else sent + taken
            if instance.pays[d]:
                state.load[d] += sign * taken
    if instance.pays[home]:
        state.load[home] += sign * sent


@kernel()
def recompute_routed(instance, state):  # type: ignore[no-untyped-def]
    """Compute counts, loads and memory from ``state.device`` alone."""
    state.pins_on_device[:] = 0
    state.load[:] = 0.0
    state.memory_used[:] = 0.0
    state.held[:] = 0
    for u in range(len(state.device)):
        d = state.device[u]
        state.load[d] += instance.work[d, u]
        state.memory_used[d] += instance.memory[u]
        state.held[d] += 1
    for d in range(len(state.load)):
        state.load[d] += streamed(instance, d, state.memory_used[d], state.held[d])
    for t in range(len(instance.pin_start) - 1):
        for j in range(instance.pin_start[t], instance.pin_start[t + 1]):
            state.pins_on_device[t, state.device[instance.pin[j]]] += 1
        _add_transfers(instance, state, t, 1.0)


@kernel(no_cpython_wrapper=True)
def _move(instance, state, u, b):  # type: ignore[no-untyped-def]
    """Move unit ``u`` to device ``b``; loads of other devices may change as well."""
    a = state.device[u]
    for j in range(instance.touch_start[u], instance.touch_start[u + 1]):
        _add_transfers(instance, state, instance.touched[j], -1.0)
    state.device[u] = b
    for j in range(instance.touch_start[u], instance.touch_start[u + 1]):
        t = instance.touched[j]
        state.pins_on_device[t, a] -= 1
        state.pins_on_device[t, b] += 1
        _add_transfers(instance, state, t, 1.0)
    before_a = streamed(instance, a, state.memory_used[a], state.held[a])
    before_b = streamed(instance, b, state.memory_used[b], state.held[b])
    state.memory_used[a] -= instance.memory[u]
    state.memory_used[b] += instance.memory[u]
    state.held[a] -= 1
    state.held[b] += 1
    state.load[a] += streamed(instance, a, state.memory_used[a], state.held[a]) - before_a - instance.work[a, u]
    state.load[b] += streamed(instance, b, state.memory_used[b], state.held[b]) - before_b + instance.work[b, u]


@kernel(no_cpython_wrapper=True)
def _energy(instance, state, target):  # type: ignore[no-untyped-def]
    """The sum of the costs of the devices."""
    cost = 0.0
    for d in range(len(state.load)):
        cost += device_energy(state.load[d], target, state.memory_used[d], instance.capacity[d])
    return cost


@kernel(allocates=True)
def anneal_routed(instance, state, best, best_value, margin, schedule):  # type: ignore[no-untyped-def]
    """Anneal from ``state``; returns the best value met, with its partition in ``best`` (u devices).

    A step moves a unit to another device, mostly that of a neighbour, with the neighbours that share its device one
    time in three, or exchanges it with a unit there.  Energy and temperatures are dimensionless.
    """
    np.random.seed(schedule.seed)
    recompute_routed(instance, state)
    units, devices = len(state.device), len(state.load)
    target = best_value * (1.0 - margin)
    temperature = schedule.hot
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.steps))
    energy = _energy(instance, state, target)
    moved, before = np.empty(units, dtype=np.int64), np.empty(units, dtype=np.int64)
    for _ in range(schedule.steps):
        temperature *= cooling
        u = np.random.randint(units)
        a, b, neighbour = state.device[u], np.random.randint(devices), -1
        if instance.touch_start[u + 1] > instance.touch_start[u] and np.random.random() < 0.8:
            t = instance.touched[np.random.randint(instance.touch_start[u], instance.touch_start[u + 1])]
            neighbour = instance.pin[np.random.randint(instance.pin_start[t], instance.pin_start[t + 1])]
            b = state.device[neighbour]
        if a == b or not np.isfinite(instance.work[b, u]):
            continue
        moved[0], before[0], count = u, a, 1
        kind = np.random.random()
        if kind < 0.2 and neighbour >= 0 and np.isfinite(instance.work[a, neighbour]):
            moved[1], before[1], count = neighbour, b, 2
        elif kind < 0.5:
            for j in range(instance.touch_start[u], instance.touch_start[u + 1]):
                t = instance.touched[j]
                for i in range(instance.pin_start[t], instance.pin_start[t + 1]):
                    w = instance.pin[i]
                    fresh = state.device[w] == a and count < units and np.isfinite(instance.work[b, w])
                    for k in range(count):
                        fresh = fresh and moved[k] != w
                    if fresh and np.random.random() < 0.5:
                        moved[count], before[count] = w, a
                        count += 1
        for k in range(count):
            _move(instance, state, moved[k], b if before[k] == a else a)
        after = _energy(instance, state, target)
        if after > energy and np.random.random() >= np.exp((energy - after) / temperature):
            for k in range(count):
                _move(instance, state, moved[k], before[k])
            continue
        energy = after
        largest = state.load.max()
        if largest < best_value * (1.0 - 1e-9) and (state.memory_used <= instance.capacity).all():
            # Sums that were added to and taken from are exact only once they are computed anew.
            recompute_routed(instance, state)
            largest = state.load.max()
            if largest < best_value * (1.0 - 1e-12):
                best_value = largest
                best[:] = state.device
                if largest <= 0.0:
                    return best_value  # nothing is less
                target = min(target, largest * (1.0 - margin))
            energy = _energy(instance, state, target)
    return best_value
