"""Parts of a split that are solved anew while all else stays: which units to free, and what then remains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.split_kernel import Split, State
from placedsl.graph.graph import Booleans, Integers

#: Loads within this share of the largest are at the bottleneck.
_NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class Freed:
    """Which units may move (a flag a unit), and the devices they may go to (a flag a device)."""

    units: Booleans
    devices: Booleans


def some_devices(split: Split, state: State, count: int, rng: np.random.Generator) -> Freed:
    """All units of the bottleneck and of ``count - 1`` further devices, mostly such as it exchanges tensors with."""
    devices = len(split.capacity)
    worst = int(np.argmax(state.load))
    shared = (state.inside[state.inside[:, worst] > 0] > 0).sum(axis=0).astype(float)
    weight = shared + 0.1 * shared.max(initial=1.0) + 1e-9
    weight[worst] = 0.0
    others = rng.choice(devices, size=min(count, devices) - 1, replace=False, p=weight / weight.sum())
    chosen = np.zeros(devices, dtype=bool)
    chosen[worst] = True
    chosen[others] = True
    return Freed(chosen[state.device], chosen)


def some_units(split: Split, state: State, count: int, rng: np.random.Generator) -> Freed:
    """``count`` units about a few at the border of the bottleneck, nearest first; they may go anywhere."""
    units = len(split.memory)
    critical = state.load[state.device] >= state.load.max() * (1.0 - _NEAR)
    broken = np.flatnonzero((state.inside > 0).sum(axis=1) > 1)
    border = np.zeros(units, dtype=bool)
    for e in broken.tolist():
        border[split.pin[split.pin_start[e] : split.pin_start[e + 1]]] = True
    from_these = np.flatnonzero(border & critical)
    if not len(from_these):
        from_these = np.flatnonzero(critical)
    begin = rng.choice(from_these, size=min(len(from_these), int(rng.integers(1, 5))), replace=False).tolist()
    free, waiting = np.zeros(units, dtype=bool), list(begin)
    free[begin] = True
    reached = len(begin)
    while waiting and reached < count:
        # Not strictly breadth first, so that one border gives many neighbourhoods.
        u = waiting.pop(int(rng.integers(min(len(waiting), 4))))
        for e in split.touched[split.touch_start[u] : split.touch_start[u + 1]].tolist():
            for v in split.pin[split.pin_start[e] : split.pin_start[e + 1]].tolist():
                if not free[v] and reached < count:
                    free[v] = True
                    waiting.append(v)
                    reached += 1
    return Freed(free, np.ones(len(split.capacity), dtype=bool))


@dataclass(frozen=True)
class Crossing:
    """An edge that the freed units decide on: device ``device`` pays ``cost`` when it holds some of its units, not all.

    ``units``: its freed units; ``inside``: the device holds some fixed unit of it; ``outside``: another device does.
    Not both: then it is paid whatever is decided.
    """

    device: int
    cost: float
    units: tuple[int, ...]
    inside: bool
    outside: bool


@dataclass(frozen=True, eq=False)
class Part:
    """The small problem: freed units with the devices that each may go to, what is fixed, and what is decided."""

    choices: dict[int, tuple[int, ...]]
    load: tuple[float, ...]
    held: tuple[float, ...]
    crossings: tuple[Crossing, ...]


def part_of(split: Split, device: Integers, freed: Freed) -> Part:
    """What remains to be decided when all units but the freed ones stay."""
    devices = range(len(split.capacity))
    load, held = np.zeros(len(devices)), np.zeros(len(devices))
    fixed = np.flatnonzero(~freed.units)
    np.add.at(load, device[fixed], split.work[device[fixed], fixed])
    np.add.at(held, device[fixed], split.memory[fixed])
    possible = np.isfinite(split.work) & freed.devices[:, None]
    choices = {u: tuple(np.flatnonzero(possible[:, u]).tolist()) for u in np.flatnonzero(freed.units).tolist()}
    crossings = []
    for e in range(len(split.pin_start) - 1):
        pins = split.pin[split.pin_start[e] : split.pin_start[e + 1]]
        own = tuple(pins[freed.units[pins]].tolist())
        around = set(device[pins[~freed.units[pins]]].tolist())
        for d in devices:
            cost = float(split.transfer[d, e])
            if cost <= 0.0:
                continue
            inside, outside = d in around, len(around - {d}) > 0
            if inside and (outside or any(d not in choices[u] for u in own)):
                load[d] += cost
            elif any(d in choices[u] for u in own):
                crossings.append(Crossing(d, cost, own, inside, outside))
    return Part(choices, tuple(load.tolist()), tuple(held.tolist()), tuple(crossings))
