"""Compiled: orders by priority, what segments of an order cost, and the best division of an order into segments.

The cost of the units at places l to r of an order is

    sum of a[l..r]  -  sum of the weights of pairs (x, y) with l <= x and y <= r

where a[p] is the work of the unit at p and the transfers of all tensors that it touches, and a tensor that is touched
at places q0 < q1 < ... < qd has the pairs (q0, q1), (q1, q2), ... and (q0, qd), each with its transfer: touched inside
counts once, and not at all where nothing touches it outside.  What does not fit a device's memory is too much, or is
streamed.  A column of costs for one end r follows from the one before in the time of its length, so that all takes
memory in proportion to units and tensors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats, Integers

#: More segments than there can be.
NEVER = 2**30


class Segments(NamedTuple):
    """What segments of an order of u units cost.

    ``sums``     u + 1 what comes before each place of a[p];  ``work``  u + 1 the same of the work alone
    ``memory``   u + 1 the same of bytes
    ``start``, ``first``, ``weight``   the pairs that end at each place: where they begin, their seconds
    """

    sums: Floats
    work: Floats
    memory: Floats
    start: Integers
    first: Integers
    weight: Floats


class Divided(NamedTuple):
    """What orders are orders of: seconds and bytes of each unit (u), and tensors by the units that touch them.

    ``pin_start``, ``pin``   the units of tensor i are ``pin[pin_start[i]:pin_start[i + 1]]``;  ``transfer``  e seconds
    """

    work: Floats
    memory: Floats
    pin_start: Integers
    pin: Integers
    transfer: Floats


class Room(NamedTuple):
    """What a device holds: ``capacity`` bytes, of which ``reserved`` are not for units; ``per_byte`` seconds for each
    that is streamed (inf: none is)."""

    capacity: float
    reserved: float
    per_byte: float


@kernel(allocates=True)
def order_by_priority(later_start, later, earlier_start, priority, along):  # type: ignore[no-untyped-def]
    """Units in the order of Kahn's algorithm: of those with nothing left before them, the least priority (u) comes
    first; ``along``: of those that have become so last."""
    units = len(priority)
    order, heap = np.empty(units, dtype=np.int64), np.empty(units, dtype=np.int64)
    key, waiting = priority.copy(), np.empty(units, dtype=np.int64)
    size, done = 0, 0
    for u in range(units):
        waiting[u] = earlier_start[u + 1] - earlier_start[u]
        if waiting[u] == 0:
            size = _push(heap, key, size, u)
    while size:
        u = heap[0]
        size = _pop(heap, key, size)
        order[done] = u
        done += 1
        for j in range(later_start[u], later_start[u + 1]):
            v = later[j]
            waiting[v] -= 1
            if waiting[v] == 0:
                if along:
                    key[v] -= done
                size = _push(heap, key, size, v)
    return order


@kernel(no_cpython_wrapper=True)
def _push(heap, key, size, u):  # type: ignore[no-untyped-def]
    at = size
    while at > 0 and key[heap[(at - 1) // 2]] > key[u]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = u
    return size + 1


@kernel(no_cpython_wrapper=True)
def _pop(heap, key, size):  # type: ignore[no-untyped-def]
    size -= 1
    u, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[u]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = u
    return size


@kernel(allocates=True)
def segments_of(order, divided):  # type: ignore[no-untyped-def]
    """The terms of an order's segments."""
    work, memory, transfer = divided.work, divided.memory, divided.transfer
    pin_start, pin = divided.pin_start, divided.pin
    units, edges = len(order), len(transfer)
    place = np.empty(units, dtype=np.int64)
    for p in range(units):
        place[order[p]] = p
    at = np.zeros(units + 1)
    for p in range(units):
        at[p + 1] = work[order[p]]
    pairs = len(pin) + edges
    first, last, weight = np.empty(pairs, dtype=np.int64), np.empty(pairs, dtype=np.int64), np.empty(pairs)
    own, count = np.empty(units, dtype=np.int64), 0
    for e in range(edges):
        size = pin_start[e + 1] - pin_start[e]
        if transfer[e] <= 0.0 or size < 2:
            continue
        for i in range(size):
            p = place[pin[pin_start[e] + i]]
            at[p + 1] += transfer[e]
            j = i
            while j > 0 and own[j - 1] > p:
                own[j] = own[j - 1]
                j -= 1
            own[j] = p
        for i in range(size):
            first[count] = own[i - 1] if i else own[0]
            last[count] = own[i] if i else own[size - 1]
            weight[count] = transfer[e]
            count += 1
    start = np.zeros(units + 1, dtype=np.int64)
    for i in range(count):
        start[last[i] + 1] += 1
    sums, of_work, of_memory = np.zeros(units + 1), np.zeros(units + 1), np.zeros(units + 1)
    for p in range(units):
        start[p + 1] += start[p]
        sums[p + 1] = sums[p] + at[p + 1]
        of_work[p + 1] = of_work[p] + work[order[p]]
        of_memory[p + 1] = of_memory[p] + memory[order[p]]
    fill = start.copy()
    by_end, weights = np.empty(count, dtype=np.int64), np.empty(count)
    for i in range(count):
        by_end[fill[last[i]]] = first[i]
        weights[fill[last[i]]] = weight[i]
        fill[last[i]] += 1
    return Segments(sums, of_work, of_memory, start, by_end, weights)


