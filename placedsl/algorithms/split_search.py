"""The search for good splits: annealing from several starts, and parts of the best split solved anew, in turn.

Everything is counted in steps and in CP-SAT's deterministic time, so that one seed gives one sequence of splits; how
far it gets within a time limit depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.neighbourhood import some_devices, some_units
from placedsl.algorithms.part_cp_sat import solve_part
from placedsl.algorithms.split import chunks, state_of, value_of
from placedsl.algorithms.split_kernel import Schedule, Split, State, anneal
from placedsl.graph.graph import Integers

#: Steps of one slice of annealing, after which what was found is told: so many a unit, up to about a second's.
STEPS_A_UNIT, MOST_STEPS = 20_000, 4_000_000
#: Where annealing begins, and where it ends: relative to one device that is that share above the target.
_HOT, _COLD = 0.03, 0.0002
#: How far below the best value the target lies.
_BELOW = (0.01, 0.02)
#: Slices of the first run, and of the longest.
_FIRST, _LONGEST = 1, 16
#: Parts solved in vain before annealing goes on, and the deterministic time of each.
_IN_VAIN, _EFFORT = 16, 0.4


@dataclass
class Search:
    """A search in progress: the best split and its value, and the random numbers that are left."""

    split: Split
    best: Integers
    value: float
    seed: int
    rng: np.random.Generator = field(init=False)
    runs: int = 0
    parts: int = 0
    units_freed: int = 40
    devices_freed: int = 2

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def take(self, device: Integers) -> bool:
        """Keep a split that is better; its value is computed anew."""
        value = value_of(self.split, device)
        if value >= self.value * (1.0 - 1e-12):
            return False
        self.best, self.value = device.copy(), value
        return True


def begin(split: Split, start: Integers | None, seed: int) -> Search:
    """A search from a split, or from pieces of the order when there is none; its value is inf until one is feasible."""
    first = chunks(split)
    candidates = [first] if start is None else [start, first]
    values = [value_of(split, device) for device in candidates]
    best = int(np.argmin(values))
    return Search(split, candidates[best], values[best], seed)


def run(search: Search) -> Iterator[bool]:
    """Search for ever; yields after each slice of work whether the best split has become better."""
    if search.value <= 0.0 or len(search.split.capacity) < 2:
        return
    slices = _FIRST
    while True:
        for _ in range(3):
            yield from _anneal_from_somewhere(search, slices)
        if np.isfinite(search.value):
            yield from _solve_parts(search)
        slices = min(_LONGEST, 4 * slices)


def _anneal_from_somewhere(search: Search, slices: int) -> Iterator[bool]:
    """One run of annealing: in turn from pieces of the order and from the best split, hot and less hot."""
    turn, hot = search.runs % 3, _HOT
    search.runs += 1
    device = search.best
    if turn == 0:
        device = chunks(search.split, search.rng if search.runs > 1 else None)
    elif turn == 2:
        hot = _HOT / float(search.rng.choice([3.0, 10.0]))
    steps = min(MOST_STEPS, STEPS_A_UNIT * len(device))
    below = _BELOW[int(search.rng.integers(len(_BELOW)))]
    state = state_of(search.split, device)
    for schedule in sliced(Schedule(slices * steps, hot, _COLD, below, int(search.rng.integers(2**31))), slices):
        yield anneal_once(search, state, schedule)


def sliced(whole: Schedule, slices: int) -> Iterator[Schedule]:
    """A schedule in pieces that follow one another."""
    factor = (whole.cold / whole.hot) ** (1.0 / slices)
    for i in range(slices):
        hot = whole.hot * factor**i
        yield Schedule(whole.steps // slices, hot, hot * factor, whole.below, (whole.seed + i) % 2**31)


def anneal_once(search: Search, state: State, schedule: Schedule) -> bool:
    """One piece of annealing; whether it found a better split."""
    found = search.best.copy()
    undercut = search.value if np.isfinite(search.value) else 4.0 * float(state.load.max())
    anneal(search.split, state, found, undercut, schedule)
    return search.take(found)


def _solve_parts(search: Search) -> Iterator[bool]:
    """Free some of the best split and solve for it while that helps; more is freed while it is solved to the end."""
    split, in_vain = search.split, 0
    while in_vain < _IN_VAIN:
        state = state_of(split, search.best)
        by_device = search.parts % 2 == 0
        if by_device:
            freed = some_devices(split, state, search.devices_freed, search.rng)
        else:
            freed = some_units(split, state, search.units_freed, search.rng)
        search.parts += 1
        device, final = solve_part(split, search.best, search.value, freed, _EFFORT, int(search.rng.integers(2**31)))
        better = device is not None and search.take(device)
        in_vain = 0 if better else in_vain + 1
        if device is not None and not better and value_of(split, device) <= search.value * (1.0 + 1e-9):
            # As good and different: another place to go on from.
            search.best, search.value = device, min(search.value, value_of(split, device))
        if by_device:
            most = len(split.capacity)
            search.devices_freed = min(most, 2 + int(search.rng.integers(3))) if final else 2
        else:
            search.units_freed = min(150, search.units_freed + 4) if final else max(15, search.units_freed - 4)
        yield better
