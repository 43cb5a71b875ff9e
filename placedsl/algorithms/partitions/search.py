"""The search for partitions: annealing from several starts in turn with large neighbourhood search around the best.

All work is counted in steps and in CP-SAT's deterministic time, so that a seed determines the sequence of partitions;
how far it gets within a time limit depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule, anneal_slices, slices
from placedsl.algorithms.partitions.annealing_kernel import anneal
from placedsl.algorithms.partitions.cp_sat_neighbourhood import solve_neighbourhood
from placedsl.algorithms.partitions.instance import BestPartition, even_segments, state_of, value_of
from placedsl.algorithms.partitions.load_kernel import PartitionInstance, PartitionState
from placedsl.algorithms.partitions.neighbourhoods import FreeUnits, free_devices, free_region
from placedsl.algorithms.shared_neighbourhoods import SharedNeighbourhoods
from placedsl.arrays import Booleans, Integers
from placedsl.tolerances import EQUAL_COSTS

#: Steps per slice of annealing, after each of which progress is reported: per unit, and at most (about a second).
STEPS_PER_UNIT, MOST_STEPS = 20_000, 4_000_000
#: The first and the last temperature: the energy of one device whose load is that share above the target.
_HOT, _COLD = 0.03, 0.0002
#: How far below the best value the target of the loads lies, as a share of it.
_MARGINS = (0.01, 0.02)
#: Slices of the first run, and of the longest.
_FIRST, _LONGEST = 1, 16
#: Neighbourhoods without an improvement before annealing resumes, and the deterministic time of each.
_IN_VAIN, _EFFORT = 16, 0.4


@dataclass
class PartitionSearch(BestPartition):
    """A search in progress, with counters."""

    neighbourhoods: int = 0
    units_freed: int = 40
    devices_freed: int = 2


def search_from(instance: PartitionInstance, start: Integers | None, seed: int) -> PartitionSearch:
    """A search from a partition, or from even segments if these are better; its value is inf until one is feasible."""
    first = even_segments(instance)
    candidates = [first] if start is None else [start, first]
    values = [value_of(instance, device) for device in candidates]
    best = int(np.argmin(values))
    return PartitionSearch(instance, candidates[best], values[best], seed)


def run(search: PartitionSearch) -> Iterator[bool]:
    """Search without end; yields after each slice of work whether the best partition has improved."""
    if search.value <= 0.0 or len(search.instance.capacity) < 2:
        return
    count = _FIRST
    while search.value > 0.0:
        for _ in range(3):
            yield from _anneal_run(search, count)
        if np.isfinite(search.value):
            yield from _large_neighbourhood_search(search)
        count = min(_LONGEST, 4 * count)


def _anneal_run(search: PartitionSearch, count: int) -> Iterator[bool]:
    """One annealing run of ``count`` slices: in turn from even segments and from the best partition, hot and cooler."""
    turn, hot = search.runs % 3, _HOT
    search.runs += 1
    device = search.best
    if turn == 0:
        device = even_segments(search.instance, search.rng if search.runs > 1 else None)
    elif turn == 2:
        hot = _HOT / float(search.rng.choice([3.0, 10.0]))
    steps = min(MOST_STEPS, STEPS_PER_UNIT * len(device))
    margin = _MARGINS[int(search.rng.integers(len(_MARGINS)))]
    state, seed = state_of(search.instance, device), int(search.rng.integers(2**31))
    schedules = slices(steps, hot, _COLD, count, ((seed + i) % 2**31 for i in range(count)))
    yield from anneal_slices(search, schedules, partial(anneal_from, search, state, margin))


def anneal_from(
    search: PartitionSearch, state: PartitionState, margin: float, schedule: CoolingSchedule
) -> Integers | None:
    """Anneal ``state`` in place by one schedule; returns the partition found (None: none beats the search's best)."""
    found = search.best.copy()
    undercut = search.value if np.isfinite(search.value) else 4.0 * float(state.load.max())
    value = anneal(search.instance, state, found, undercut, margin, schedule)
    return found if value < undercut else None


def _large_neighbourhood_search(search: PartitionSearch) -> Iterator[bool]:
    """Solve neighbourhoods of the best partition while that helps; they grow while they are solved to optimality."""
    in_vain = 0
    while in_vain < _IN_VAIN and search.value > 0.0:
        better = improve_around(search)
        in_vain = 0 if better else in_vain + 1
        yield better


def improve_around(search: PartitionSearch, shared: SharedNeighbourhoods | None = None) -> bool:
    """Solve one neighbourhood of the best partition; whether that has become better.

    ``shared``: the line to others who do so (None: nobody does).
    """
    instance, state = search.instance, state_of(search.instance, search.best)
    by_device = search.neighbourhoods % 2 == 0

    def drawn() -> FreeUnits:
        if by_device:
            return free_devices(instance, state, search.devices_freed, search.rng)
        return free_region(instance, state, search.units_freed, search.rng)

    free = drawn() if shared is None else shared.draw(search.best, drawn, _flags)
    search.neighbourhoods += 1
    seed = int(search.rng.integers(2**31))
    device, final = solve_neighbourhood(instance, search.best, search.value, free, _EFFORT, seed)
    if shared is not None:
        shared.done()
    better = device is not None and search.take(device)
    if device is not None and not better and value_of(instance, device) <= search.value * (1.0 + EQUAL_COSTS):
        # Equally good and different: continue from there.
        search.best, search.value = device, min(search.value, value_of(instance, device))
    if by_device:
        most = len(instance.capacity)
        search.devices_freed = min(most, 2 + int(search.rng.integers(3))) if final else 2
    else:
        search.units_freed = min(150, search.units_freed + 4) if final else max(15, search.units_freed - 4)
    return better


def _flags(free: FreeUnits) -> Booleans:
    """What is free: units, and devices."""
    return np.concatenate((free.units, free.devices))
