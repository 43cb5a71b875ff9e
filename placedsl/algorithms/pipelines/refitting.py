"""Units without time taken from devices that are too full to devices that have room, the cheapest ones first."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.presolve.attached import Attached
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, topological


def refitted(
    known: Attached, loose: Booleans, device: Integers, limits: Floats, cost: Floats, leaving: Booleans
) -> Integers:
    """u devices: those of ``device``, with some ``loose`` units moved where memory asks for it and the order allows it.

    ``limits``  D memory;  ``cost``  u: what the tensors of a unit cost at most: the cheapest are moved first, after
    those that are ``leaving`` (u).
    """
    units = known.units
    room = limits - np.bincount(device, units.memory, minlength=len(limits))
    if (room >= 0.0).all():
        return device
    used = np.unique(device)
    place = np.searchsorted(used, device)
    first, second = place[units.before], place[units.after]
    order = topological(len(used), first[first != second], second[first != second])
    if order is None:
        return device
    line = used[order]
    turn = np.empty(len(limits), dtype=np.int64)
    turn[line] = np.arange(len(line))
    start, earlier = csr(units.after, units.before, units.units)
    ahead, later = csr(units.before, units.after, units.units)
    device = device.copy()
    for full in np.flatnonzero(room < 0.0).tolist():
        own = np.flatnonzero(loose & (device == full) & (units.memory > 0.0))
        for v in own[np.lexsort((-units.memory[own], cost[own], ~leaving[own]))].tolist():
            low = int(turn[device[earlier[start[v] : start[v + 1]]]].max(initial=0))
            high = int(turn[device[later[ahead[v] : ahead[v + 1]]]].min(initial=len(line) - 1))
            fits = [d for d in line[low : high + 1].tolist() if room[d] >= units.memory[v] and units.supported[v, d]]
            if fits:
                # Rather where there is most room than where it is short as well.
                goal = max(fits, key=lambda d: room[d])
                device[v] = goal
                room[goal] -= units.memory[v]
                room[full] += units.memory[v]
            if room[full] >= 0.0:
                break
    return device
