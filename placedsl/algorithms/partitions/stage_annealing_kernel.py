"""Compiled: simulated annealing over the numbers of the stages that units are in, along the precedence of a pipeline.

The stage of a unit is no less than that of any unit before it, and no more than that of any unit after it; every move
keeps that so.  Memory limits are soft, support is hard.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.partitions.annealing_kernel import device_energy
from placedsl.algorithms.partitions.cluster_costs_kernel import join, leave, pay_all, together
from placedsl.algorithms.partitions.load_kernel import loads_after_move, move_unit, recompute
from placedsl.arrays import Integers, Integers32

#: Units that a move of one with all before it, or all after it, in its stage takes along at most.
_MOST_ALONG = 24
#: How many devices are drawn to look for one with a large load, and how many units for one on it.
_DRAWN = 4


class Precedence(NamedTuple):
    """Along which units a pipeline runs: ``earlier[earlier_start[u]:earlier_start[u + 1]]`` come before unit u."""

    earlier_start: Integers
    earlier: Integers
    later_start: Integers
    later: Integers


class Stages(NamedTuple):
    """The order of D devices in the pipeline, and the u units of each.

    ``stage``   D the place of each device;  ``device``  D the device at each place
    ``start``   D + 1 where the members of each device begin in ``member``, and how many there are in ``held``: D
    ``slot``    u where each unit stands in ``member``
    """

    stage: Integers
    device: Integers
    members: Integers32
    held: Integers
    slot: Integers32


@kernel(no_cpython_wrapper=True)
def _between(state, precedence, stages, u, but):  # type: ignore[no-untyped-def]
    """The first and the last stage that unit ``u`` may be in while all others but ``but`` stay."""
    low, high = 0, len(stages.stage) - 1
    for j in range(precedence.earlier_start[u], precedence.earlier_start[u + 1]):
        v = precedence.earlier[j]
        if v != but:
            low = max(low, stages.stage[state.device[v]])
    for j in range(precedence.later_start[u], precedence.later_start[u + 1]):
        v = precedence.later[j]
        if v != but:
            high = min(high, stages.stage[state.device[v]])
    return low, high


@kernel(no_cpython_wrapper=True)
def _follows(precedence, u, v):  # type: ignore[no-untyped-def]
    """Whether there is a pair that says that ``v`` comes after ``u``."""
    found = False
    for j in range(precedence.later_start[u], precedence.later_start[u + 1]):
        found = found or precedence.later[j] == v
    return found


@kernel(no_cpython_wrapper=True)
def _closure(state, precedence, u, ahead, moved, mark, stamp):  # type: ignore[no-untyped-def]
    """Collect in ``moved`` unit ``u`` and the units of its stage after it (``ahead``) or before it; their number, 0
    where they are too many."""
    moved[0] = u
    mark[u] = stamp
    count, head = 1, 0
    starts = precedence.later_start if ahead else precedence.earlier_start
    neighbours = precedence.later if ahead else precedence.earlier
    while head < count:
        v = moved[head]
        head += 1
        for j in range(starts[v], starts[v + 1]):
            w = neighbours[j]
            if mark[w] != stamp and state.device[w] == state.device[u]:
                if count == _MOST_ALONG:
                    return 0
                mark[w] = stamp
                moved[count] = w
                count += 1
    return count


@kernel(no_cpython_wrapper=True)
def _enter(stages, u, a, b):  # type: ignore[no-untyped-def]
    """Note that unit ``u`` has gone from device ``a`` to ``b``."""
    last = stages.held[a] - 1
    other = stages.members[a, last]
    stages.members[a, stages.slot[u]] = other
    stages.slot[other] = stages.slot[u]
    stages.held[a] = last
    stages.members[b, stages.held[b]] = u
    stages.slot[u] = stages.held[b]
    stages.held[b] += 1


@kernel(no_cpython_wrapper=True)
def _drawn(state, stages):  # type: ignore[no-untyped-def]
    """A unit: of a device with a large load, or any."""
    if np.random.random() < 0.4:
        a = np.random.randint(len(state.load))
        for _ in range(_DRAWN):
            b = np.random.randint(len(state.load))
            if state.load[b] > state.load[a]:
                a = b
        if stages.held[a] > 0:
            return stages.members[a, np.random.randint(stages.held[a])]
    return np.random.randint(len(state.device))


@kernel(no_cpython_wrapper=True)
def _neighbour(instance, u):  # type: ignore[no-untyped-def]
    """A unit that shares a tensor with ``u``, ``u`` itself where there is none."""
    first, last = instance.touch_start[u], instance.touch_start[u + 1]
    if first == last:
        return u
    e = instance.touched[np.random.randint(first, last)]
    return instance.pin[np.random.randint(instance.pin_start[e], instance.pin_start[e + 1])]


@kernel(no_cpython_wrapper=True)
def _exchange(instance, state, stages, a, b, moved):  # type: ignore[no-untyped-def]
    """Have devices ``a`` and ``b`` change places in the pipeline: each takes the units of the other."""
    count_a, count_b = stages.held[a], stages.held[b]
    for i in range(count_a):
        moved[i] = stages.members[a, i]
    for i in range(count_b):
        moved[count_a + i] = stages.members[b, i]
    for i in range(count_a):
        move_unit(instance, state, moved[i], b)
        _enter(stages, moved[i], a, b)
    for i in range(count_b):
        move_unit(instance, state, moved[count_a + i], a)
        _enter(stages, moved[count_a + i], b, a)
    _change_places(stages, a, b)


@kernel(no_cpython_wrapper=True)
def _pulled(state, precedence, stages, a, b, moved, mark, stamp):  # type: ignore[no-untyped-def]
    """Collect in ``moved`` the units of device ``a`` that have to go to ``b``, which is next to it in the pipeline, for
    the two to change places; their number."""
    ahead = stages.stage[b] > stages.stage[a]
    starts = precedence.later_start if ahead else precedence.earlier_start
    neighbours = precedence.later if ahead else precedence.earlier
    count = 0
    for i in range(stages.held[a]):
        u = stages.members[a, i]
        for j in range(starts[u], starts[u + 1]):
            if mark[u] != stamp and state.device[neighbours[j]] == b:
                mark[u] = stamp
                moved[count] = u
                count += 1
    back_starts = precedence.earlier_start if ahead else precedence.later_start
    back = precedence.earlier if ahead else precedence.later
    head = 0
    while head < count:
        u = moved[head]
        head += 1
        for j in range(back_starts[u], back_starts[u + 1]):
            v = back[j]
            if mark[v] != stamp and state.device[v] == a:
                mark[v] = stamp
                moved[count] = v
                count += 1
    return count


@kernel(no_cpython_wrapper=True)
def _change_places(stages, a, b):  # type: ignore[no-untyped-def]
    """Devices ``a`` and ``b`` change places in the pipeline, and keep their units."""
    first, second = stages.stage[a], stages.stage[b]
    stages.stage[a], stages.stage[b] = second, first
    stages.device[first], stages.device[second] = b, a


@kernel(no_cpython_wrapper=True)
def _runs(instance, d, units, count):  # type: ignore[no-untyped-def]
    """Whether a device runs all these units."""
    possible = True
    for i in range(count):
        possible = possible and np.isfinite(instance.work[d, units[i]])
    return possible


@kernel(no_cpython_wrapper=True)
def _energy(instance, state, further, target):  # type: ignore[no-untyped-def]
    """That of all devices, where they pay ``further`` on top of their loads."""
    total = 0.0
    for d in range(len(state.load)):
        total += device_energy(state.load[d] + further[d], target, state.memory_used[d], instance.capacity[d])
    return total


@kernel(no_cpython_wrapper=True)
def _largest(state, further):  # type: ignore[no-untyped-def]
    """The largest load with what is paid on top."""
    out = 0.0
    for d in range(len(state.load)):
        out = max(out, state.load[d] + further[d])
    return out


# Longer than 80 lines: the moves share what they are undone by.
@kernel(allocates=True)
def anneal_stages(instance, clusters, precedence, state, stages, best, best_value, margin, unlike, schedule):  # type: ignore[no-untyped-def]
    """Anneal from ``state``; returns the best value met, with its partition in ``best`` (u devices).

    A step moves a unit to another stage that precedence leaves it, or one with all of its stage before it or after it
    by a stage, or exchanges two units; where devices are ``unlike``, it also has two of them change places, with their
    units or without.  The energy is that of annealing of partitions.  ``best_value`` > 0 is what a partition must
    undercut to be kept.  Where there are ``clusters``, a move changes loads of further devices: all are looked at, and
    those of a cluster stay next to one another in the pipeline.
    """
    np.random.seed(schedule.seed)
    recompute(instance, state)
    units, devices = len(state.device), len(state.load)
    stages.held[:] = 0
    for u in range(units):
        d = state.device[u]
        stages.members[d, stages.held[d]] = u
        stages.slot[u] = stages.held[d]
        stages.held[d] += 1
    target = best_value * (1.0 - margin)
    temperature = schedule.hot
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.steps))
    moved, mark = np.empty(units, dtype=np.int64), np.full(units, -1, dtype=np.int64)
    clustered, tensors = len(clusters.cluster) > 0, len(clusters.maker)
    further, kept, on = np.zeros(devices), np.zeros(devices), np.zeros(devices, dtype=np.int64)
    listed, stamp, many = np.empty(tensors, dtype=np.int64), np.full(tensors, -1, dtype=np.int64), 0
    if clustered:
        pay_all(clusters, state.device, further, on)
    for step in range(schedule.steps):
        temperature *= cooling
        u = _drawn(state, stages)
        a = state.device[u]
        kind, count, partner, b, changed = np.random.random(), 1, -1, a, False
        moved[0] = u
        if kind < 0.15:
            ahead = np.random.random() < 0.5
            place = stages.stage[a] + (1 if ahead else -1)
            if place < 0 or place >= devices:
                continue
            b = stages.device[place]
            count = _closure(state, precedence, u, ahead, moved, mark, step)
        elif kind < 0.3:
            b = state.device[_neighbour(instance, u)]
            if b == a or stages.held[b] == 0:
                b = np.random.randint(devices)
            if b == a or stages.held[b] == 0:
                continue
            partner = stages.members[b, np.random.randint(stages.held[b])]
            low, high = _between(state, precedence, stages, u, partner)
            if not low <= stages.stage[b] <= high:
                continue
            low, high = _between(state, precedence, stages, partner, u)
            if not low <= stages.stage[a] <= high or not np.isfinite(instance.work[a, partner]):
                continue
            early, late = (u, partner) if stages.stage[a] < stages.stage[b] else (partner, u)
            if _follows(precedence, early, late):
                continue
        elif unlike and kind < 0.32:
            place = stages.stage[a] + (1 if np.random.random() < 0.5 else -1)
            if place < 0 or place >= devices:
                continue
            b = stages.device[place]
            if clustered and not together(clusters, a, b):
                continue
            count = _pulled(state, precedence, stages, a, b, moved, mark, step)
            if not _runs(instance, b, moved, count):
                continue
            changed = True
            _change_places(stages, a, b)
        elif unlike and kind < 0.34:
            b = np.random.randint(devices)
            if b == a or not _runs(instance, b, stages.members[a], stages.held[a]):
                continue
            if clustered and not together(clusters, a, b):
                continue
            if not _runs(instance, a, stages.members[b], stages.held[b]):
                continue
            count = -1
        else:
            low, high = _between(state, precedence, stages, u, -1)
            if low == high:
                continue
            place = stages.stage[state.device[_neighbour(instance, u)]]
            if place == stages.stage[a] or np.random.random() < 0.3:
                place = low + np.random.randint(high - low + 1)
            b = stages.device[min(max(place, low), high)]
        if not changed and (a == b or count == 0 or (count > 0 and not _runs(instance, b, moved, count))):
            continue
        load_a, load_b, memory_a, memory_b = state.load[a], state.load[b], state.memory_used[a], state.memory_used[b]
        alone, before = count == 1 and partner < 0 and not clustered, 0.0
        if clustered:
            before, many = _energy(instance, state, further, target), 0
            kept[:] = further
            for i in range(count):
                many = leave(clusters, state.device, moved[i], many, listed, stamp, step, further, on)
            if partner >= 0:
                many = leave(clusters, state.device, partner, many, listed, stamp, step, further, on)
        if alone:
            new_a, new_b = loads_after_move(instance, state, moved[0], b)
            size = instance.memory[moved[0]]
            new_memory_a, new_memory_b = memory_a - size, memory_b + size
        else:
            if count < 0:
                _exchange(instance, state, stages, a, b, moved)
            for i in range(count):
                move_unit(instance, state, moved[i], b)
            if partner >= 0:
                move_unit(instance, state, partner, a)
            new_a, new_b, new_memory_a, new_memory_b = (
                state.load[a], state.load[b], state.memory_used[a], state.memory_used[b]
            )  # fmt: skip
        if clustered and count < 0:
            pay_all(clusters, state.device, further, on)
        elif clustered:
            join(clusters, state.device, many, listed, further, on)
        change = (
            _energy(instance, state, further, target) - before
            if clustered
            else (
                device_energy(new_a, target, new_memory_a, instance.capacity[a])
                + device_energy(new_b, target, new_memory_b, instance.capacity[b])
                - device_energy(load_a, target, memory_a, instance.capacity[a])
                - device_energy(load_b, target, memory_b, instance.capacity[b])
            )
        )
        if change > 0.0 and np.random.random() >= np.exp(-change / temperature):
            if changed:
                _change_places(stages, a, b)
            if alone:
                continue
            if count < 0:
                _exchange(instance, state, stages, a, b, moved)
            if partner >= 0:
                move_unit(instance, state, partner, b)
            for i in range(count):
                move_unit(instance, state, moved[i], a)
            # Restore the previous values exactly: undoing the moves only restores them up to rounding.
            state.load[a], state.load[b] = load_a, load_b
            state.memory_used[a], state.memory_used[b] = memory_a, memory_b
            further[:] = kept
            continue
        if alone:
            move_unit(instance, state, moved[0], b)
        for i in range(count):
            _enter(stages, moved[i], a, b)
        if partner >= 0:
            _enter(stages, partner, b, a)
        if state.load[a] < best_value and state.load[b] < best_value:
            largest = _largest(state, further)
            if largest < best_value * (1.0 - 1e-12) and (state.memory_used <= instance.capacity).all():
                best_value = largest
                best[:] = state.device
                if largest <= 0.0:
                    return best_value  # nothing is less
                target = min(target, largest * (1.0 - margin))
    return best_value
