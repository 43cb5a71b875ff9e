"""Device classes of a few units and hyperedges, and the loads of sets on them."""

from __future__ import annotations

import itertools

import numpy as np

from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.units import Hyperedges


def random_device(seed: int) -> DeviceClass:
    """Up to nine units: chains, stars and clutter, units without work, units that are not supported, ties."""
    rng = np.random.default_rng(seed)
    units = int(rng.integers(1, 10))
    work = rng.choice([0.0, 0.5, 1.0, 1.0, 2.5, 1e-7, 1 / 3], units)
    work[rng.random(units) < 0.1] = np.inf
    pins: dict[tuple[int, ...], float] = {}
    for _ in range(int(rng.integers(0, 2 * units))):
        size = int(rng.integers(2, 5))
        if size <= units:
            chosen = tuple(sorted(rng.choice(units, size, replace=False).tolist()))
            pins[chosen] = float(rng.choice([0.001, 0.1, 1.0, 1 / 7, 30.0]))
    return DeviceClass(1, work, np.zeros(units), Hyperedges(tuple(pins), np.array(list(pins.values()))))


def load(device: DeviceClass, taken: tuple[bool, ...]) -> float:
    """Work of the units taken, and every hyperedge that is cut."""
    own = sum(w for w, t in zip(device.work, taken, strict=True) if t)
    cut = sum(
        cost
        for pins, cost in zip(device.edges.pins, device.edges.cost, strict=True)
        if 0 < sum(taken[p] for p in pins) < len(pins)
    )
    return float(own + cut)


def cheapest(device: DeviceClass, price: np.ndarray, reached: float = 1.0) -> float:
    """The least load of sets worth so much, by enumeration; inf where none is that runs anywhere."""
    sets = itertools.product((False, True), repeat=len(price))
    worth = (taken for taken in sets if float(price @ np.array(taken)) >= reached)
    return min((load(device, taken) for taken in worth), default=np.inf)
