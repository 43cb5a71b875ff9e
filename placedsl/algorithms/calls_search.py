"""The search for schedules of calls: annealing from several starts, in turn hot and less hot.

Everything is counted in steps, so that one seed gives one sequence of answers; how far it gets within a time limit
depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.calls import Answer, answer_of, calls_of, fits, latency_of, places_of
from placedsl.algorithms.calls_kernel import Calls, Scratch, scratch
from placedsl.algorithms.calls_moves import Schedule, anneal
from placedsl.algorithms.calls_start import filled, on_hosts
from placedsl.graph.graph import Integers
from placedsl.problem import Problem

#: Steps of one slice of annealing, after which what was found is told: so many a node, up to about a second's.
STEPS_A_NODE, LEAST_STEPS, MOST_STEPS = 200, 20_000, 100_000
#: Where annealing begins, and where it ends, relative to the value.
_HOT, _COLD = 0.05, 0.0001
#: Slices of the first run, and of the longest.
_FIRST, _LONGEST = 4, 16
#: Random fills that are tried before there is a start.
_FILLS = 20


@dataclass
class Search:
    """A search in progress: the best places (empty: none feasible yet), their latency, random numbers."""

    calls: Calls
    best: Integers
    value: float
    seed: int
    rng: np.random.Generator = field(init=False)
    room: Scratch = field(init=False)
    unlike: bool = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.room = scratch(self.calls)
        self.unlike = not alike(self.calls)

    @property
    def answer(self) -> Answer | None:
        """The best found, as answers have it."""
        return answer_of(self.calls, self.best) if np.isfinite(self.value) else None

    def take(self, place: Integers) -> bool:
        """Keep places that are better; their latency is computed anew."""
        value = latency_of(self.calls, place)
        if not value < self.value * (1.0 - 1e-12):
            return False
        self.best, self.value = place.copy(), value
        return True


def alike(calls: Calls) -> bool:
    """Whether all accelerators are one like the other."""
    rows = np.flatnonzero(~calls.host)
    same = [
        (x[rows] == x[rows[:1]]).all() if len(rows) else True for x in (calls.time, calls.transfer, calls.capacity)
    ]  # fmt: skip
    return bool(all(same))


def begin(problem: Problem, start: Integers | None, seed: int, piece: Integers | None = None) -> Search:
    """A search from a device and a piece for each node, or from nothing; its value is inf until one is feasible."""
    calls = calls_of(problem)
    return begun(calls, None if start is None else places_of(calls, np.asarray(start), piece), seed)


def begun(calls: Calls, start: Integers | None, seed: int) -> Search:
    """A search from places, or from none."""
    search = Search(calls, np.zeros(0, dtype=np.int64), np.inf, seed)
    if start is not None:
        search.take(start)
    return search


def run(search: Search) -> Iterator[bool]:
    """Search for ever; yields after each slice of work whether the best answer has become better."""
    calls = search.calls
    if len(calls.unit) == 0:
        return
    for start in _starts(search):
        yield start is not None and search.take(start)
    # With one call an accelerator there are far fewer schedules, and good ones are nearly as good.
    single = begun(calls._replace(pieces=1), None, search.seed) if calls.pieces > 1 else None
    slices = _FIRST
    while True:
        if single is not None:
            for better in _round(single, slices):
                yield better and search.take(single.best * calls.pieces)
        yield from _round(search, slices)
        slices = min(_LONGEST, 2 * slices)


def _round(search: Search, slices: int) -> Iterator[bool]:
    """Runs of every kind, each of so many slices."""
    for _ in range(4):
        yield from _anneal(search, slices)


def _starts(search: Search) -> Iterator[Integers | None]:
    yield on_hosts(search.calls)
    yield filled(search.calls, None)
    for _ in range(_FILLS):
        yield filled(search.calls, search.rng)


def _anneal(search: Search, slices: int) -> Iterator[bool]:
    """One run of annealing: from a random fill, from the best, hot or less hot."""
    calls, turn, hot = search.calls, search.runs % 4, _HOT
    search.runs += 1
    place = search.best if np.isfinite(search.value) else None
    if turn == 0 or place is None:
        other = filled(calls, search.rng)
        place = place if other is None or not np.isfinite(latency_of(calls, other)) else other
        hot *= 8.0
    elif turn > 1:
        hot = _HOT / float(search.rng.choice([2.0, 5.0, 20.0]))
    if place is None:
        yield False
        return
    place = place.copy()
    steps = min(MOST_STEPS, max(LEAST_STEPS, STEPS_A_NODE * len(place)))
    factor = (_COLD / hot) ** (1.0 / slices)
    for i in range(slices):
        found = search.best.copy() if np.isfinite(search.value) else place.copy()
        seed = int(search.rng.integers(2**31))
        schedule = Schedule(steps, hot * factor**i, hot * factor ** (i + 1), seed)
        anneal(calls, place, found, search.value, search.room, search.unlike, schedule)
        yield search.take(found)


__all__ = ["Search", "begin", "begun", "fits", "run"]
