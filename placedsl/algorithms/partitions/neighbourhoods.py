"""Neighbourhoods of a partition for large neighbourhood search: the units that are freed, and the subproblem that
remains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.partitions.load_kernel import PartitionInstance, PartitionState
from placedsl.arrays import Booleans, Integers

#: A device is at the bottleneck if its load is within this share of the largest load.
_BOTTLENECK_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class FreeUnits:
    """u flags: which units may move; D flags: which devices they may move to."""

    units: Booleans
    devices: Booleans


def free_devices(instance: PartitionInstance, state: PartitionState, count: int, rng: np.random.Generator) -> FreeUnits:
    """Free all units of the bottleneck device and of ``count - 1`` others.

    These are random, mostly devices that share hyperedges with the bottleneck.
    """
    devices = len(instance.capacity)
    worst = int(np.argmax(state.load))
    shared = (state.pins_on_device[state.pins_on_device[:, worst] > 0] > 0).sum(axis=0).astype(float)
    weight = shared + 0.1 * shared.max(initial=1.0) + 1e-9
    weight[worst] = 0.0
    others = rng.choice(devices, size=min(count, devices) - 1, replace=False, p=weight / weight.sum())
    chosen = np.zeros(devices, dtype=bool)
    chosen[worst] = True
    chosen[others] = True
    return FreeUnits(chosen[state.device], chosen)


def free_region(instance: PartitionInstance, state: PartitionState, count: int, rng: np.random.Generator) -> FreeUnits:
    """Free ``count`` connected units, grown from a few units of the bottleneck with cut hyperedges, for all devices."""
    units = len(instance.memory)
    critical = state.load[state.device] >= state.load.max() * (1.0 - _BOTTLENECK_SHARE)
    broken = np.flatnonzero((state.pins_on_device > 0).sum(axis=1) > 1)
    border = np.zeros(units, dtype=bool)
    for e in broken.tolist():
        border[instance.pin[instance.pin_start[e] : instance.pin_start[e + 1]]] = True
    from_these = np.flatnonzero(border & critical)
    if not len(from_these):
        from_these = np.flatnonzero(critical)
    begin = rng.choice(from_these, size=min(len(from_these), int(rng.integers(1, 5))), replace=False).tolist()
    free, waiting = np.zeros(units, dtype=bool), list(begin)
    free[begin] = True
    reached = len(begin)
    while waiting and reached < count:
        # Not strictly breadth first: one border then yields many different neighbourhoods.
        u = waiting.pop(int(rng.integers(min(len(waiting), 4))))
        for e in instance.touched[instance.touch_start[u] : instance.touch_start[u + 1]].tolist():
            for v in instance.pin[instance.pin_start[e] : instance.pin_start[e + 1]].tolist():
                if not free[v] and reached < count:
                    free[v] = True
                    waiting.append(v)
                    reached += 1
    return FreeUnits(free, np.ones(len(instance.capacity), dtype=bool))


@dataclass(frozen=True)
class UndecidedCut:
    """A hyperedge and a device for which the free units decide whether the hyperedge is cut there.

    Device ``device`` pays ``cost`` seconds if it holds some but not all units of the hyperedge.  ``units``: the free
    units of the hyperedge; ``inside``: the device holds a fixed unit of it; ``outside``: another device does.  At most
    one of the two is true: if both are, the cut is decided and its cost is part of ``Subproblem.load``.
    """

    device: int
    cost: float
    units: tuple[int, ...]
    inside: bool
    outside: bool


@dataclass(frozen=True, eq=False)
class Subproblem:
    """The problem that remains if all but the free units are fixed.

    ``choices``                the devices that each free unit may be on
    ``load``, ``memory_used``  D seconds and D bytes of fixed units and decided cuts
    ``undecided_cuts``         costs that depend on the free units
    """

    choices: dict[int, tuple[int, ...]]
    load: tuple[float, ...]
    memory_used: tuple[float, ...]
    undecided_cuts: tuple[UndecidedCut, ...]


def subproblem_of(instance: PartitionInstance, device: Integers, free: FreeUnits) -> Subproblem:
    """The subproblem of the free units if all others stay on their devices (``device``: u)."""
    devices = range(len(instance.capacity))
    load, memory_used = np.zeros(len(devices)), np.zeros(len(devices))
    fixed = np.flatnonzero(~free.units)
    np.add.at(load, device[fixed], instance.work[device[fixed], fixed])
    np.add.at(memory_used, device[fixed], instance.memory[fixed])
    possible = np.isfinite(instance.work) & free.devices[:, None]
    choices = {u: tuple(np.flatnonzero(possible[:, u]).tolist()) for u in np.flatnonzero(free.units).tolist()}
    undecided_cuts = []
    for e in range(len(instance.pin_start) - 1):
        pins = instance.pin[instance.pin_start[e] : instance.pin_start[e + 1]]
        own = tuple(pins[free.units[pins]].tolist())
        around = set(device[pins[~free.units[pins]]].tolist())
        for d in devices:
            cost = float(instance.transfer[d, e])
            if cost <= 0.0:
                continue
            inside, outside = d in around, len(around - {d}) > 0
            if inside and (outside or any(d not in choices[u] for u in own)):
                load[d] += cost
            elif any(d in choices[u] for u in own):
                undecided_cuts.append(UndecidedCut(d, cost, own, inside, outside))
    return Subproblem(choices, tuple(load.tolist()), tuple(memory_used.tolist()), tuple(undecided_cuts))
