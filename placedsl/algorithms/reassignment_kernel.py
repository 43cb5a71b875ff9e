"""The kernel of the baseline "local-search": the best reassignment of a single unit, compiled once and cached."""

from __future__ import annotations

import numpy as np
from numba import njit

#: A move counts when it lowers the largest load by more than this share of it.
LEAST = 1e-9


@njit(cache=True)
def descend(device, work, memory, capacity, touch_start, touched, pins, transfer, inside, load, held, moves):  # type: ignore[no-untyped-def]
    """Make the best move up to ``moves`` times; returns how many were made (fewer: no single move helps any more).

    ``inside[t, d]`` counts the units of device d that touch tensor t; it, ``load`` and ``held`` are kept up to date.
    """
    units, devices = len(device), len(load)
    for made in range(moves):
        top = 0
        for d in range(devices):
            if load[d] > load[top]:
                top = d
        best, best_unit, best_device = load[top] * (1.0 - LEAST), -1, -1
        for u in range(units):
            a = device[u]
            for b in range(devices):
                # A move that leaves the busiest device as it is cannot help.
                if b == a or top not in (a, b):
                    continue
                if not np.isfinite(work[b, u]) or held[b] + memory[u] > capacity[b]:
                    continue
                change_a, change_b = changes(u, a, b, work, touch_start, touched, pins, transfer, inside)
                largest = max(load[a] + change_a, load[b] + change_b)
                for d in range(devices):
                    if d not in (a, b) and load[d] > largest:
                        largest = load[d]
                if largest < best:
                    best, best_unit, best_device = largest, u, b
        if best_unit < 0:
            return made
        a = device[best_unit]
        change_a, change_b = changes(best_unit, a, best_device, work, touch_start, touched, pins, transfer, inside)
        load[a] += change_a
        load[best_device] += change_b
        held[a] -= memory[best_unit]
        held[best_device] += memory[best_unit]
        device[best_unit] = best_device
        for j in range(touch_start[best_unit], touch_start[best_unit + 1]):
            inside[touched[j], a] -= 1
            inside[touched[j], best_device] += 1
    return moves


@njit(cache=True)
def changes(u, a, b, work, touch_start, touched, pins, transfer, inside):  # type: ignore[no-untyped-def]
    """By how much the loads of devices ``a`` and ``b`` change when unit ``u`` goes from ``a`` to ``b``.

    A device pays for a tensor when some but not all of the units that touch it are there; what other devices pay
    stays as it is.
    """
    change_a, change_b = -work[a, u], work[b, u]
    for j in range(touch_start[u], touch_start[u + 1]):
        t = touched[j]
        everything = pins[t]
        if inside[t, a] == everything:
            change_a += transfer[a, t]
        elif inside[t, a] == 1:
            change_a -= transfer[a, t]
        if inside[t, b] == 0:
            change_b += transfer[b, t]
        elif inside[t, b] == everything - 1:
            change_b -= transfer[b, t]
    return change_a, change_b
