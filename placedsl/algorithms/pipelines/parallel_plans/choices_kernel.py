"""Compiled: the multiple-choice knapsack of a stage by dynamic programming over partial choices.

A partial choice is worth the bytes that it saves and the time that it takes; it is dropped where another one dominates
it, or where the linear relaxation of the rest does not fit.  Kinds near the break of the relaxation come first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.options import GIVEN_UP, NO, YES
from placedsl.arrays import Integers

#: More partial choices than this are given up on.
MOST_CHOICES = 1 << 20


class Trail(NamedTuple):
    """Where partial choices came from: the kinds in order; those of step k are ``begins[k]:begins[k + 1]`` of
    ``parents`` (of the step before) and ``options``."""

    kinds: Integers
    begins: Integers
    parents: Integers
    options: Integers


@kernel(nogil=True, no_cpython_wrapper=True)
def relaxed(count, swaps, space, need, beyond, place):  # type: ignore[no-untyped-def]
    """The least time, in the relaxation, of saving ``need`` bytes with kinds after ``beyond``; inf if there is none."""
    cost = 0.0
    for i in range(swaps):
        if need <= 0.0:
            break
        c = space.swap_kind[i]
        if place[c] <= beyond:
            continue
        whole = count[c] * space.swap_bytes[i]
        if whole >= need:
            return cost + space.swap_time[i] * (need / space.swap_bytes[i])
        need -= whole
        cost += count[c] * space.swap_time[i]
    return cost if need <= 0.0 else np.inf


@kernel(nogil=True, no_cpython_wrapper=True)
def _by_break(count, swaps, space, need, place, kinds):  # type: ignore[no-untyped-def]
    """Kinds near the break of the relaxation first: what they choose is open, and the rest is soon settled.

    Fills ``kinds`` with the kinds that have swaps and ``place`` with their places; returns how many.
    """
    found, left, at = 0, need, 0
    while at < swaps and left > 0.0:
        left -= count[space.swap_kind[at]] * space.swap_bytes[at]
        at += 1
    down, up = at - 1, at
    while down >= 0 or up < swaps:
        if down >= 0:
            if place[space.swap_kind[down]] < 0:
                place[space.swap_kind[down]] = found
                kinds[found] = space.swap_kind[down]
                found += 1
            down -= 1
        if up < swaps:
            if place[space.swap_kind[up]] < 0:
                place[space.swap_kind[up]] = found
                kinds[found] = space.swap_kind[up]
                found += 1
            up += 1
    return found


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def decided(table, demand, time, need, swaps, space, taken):  # type: ignore[no-untyped-def]
    """Whether some choice fits, and its time, by dynamic programming over units of one kind after another.

    ``time``, ``need``: of the quickest options, and the bytes to save;  ``taken``: how many units take each option, the
    quickest so far; empty where that is not asked for.
    """
    _, count, g, in_flight, exchange, room, _ = demand
    place = np.full(table.kinds, -1, dtype=np.int64)
    kinds = np.empty(table.kinds, dtype=np.int64)
    found = _by_break(count, swaps, space, need, place, kinds)
    # Where each partial choice came from, step by step, if that is asked for.
    steps = 0
    for k in range(found):
        steps += count[kinds[k]]
    traced = len(taken) > 0
    begins = np.zeros(steps + 1, dtype=np.int64)
    parents = np.empty(1024 if traced else 0, dtype=np.int64)
    options = np.empty(1024 if traced else 0, dtype=np.int64)
    step = 0
    states = 1
    saved, spent = np.zeros(1), np.full(1, time)
    most = room * (1.0 + 1e-15)
    for k in range(found):
        c = kinds[k]
        base = space.base[c]
        first, last = table.start[g * table.kinds + c], table.start[g * table.kinds + c + 1]
        size = table.stash[base] * in_flight + table.memory[base]
        cost = table.time[base] + exchange * table.weights[base]
        for unit in range(count[c]):
            wide = states * (last - first)
            if wide > MOST_CHOICES:
                return GIVEN_UP, np.inf
            more_saved, more_spent = np.empty(wide), np.empty(wide)
            source, option = np.empty(wide, dtype=np.int64), np.empty(wide, dtype=np.int64)
            made = 0
            for s in range(states):
                for o in range(first, last):
                    less = size - (table.stash[o] * in_flight + table.memory[o])
                    if o != base and less <= 0.0:
                        continue
                    b = saved[s] + (less if o != base else 0.0)
                    p = spent[s] + (table.time[o] + exchange * table.weights[o] - cost if o != base else 0.0)
                    if p > most:
                        continue
                    more_saved[made], more_spent[made] = b, p
                    source[made], option[made] = s, o
                    made += 1
            # The quickest first; what takes longer must save more.
            order = np.argsort(more_spent[:made])
            saved, spent = np.empty(made), np.empty(made)
            states, largest = 0, -1.0
            for j in order:
                if more_saved[j] <= largest:
                    continue
                largest = more_saved[j]
                missing = need - more_saved[j]
                if missing <= 0.0:
                    if traced:
                        trail = Trail(kinds, begins, parents, options)
                        _take(taken, space.base, count, trail, k, unit, option[j], source[j])
                    return YES, more_spent[j]
                # The rest of this kind may still be swapped as the relaxation likes: a bound all the same.
                beyond = k if unit + 1 == count[c] else k - 1
                if more_spent[j] + relaxed(count, swaps, space, missing, beyond, place) > most:
                    continue
                saved[states], spent[states] = more_saved[j], more_spent[j]
                if traced:
                    end = begins[step] + states
                    if end >= len(parents):
                        parents = np.concatenate((parents, np.empty(len(parents), dtype=np.int64)))
                        options = np.concatenate((options, np.empty(len(options), dtype=np.int64)))
                    parents[end], options[end] = source[j], option[j]
                states += 1
            if states == 0:
                return NO, np.inf
            begins[step + 1] = begins[step] + states
            step += 1
    return NO, np.inf


@kernel(nogil=True, no_cpython_wrapper=True)
def _take(taken, base, count, trail, k, unit, option, source):  # type: ignore[no-untyped-def]
    """Move units from the quickest option of their kind to those of a chain of partial choices."""
    kinds, begins, parents, options = trail
    step = unit
    for j in range(k):
        step += count[kinds[j]]
    while True:
        taken[base[kinds[k]]] -= 1
        taken[option] += 1
        if step == 0:
            return
        step -= 1
        at = begins[step] + source
        option, source = options[at], parents[at]
        if unit == 0:
            k -= 1
            unit = count[kinds[k]]
        unit -= 1