@kernel(allocates=True)
def fewest_segments(segments, room, load, most, segments_before, begins):  # type: ignore[no-untyped-def]
    """The fewest segments with costs within ``load``, up to ``most``; NEVER where there are none.

    ``segments_before``   u + 1 room for the fewest up to each place;  ``begins``  u for where the last of them begins
    """
    units = len(segments.sums) - 1
    inside = np.zeros(units)
    segments_before[0] = 0
    lowest = 0
    for r in range(units):
        for j in range(segments.start[r], segments.start[r + 1]):
            inside[segments.first[j]] += segments.weight[j]
        while lowest <= r and segments.work[r + 1] - segments.work[lowest] > load:
            lowest += 1
        best, within, begin = NEVER, 0.0, -1
        for p in range(r, lowest - 1, -1):
            within += inside[p]
            if segments_before[p] + 1 >= best:
                continue
            cost = segments.sums[r + 1] - segments.sums[p] - within
            if cost > load:
                continue
            held = segments.memory[r + 1] - segments.memory[p]
            beyond = held + room.reserved - room.capacity
            if beyond > 0.0 and cost + beyond * room.per_byte > load:
                continue
            best, begin = segments_before[p] + 1, p
        segments_before[r + 1] = best if best <= most else NEVER
        begins[r] = begin
    return segments_before[units]


@kernel()
def largest_cost(segments, room, begins, ends):  # type: ignore[no-untyped-def]
    """The largest cost of the segments that a question has found, their number, and where they end in ``ends``."""
    units = len(segments.sums) - 1
    count, r = 0, units - 1
    while r >= 0:
        ends[count] = r
        count += 1
        r = begins[r] - 1
    largest = 0.0
    for k in range(count):
        r = ends[k]
        within, begin = 0.0, begins[r]
        for p in range(begin, r + 1):
            for j in range(segments.start[p], segments.start[p + 1]):
                if segments.first[j] >= begin:
                    within += segments.weight[j]
        cost = segments.sums[r + 1] - segments.sums[begin] - within
        beyond = segments.memory[r + 1] - segments.memory[begin] + room.reserved - room.capacity
        if beyond > 0.0:
            cost += beyond * room.per_byte
        largest = max(largest, cost)
    return largest, count


@kernel(allocates=True)
def best_segments(segments, room, most, lowest, below, near, segments_before, begins, ends):  # type: ignore[no-untyped-def]
    """The least largest cost of at most ``most`` segments, and how many; their ends, the last first, in ``ends``.

    ``lowest``: no division has less.  Only what is less than ``below`` is looked for (inf: anything); where there is
    nothing, the cost is inf.  ``near``: how near to the least the cost has to be, relatively.
    """
    units = len(segments.sums) - 1
    value, count = np.inf, 0
    low, ceiling = lowest, below * (1.0 - 1e-12)
    if ceiling == np.inf:
        ceiling = 2.0 * segments.sums[units] + 1e-300
        if np.isfinite(room.per_byte):
            ceiling += (segments.memory[units] + room.reserved) * room.per_byte
    # Upwards at first: what is looked at for a load grows with it.
    step = 0.05
    load = min(ceiling, low * (1.0 + step)) if low > 0.0 else ceiling
    found = np.empty(units, dtype=np.int64)
    strictly = True
    while True:
        if fewest_segments(segments, room, load, most, segments_before, begins) <= most:
            value, count = largest_cost(segments, room, begins, found)
            ends[:count] = found[:count]
            value = min(value, load)
        elif value == np.inf:
            if load >= ceiling:
                return value, 0
            low, step = load, 2.0 * step
            load = min(ceiling, low * (1.0 + step))
            continue
        else:
            low = max(low, load)
        if value - low <= max(near, 1e-12) * value:
            return value, count
        # By halves, and in between whether there is anything better.
        strictly = not strictly and value - low < 0.01 * value
        load = value * (1.0 - max(near, 1e-12)) if strictly else (low + value) / 2.0


@kernel(allocates=True)
def values_of_orders(later_start, later, earlier_start, divided, room, most, lowest, priorities, values):  # type: ignore[no-untyped-def]
    """The largest loads of the best divisions of the orders by p x u priorities, in ``values`` (p)."""
    units = priorities.shape[1]
    segments_before, begins = np.empty(units + 1, dtype=np.int64), np.empty(units, dtype=np.int64)
    ends = np.empty(units, dtype=np.int64)
    for k in range(len(priorities)):
        order = order_by_priority(later_start, later, earlier_start, priorities[k], False)
        segments = segments_of(order, divided)
        values[k] = best_segments(segments, room, most, lowest, np.inf, 1e-9, segments_before, begins, ends)[0]


@kernel(allocates=True)
def lengths_of_orders(later_start, later, earlier_start, maker, reader, weight, priorities, lengths):  # type: ignore[no-untyped-def]
    """Sums of how far makers and readers stand apart in the orders by p x u priorities, in ``lengths`` (p)."""
    place = np.empty(priorities.shape[1])
    for k in range(len(priorities)):
        order = order_by_priority(later_start, later, earlier_start, priorities[k], False)
        for p in range(len(order)):
            place[order[p]] = p
        total = 0.0
        for j in range(len(weight)):
            total += weight[j] * abs(place[maker[j]] - place[reader[j]])
        lengths[k] = total
