"""The search for schedules of subgraph calls: annealing from several starts, in turn hot and cooler.

All work is counted in steps, so that a seed determines the sequence of placements; how far it gets within a time limit
depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule, anneal_slices, improves, random_seeds, slices
from placedsl.algorithms.subgraph_calls.annealing_kernel import anneal
from placedsl.algorithms.subgraph_calls.initial_placements import all_on_host, fill_accelerators
from placedsl.algorithms.subgraph_calls.instance import (
    CallPlacement,
    call_instance,
    call_placement,
    latency_of,
    places_of,
)
from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance, Scratch, new_scratch
from placedsl.arrays import Integers
from placedsl.problem.problem import Problem

#: Steps per slice of annealing, after each of which progress is reported: per node, at least and at most (a second).
STEPS_PER_NODE, LEAST_STEPS, MOST_STEPS = 200, 20_000, 100_000
#: The first and the last temperature, as shares of the latency.
_HOT, _COLD = 0.05, 0.0001
#: Slices of the first run, and of the longest.
_FIRST, _LONGEST = 4, 16
#: Random fills tried for a first placement.
_FILLS = 20


@dataclass
class CallSearch:
    """A search in progress: the best places (n; empty: none feasible yet), their latency in seconds, and counters."""

    instance: CallInstance
    best: Integers
    value: float
    seed: int
    rng: np.random.Generator = field(init=False)
    scratch: Scratch = field(init=False)
    unequal: bool = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.scratch = new_scratch(self.instance)
        self.unequal = not equal_accelerators(self.instance)

    @property
    def answer(self) -> CallPlacement | None:
        """The best placement found (None: none yet)."""
        return call_placement(self.instance, self.best) if np.isfinite(self.value) else None

    def take(self, place: Integers) -> bool:
        """Keep places (n) if they are better; their latency is computed from scratch."""
        value = latency_of(self.instance, place)
        if not improves(value, self.value):
            return False
        self.best, self.value = place.copy(), value
        return True


def equal_accelerators(instance: CallInstance) -> bool:
    """Whether all accelerators have the same times and the same memory."""
    rows = np.flatnonzero(~instance.host)
    arrays = (instance.time, instance.transfer, instance.capacity)
    same = [(x[rows] == x[rows[:1]]).all() if len(rows) else True for x in arrays]
    return bool(all(same))


def search_problem(problem: Problem, start: Integers | None, seed: int, slot: Integers | None = None) -> CallSearch:
    """A search from a device and a slot (from 1) for each node, or from nothing; its value is inf until one is
    feasible.
    """
    instance = call_instance(problem)
    return search_from(instance, None if start is None else places_of(instance, np.asarray(start), slot), seed)


def search_from(instance: CallInstance, start: Integers | None, seed: int) -> CallSearch:
    """A search from places (n; None: from nothing)."""
    search = CallSearch(instance, np.zeros(0, dtype=np.int64), np.inf, seed)
    if start is not None:
        search.take(start)
    return search


def run(search: CallSearch) -> Iterator[bool]:
    """Search without end; yields after each slice of work whether the best placement has improved."""
    instance = search.instance
    if len(instance.unit) == 0:
        return
    for start in _initial_placements(search):
        yield start is not None and search.take(start)
    # With one slot per accelerator there are far fewer schedules, and the best are nearly as good.
    single = search_from(instance._replace(slots=1), None, search.seed) if instance.slots > 1 else None
    count = _FIRST
    while True:
        if single is not None:
            for better in _annealing_round(single, count):
                yield better and search.take(single.best * instance.slots)
        yield from _annealing_round(search, count)
        count = min(_LONGEST, 2 * count)


def _annealing_round(search: CallSearch, count: int) -> Iterator[bool]:
    """One run of each kind, of ``count`` slices each."""
    for _ in range(4):
        yield from _anneal(search, count)


def _initial_placements(search: CallSearch) -> Iterator[Integers | None]:
    """All nodes on a host, and accelerators filled in the graph's order and in random orders."""
    yield all_on_host(search.instance)
    yield fill_accelerators(search.instance, None)
    for _ in range(_FILLS):
        yield fill_accelerators(search.instance, search.rng)


def _anneal(search: CallSearch, count: int) -> Iterator[bool]:
    """One annealing run: from a random fill or from the best placement, hot or cooler."""
    instance, turn, hot = search.instance, search.runs % 4, _HOT
    search.runs += 1
    place = search.best if np.isfinite(search.value) else None
    if turn == 0 or place is None:
        other = fill_accelerators(instance, search.rng)
        place = place if other is None or not np.isfinite(latency_of(instance, other)) else other
        hot *= 8.0
    elif turn > 1:
        hot = _HOT / float(search.rng.choice([2.0, 5.0, 20.0]))
    if place is None:
        yield False
        return
    steps = min(MOST_STEPS, max(LEAST_STEPS, STEPS_PER_NODE * len(place)))
    schedules = slices(steps, hot, _COLD, count, random_seeds(search.rng))
    yield from anneal_slices(search, schedules, partial(_anneal_from, search, place.copy()))


def _anneal_from(search: CallSearch, place: Integers, schedule: CoolingSchedule) -> Integers | None:
    """Anneal ``place`` in place by one schedule; returns the places found (None: none beats the search's best)."""
    found = search.best.copy() if np.isfinite(search.value) else place.copy()
    value = anneal(search.instance, place, found, search.value, search.scratch, search.unequal, schedule)
    return found if value < search.value else None


__all__ = ["CallSearch", "run", "search_from", "search_problem"]
