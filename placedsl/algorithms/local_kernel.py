"""The kernel of the local search: annealing over single moves, compiled once and cached."""

from __future__ import annotations

import numpy as np
from numba import njit

#: The search minimises the sum of (load / reference) ** POWER, which follows the largest load closely.
POWER = 16


@njit(cache=True)
def anneal(  # type: ignore[no-untyped-def]
    device, work, memory, capacity, touch_start, touched, pins, transfer, order, rank, inside, load, held, best,
    best_value, steps, hot, cold, seed,
):  # fmt: skip
    """Move units about for ``steps`` steps; returns the best largest load, its placement in ``best``.

    A step takes a unit, and in half of the cases those after it in ``order`` that share its device, to another
    device.  ``inside[t, d]`` counts the units of device d that touch tensor t; it, ``load`` and ``held`` are kept up
    to date.
    """
    np.random.seed(seed)
    units, devices = len(device), len(load)
    reference = best_value
    cooling = (cold / hot) ** (1.0 / max(1, steps))
    temperature = hot
    moved = np.empty(units, dtype=np.int64)
    for _ in range(steps):
        temperature *= cooling
        u = np.random.randint(units)
        a = device[u]
        b = np.random.randint(devices)
        # Half of the moves go where a neighbour is.
        if touch_start[u + 1] > touch_start[u] and np.random.random() < 0.5:
            t = touched[np.random.randint(touch_start[u], touch_start[u + 1])]
            for shift in range(devices):
                d = (b + shift) % devices
                if d != a and inside[t, d] > 0:
                    b = d
                    break
        if a == b:
            continue
        reach = 1
        if np.random.random() < 0.5:
            reach = 1 + int(-np.log(1.0 - np.random.random()) * (4 if np.random.random() < 0.7 else 40))
        old_a, old_b, old_held_a, old_held_b = load[a], load[b], held[a], held[b]
        count = 0
        possible = True
        for position in range(rank[u], min(units, rank[u] + reach)):
            v = order[position]
            if device[v] != a:
                continue
            if not np.isfinite(work[b, v]) or held[b] + memory[v] > capacity[b]:
                possible = False
                break
            shift_unit(v, a, b, device, work, memory, touch_start, touched, pins, transfer, inside, load, held)
            moved[count] = v
            count += 1
        change = (load[a] / reference) ** POWER + (load[b] / reference) ** POWER
        change -= (old_a / reference) ** POWER + (old_b / reference) ** POWER
        if not possible or (change > 0.0 and np.random.random() >= np.exp(-change / temperature)):
            for i in range(count):
                shift_unit(
                    moved[i], b, a, device, work, memory, touch_start, touched, pins, transfer, inside, load, held
                )
            load[a], load[b], held[a], held[b] = old_a, old_b, old_held_a, old_held_b
            continue
        if change < 0.0 and max(load[a], load[b]) < best_value:
            largest = load.max()
            if largest < best_value * (1.0 - 1e-12):
                best_value = largest
                reference = largest
                best[:] = device
    return best_value


@njit(cache=True)
def shift_unit(  # type: ignore[no-untyped-def]
    v, a, b, device, work, memory, touch_start, touched, pins, transfer, inside, load, held
):
    """Take unit ``v`` from device ``a`` to ``b``."""
    load[a] -= work[a, v]
    load[b] += work[b, v]
    held[a] -= memory[v]
    held[b] += memory[v]
    device[v] = b
    for j in range(touch_start[v], touch_start[v + 1]):
        t = touched[j]
        everything = pins[t]
        if inside[t, a] == everything:
            load[a] += transfer[a, t]
        elif inside[t, a] == 1:
            load[a] -= transfer[a, t]
        if inside[t, b] == 0:
            load[b] += transfer[b, t]
        elif inside[t, b] == everything - 1:
            load[b] -= transfer[b, t]
        inside[t, a] -= 1
        inside[t, b] += 1
