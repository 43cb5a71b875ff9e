"""Compiled: the least time of a stage whose memory is limited, a multiple-choice knapsack over kinds of units.

Each unit takes one option of its kind; an option costs time (and a share of its weights' exchange) and occupies bytes
that grow with the samples in flight.  The question is whether some choice stays within both a time and the memory.

Most are answered by sums: of the quickest options, which may fit, or of the smallest, which may not.  Then the linear
relaxation (each kind along the lower convex hull of its options, by the time that a byte saved costs) refutes, or the
same taken in whole units succeeds.  What is left is decided by :mod:`.choices_kernel`.

Kellerer, Pferschy and Pisinger 2004, chapter 11.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.choices_kernel import decided, relaxed
from placedsl.algorithms.pipelines.parallel_plans.options import GIVEN_UP, NO, TOO_SLOW, YES, Workspace

#: What rounding may make of a comparison that is decided without the options themselves.
_MARGIN = 1e-12


@kernel(nogil=True, no_cpython_wrapper=True)
def _quickest(table, g, c, in_flight, exchange):  # type: ignore[no-untyped-def]
    """The quickest option of a kind, of equally quick ones the smallest."""
    best, least, size = -1, np.inf, np.inf
    for o in range(table.start[g * table.kinds + c], table.start[g * table.kinds + c + 1]):
        cost = table.time[o] + exchange * table.weights[o]
        occupied = table.stash[o] * in_flight + table.memory[o]
        if cost < least or (cost == least and occupied < size):
            best, least, size = o, cost, occupied
    return best, least, size


@kernel(nogil=True, no_cpython_wrapper=True)
def _swaps(table, active, g, in_flight, exchange, space):  # type: ignore[no-untyped-def]
    """The swaps from ``space.base`` on along the lower hulls of some kinds, by time per byte; how many."""
    made = 0
    for c in active:
        at = space.base[c]
        if at < 0:
            continue
        cost = table.time[at] + exchange * table.weights[at]
        size = table.stash[at] * in_flight + table.memory[at]
        while True:
            best, ratio, best_cost, best_size = -1, np.inf, 0.0, 0.0
            for o in range(table.start[g * table.kinds + c], table.start[g * table.kinds + c + 1]):
                occupied = table.stash[o] * in_flight + table.memory[o]
                if occupied >= size:
                    continue
                other = table.time[o] + exchange * table.weights[o]
                slope = (other - cost) / (size - occupied)
                if slope < ratio or (slope == ratio and occupied < best_size):
                    best, ratio, best_cost, best_size = o, slope, other, occupied
            if best < 0:
                break
            i = made
            while i > 0 and space.swap_ratio[i - 1] > ratio:  # few, and kept in order as they come
                space.swap_kind[i], space.swap_option[i] = space.swap_kind[i - 1], space.swap_option[i - 1]
                space.swap_bytes[i], space.swap_time[i] = space.swap_bytes[i - 1], space.swap_time[i - 1]
                space.swap_ratio[i] = space.swap_ratio[i - 1]
                i -= 1
            space.swap_kind[i], space.swap_option[i] = c, best
            space.swap_bytes[i], space.swap_time[i] = size - best_size, best_cost - cost
            space.swap_ratio[i] = ratio
            made += 1
            cost, size = best_cost, best_size
    return made


@kernel(nogil=True, no_cpython_wrapper=True)
def _in_whole_units(count, swaps, space, need, number, write):  # type: ignore[no-untyped-def]
    """The time of saving ``need`` bytes by whole swaps, in order of their ratio; inf where that saves too little.

    ``number`` (i entries, where ``write``): how many units of its kind make each swap.
    """
    cost = 0.0
    for i in range(swaps):
        if write:
            number[i] = 0
        if need <= 0.0:
            continue
        units = min(count[space.swap_kind[i]], np.ceil(need / space.swap_bytes[i]))
        if units * space.swap_bytes[i] < need and units < count[space.swap_kind[i]]:
            units += 1  # what rounding took
        need -= units * space.swap_bytes[i]
        cost += units * space.swap_time[i]
        if write:
            number[i] = np.int64(units)
    return cost if need <= 0.0 else np.inf


@kernel(nogil=True)
def most_in_flight(table, active, count, g, capacity, most):  # type: ignore[no-untyped-def]
    """How many samples may be in flight at most (up to ``most``) for the smallest options to fit; 0: none."""
    low, high = 0, most + 1
    middle = most
    while high - low > 1:
        least = 0.0
        for c in active:
            smallest = np.inf
            for o in range(table.start[g * table.kinds + c], table.start[g * table.kinds + c + 1]):
                smallest = min(smallest, table.stash[o] * middle + table.memory[o])
            least += count[c] * smallest
        if least <= capacity:
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return low


@kernel(nogil=True, no_cpython_wrapper=True)
def screened(table, kept, count, every, g, in_flight, time, need, room):  # type: ignore[no-untyped-def]
    """What the relaxation says, where options of a kind differ in no weights; ``GIVEN_UP`` where it leaves it open.

    ``kept``: swaps by degree and samples in flight, filled as they are needed;  ``every``: all kinds;  ``time``,
    ``need``: the time of the quickest options, and by how many bytes they exceed the memory.
    """
    row = g * kept.per_degree + in_flight
    space = Workspace(
        kept.base[g], kept.swap_kind[row], kept.swap_option[row], kept.swap_bytes[row],
        kept.swap_time[row], kept.swap_ratio[row],
    )  # fmt: skip
    if kept.swaps[row] < 0:
        kept.swaps[row] = _swaps(table, every, g, in_flight, 0.0, space)
        kept.saving[row] = _units(table, every, g, in_flight, kept, row)
    swaps = kept.swaps[row]
    cost, missing = 0.0, need
    for i in range(swaps):
        units = count[space.swap_kind[i]]
        whole = units * space.swap_bytes[i]
        if whole >= need:
            if time + cost + space.swap_time[i] * (need / space.swap_bytes[i]) > room * (1.0 + _MARGIN):
                return NO
            break
        need -= whole
        cost += units * space.swap_time[i]
    else:
        return GIVEN_UP
    units = np.ceil(need / space.swap_bytes[i])
    if time + cost + units * space.swap_time[i] <= room * (1.0 - _MARGIN) and (
        units * space.swap_bytes[i] > need * (1.0 + _MARGIN)
    ):
        return YES
    if time + _by_number(count, kept, row, missing) > room * (1.0 + _MARGIN):
        return NO
    return GIVEN_UP


@kernel(nogil=True, no_cpython_wrapper=True)
def _units(table, every, g, in_flight, kept, row):  # type: ignore[no-untyped-def]
    """The kinds that can save bytes, by the most bytes and by the least time of a unit; how many."""
    found = 0
    for c in every:
        at = kept.base[g, c]
        if at < 0:
            continue
        size, most, least = table.stash[at] * in_flight + table.memory[at], 0.0, np.inf
        for o in range(table.start[g * table.kinds + c], table.start[g * table.kinds + c + 1]):
            saved = size - table.stash[o] * in_flight - table.memory[o]
            if saved > 0.0:
                most, least = max(most, saved), min(least, table.time[o] - table.time[at])
        if most <= 0.0:
            continue
        i = found
        while i > 0 and kept.bytes[row, i - 1] < most:
            kept.by_bytes[row, i], kept.bytes[row, i] = kept.by_bytes[row, i - 1], kept.bytes[row, i - 1]
            i -= 1
        kept.by_bytes[row, i], kept.bytes[row, i] = c, most
        i = found
        while i > 0 and kept.times[row, i - 1] > least:
            kept.by_time[row, i], kept.times[row, i] = kept.by_time[row, i - 1], kept.times[row, i - 1]
            i -= 1
        kept.by_time[row, i], kept.times[row, i] = c, least
        found += 1
    return found


@kernel(nogil=True, no_cpython_wrapper=True)
def _by_number(count, kept, row, need):  # type: ignore[no-untyped-def]
    """The least time of saving so many bytes, by how many units have to save any: a bound where units are alike."""
    units, i = 0, 0
    while i < kept.saving[row] and need > 0.0:
        most, here = kept.bytes[row, i], count[kept.by_bytes[row, i]]
        if here * most >= need:
            here = np.int64(np.ceil(need / most * (1.0 - _MARGIN)))
        units += here
        need -= here * most
        i += 1
    cost, i = 0.0, 0
    while i < kept.saving[row] and units > 0:
        here = min(units, count[kept.by_time[row, i]])
        cost += here * kept.times[row, i]
        units -= here
        i += 1
    return cost


@kernel(nogil=True)
def time_within(table, demand, space):  # type: ignore[no-untyped-def]
    """Whether a choice of options takes no more than the room and the capacity, and the time of one."""
    active, units, g, in_flight, exchange, room, capacity = demand
    time, occupied, least = 0.0, 0.0, 0.0
    for c in active:
        _, cost, size = _quickest(table, g, c, in_flight, exchange)
        if cost == np.inf:
            return TOO_SLOW, np.inf
        smallest = size
        for o in range(table.start[g * table.kinds + c], table.start[g * table.kinds + c + 1]):
            smallest = min(smallest, table.stash[o] * in_flight + table.memory[o])
        time += units[c] * cost
        occupied += units[c] * size
        least += units[c] * smallest
        if time > room:
            return TOO_SLOW, np.inf
        if least > capacity:
            return NO, np.inf
    if time > room:
        return TOO_SLOW, np.inf
    if occupied <= capacity:
        return YES, time
    for c in active:
        space.base[c] = _quickest(table, g, c, in_flight, exchange)[0]
    swaps = _swaps(table, active, g, in_flight, exchange, space)
    need = occupied - capacity
    if time + relaxed(units, swaps, space, need, -1, space.base) > room * (1.0 + 1e-13):  # no kind is left out
        return NO, np.inf
    nothing = space.swap_kind[:0]
    whole = time + _in_whole_units(units, swaps, space, need, nothing, False)
    if whole <= room:
        return YES, whole
    return decided(table, demand, time, need, swaps, space, nothing)


@kernel(nogil=True, allocates=True)
def options_within(table, demand, space):  # type: ignore[no-untyped-def]
    """How many units take each option (entries by option) in a choice that :func:`time_within` found."""
    active, units, g, in_flight, exchange, room, capacity = demand
    taken = np.zeros(len(table.time), dtype=np.int64)
    time, need = 0.0, -capacity
    for c in active:
        base, cost, size = _quickest(table, g, c, in_flight, exchange)
        space.base[c] = base
        taken[base] = units[c]
        time += units[c] * cost
        need += units[c] * size
    if need <= 0.0:
        return taken
    swaps = _swaps(table, active, g, in_flight, exchange, space)
    number = np.zeros(swaps, dtype=np.int64)
    if time + _in_whole_units(units, swaps, space, need, number, True) > room:
        decided(table, demand, time, need, swaps, space, taken)
        return taken
    for i in range(swaps):
        # A swap starts from the option before it on the hull of its kind, or from the quickest.
        before = space.base[space.swap_kind[i]]
        for j in range(i):
            if space.swap_kind[j] == space.swap_kind[i]:
                before = space.swap_option[j]
        taken[before] -= number[i]
        taken[space.swap_option[i]] += number[i]
    return taken
