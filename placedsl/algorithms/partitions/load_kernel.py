"""Compiled: the loads and the memory of a partition of units over devices, kept up to date as single units move."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats, Integers


class PartitionInstance(NamedTuple):
    """What is partitioned: u units and e hyperedges (tensors, by the units that touch them) over D devices.

    ``work``        D x u running times in seconds (inf: not supported)
    ``memory``      u sizes in bytes; ``capacity``: D limits in bytes (inf: none)
    ``touch_start``, ``touched``   the hyperedges of unit i are ``touched[touch_start[i]:touch_start[i + 1]]``
    ``pin_start``, ``pin``         the units of hyperedge i are ``pin[pin_start[i]:pin_start[i + 1]]``
    ``transfer``    D x e seconds that a device pays if it holds some but not all units of a hyperedge
    ``per_byte``    D seconds for each byte beyond ``room`` (D) that is streamed; 0: nothing is
    ``order``       the u units by their position in the graph; ``rank``: the position of each unit in ``order``
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
    per_byte: Floats
    room: Floats


class PartitionState(NamedTuple):
    """A partition and the quantities derived from it.

    ``device``          u devices, one per unit
    ``pins_on_device``  e x D: how many units of a hyperedge each device holds
    ``load``            D seconds: running times, transfers, and what is streamed
    ``memory_used``     D bytes;  ``held``: D numbers of units
    """

    device: Integers
    pins_on_device: Integers
    load: Floats
    memory_used: Floats
    held: Integers


@kernel(no_cpython_wrapper=True)
def streamed(instance, d, memory_used, held):  # type: ignore[no-untyped-def]
    """How long device ``d`` streams what does not fit where it holds so many bytes of so many units."""
    if held == 0 or memory_used <= instance.room[d]:
        return 0.0
    return (memory_used - instance.room[d]) * instance.per_byte[d]


@kernel()
def recompute(instance, state):  # type: ignore[no-untyped-def]
    """Compute pin counts, loads and memory from ``state.device`` alone."""
    state.pins_on_device[:] = 0
    state.load[:] = 0.0
    state.memory_used[:] = 0.0
    state.held[:] = 0
    for u in range(len(state.device)):
        d = state.device[u]
        state.load[d] += instance.work[d, u]
        state.memory_used[d] += instance.memory[u]
        state.held[d] += 1
    for e in range(len(instance.pin_start) - 1):
        for j in range(instance.pin_start[e], instance.pin_start[e + 1]):
            state.pins_on_device[e, state.device[instance.pin[j]]] += 1
        size = instance.pin_start[e + 1] - instance.pin_start[e]
        for d in range(len(state.load)):
            if 0 < state.pins_on_device[e, d] < size:
                state.load[d] += instance.transfer[d, e]
    for d in range(len(state.load)):
        state.load[d] += streamed(instance, d, state.memory_used[d], state.held[d])


@kernel(no_cpython_wrapper=True)
def loads_after_move(instance, state, u, b):  # type: ignore[no-untyped-def]
    """The loads of the unit's present device and of device ``b``, another one, if unit ``u`` moved to ``b``.

    The loads of all other devices stay as they are.
    """
    a = state.device[u]
    load_a, load_b = state.load[a] - instance.work[a, u], state.load[b] + instance.work[b, u]
    for j in range(instance.touch_start[u], instance.touch_start[u + 1]):
        e = instance.touched[j]
        size = instance.pin_start[e + 1] - instance.pin_start[e]
        at_a, at_b = state.pins_on_device[e, a], state.pins_on_device[e, b]
        if at_a == size:
            load_a += instance.transfer[a, e]
        elif at_a == 1:
            load_a -= instance.transfer[a, e]
        if at_b == 0:
            load_b += instance.transfer[b, e]
        elif at_b == size - 1:
            load_b -= instance.transfer[b, e]
    if instance.per_byte[a] > 0.0 or instance.per_byte[b] > 0.0:
        size, held_a, held_b = instance.memory[u], state.held[a], state.held[b]
        in_a, in_b = state.memory_used[a], state.memory_used[b]
        load_a += streamed(instance, a, in_a - size, held_a - 1) - streamed(instance, a, in_a, held_a)
        load_b += streamed(instance, b, in_b + size, held_b + 1) - streamed(instance, b, in_b, held_b)
    return load_a, load_b


@kernel()
def move_unit(instance, state, u, b):  # type: ignore[no-untyped-def]
    """Move unit ``u`` to device ``b``, which must differ from its present device."""
    a = state.device[u]
    state.load[a], state.load[b] = loads_after_move(instance, state, u, b)
    state.memory_used[a] -= instance.memory[u]
    state.memory_used[b] += instance.memory[u]
    state.held[a] -= 1
    state.held[b] += 1
    state.device[u] = b
    for j in range(instance.touch_start[u], instance.touch_start[u + 1]):
        e = instance.touched[j]
        state.pins_on_device[e, a] -= 1
        state.pins_on_device[e, b] += 1
