"""Dynamic programming over ideals: the best pipeline of contiguous sets.   Tarnawski et al. 2020, section 5.1.1.

A contiguous placement is a chain of ideals; the set of one device is what it adds to the chain.  The state
is an ideal and how many devices of each class have been used.  From each ideal the kernel walks over its
supersets by adding units in ascending rank, so that every (ideal, superset) pair is met once and its cost
is had from the one before by the tensors of a single unit: the work is proportional to the pairs that
are lighter than the best placement known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.ideal_kernel import extend, remaining
from placedsl.algorithms.ideals import Ideals
from placedsl.graph.contraction import Quotient
from placedsl.graph.graph import Floats, Integers


@dataclass(frozen=True, eq=False)
class DeviceClasses:
    """Device classes: how many devices each has, the memory of one (inf: no limit), and their positions."""

    counts: tuple[int, ...]
    memory: tuple[float, ...]
    devices: tuple[Integers, ...]

    @property
    def total(self) -> int:
        """How many devices there are."""
        return sum(self.counts)


@dataclass(frozen=True, eq=False)
class Chain:
    """The best chain found: its largest load, the device of each unit, and whether the search was complete.

    ``value`` is inf and ``device`` None where nothing fits.  ``pairs`` counts the pairs of ideals that were met.
    """

    value: float
    device: Integers | None
    complete: bool
    pairs: int


def best_chain(
    quotient: Quotient,
    lattice: Ideals,
    classes: DeviceClasses,
    *,
    at_most: float = np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Chain:
    """The chain with the least largest load.  ``quotient.work`` and ``transfer`` have one row a device class.

    ``at_most``: only chains this good are looked for (the bound prunes).  ``deadline`` is a
    ``time.monotonic()`` value; when it passes or ``stop`` says so, the search ends incomplete.
    """
    units = quotient.units
    order = lattice.order
    rank = np.empty(units, dtype=np.int64)
    rank[order] = np.arange(units)
    work = np.ascontiguousarray(quotient.work[:, order])
    possible = np.isfinite(work)
    least = work.min(axis=0) if len(work) else np.zeros(units)
    if not np.isfinite(least).all():
        return Chain(np.inf, None, True, 0)
    tensors = np.repeat(np.arange(len(quotient.tensor_producer)), np.diff(quotient.pin_start))
    by_unit = np.argsort(rank[quotient.pin_unit], kind="stable")
    touch_start = np.searchsorted(rank[quotient.pin_unit][by_unit], np.arange(units + 1))
    touched = tensors[by_unit]
    pins = np.diff(quotient.pin_start)

    counts = np.array(classes.counts, dtype=np.int64)
    stride = np.ones(len(counts), dtype=np.int64)
    for c in range(1, len(counts)):
        stride[c] = stride[c - 1] * (counts[c - 1] + 1)
    states = int(np.prod(counts + 1))
    digits = (np.arange(states)[:, None] // stride[None, :]) % (counts[None, :] + 1)
    free = digits < counts[None, :]
    value = np.full((lattice.count, states), np.inf)
    value[0, 0] = -np.inf
    came_from = np.full((lattice.count, states), -1, dtype=np.int32)
    came_by = np.full((lattice.count, states), -1, dtype=np.int8)
    limit = np.array([at_most * (1 + 1e-12) if np.isfinite(at_most) else np.inf])
    spare = (classes.total - digits.sum(axis=1)).astype(np.float64)
    rest = remaining(lattice.cover_start, lattice.cover_rank, lattice.cover_ideal, least)
    pairs, complete, done = 0, True, 0
    batch = 16
    while done < lattice.count:
        end = min(lattice.count, done + batch)
        began = time.monotonic()
        pairs += extend(
            done, end, lattice.cover_start, lattice.cover_rank, lattice.cover_ideal, units,
            np.where(possible, work, 0.0), possible, rest, quotient.memory[order],
            np.array(classes.memory), touch_start, touched, pins, quotient.transfer,
            free, stride, spare, value, came_from, came_by, limit,
        )  # fmt: skip
        took = time.monotonic() - began
        batch = batch * 2 if took < 0.05 else max(1, batch // 2) if took > 0.3 else batch
        done = end
        if done < lattice.count and ((deadline is not None and time.monotonic() > deadline) or (stop and stop())):
            complete = False
            break
    final = value[lattice.count - 1]
    best = float(final.min())
    if not np.isfinite(best):
        return Chain(np.inf, None, complete, pairs)
    # Of equally good chains the one with the fewest devices.
    good = np.flatnonzero(final <= best * (1 + 1e-12))
    state = int(good[np.argmax(spare[good])])
    return Chain(best, _read_back(lattice, classes, stride, came_from, came_by, state), complete, pairs)


def _read_back(
    lattice: Ideals, classes: DeviceClasses, stride: Integers, came_from: np.ndarray, came_by: np.ndarray, state: int
) -> Integers:
    """The device of each unit, from the last ideal back to the empty one."""
    ideal = lattice.count - 1
    inside = np.ones(len(lattice.order), dtype=bool)
    device = np.full(len(lattice.order), -1, dtype=np.int64)
    used = [0] * len(classes.counts)
    members = _Members(lattice)
    while ideal != 0:
        kind, previous = int(came_by[ideal, state]), int(came_from[ideal, state])
        smaller = members.of(previous)
        own = inside & ~smaller
        device[lattice.order[own]] = classes.devices[kind][used[kind]]
        used[kind] += 1
        inside, ideal, state = smaller, previous, state - int(stride[kind])
    return device


class _Members:
    """Which ranks are in an ideal: along one path of covers from the empty one."""

    def __init__(self, lattice: Ideals) -> None:
        source = np.repeat(np.arange(lattice.count), np.diff(lattice.cover_start))
        self.parent = np.zeros(lattice.count, dtype=np.int64)
        self.added = np.full(lattice.count, -1, dtype=np.int64)
        self.parent[lattice.cover_ideal] = source
        self.added[lattice.cover_ideal] = lattice.cover_rank
        self.units = len(lattice.order)

    def of(self, ideal: int) -> np.ndarray:
        """A flag a rank."""
        inside = np.zeros(self.units, dtype=bool)
        while ideal != 0:
            inside[self.added[ideal]] = True
            ideal = int(self.parent[ideal])
        return inside


def device_classes(kinds: Integers, memory: Floats) -> DeviceClasses:
    """Device classes from a class number and a memory limit a device."""
    members = tuple(np.flatnonzero(kinds == k) for k in range(int(kinds.max(initial=-1)) + 1))
    return DeviceClasses(tuple(len(m) for m in members), tuple(float(memory[m[0]]) for m in members), members)
