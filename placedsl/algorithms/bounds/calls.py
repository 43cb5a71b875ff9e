"""Lower bounds on the latency of calls, by dynamic programming over the ideals of ever less reduced problems.

The state (an ideal, the calls so far, when each tensor that is still read came to be) says all that the future of a
schedule depends on, where accelerators are alike and have one piece each: what comes out is then the optimum, up to
what the reduction left out.  Colocation is kept where nodes are merged (:mod:`.calls_reduction`), else left out.

Backwards from the end, each *narrow* ideal (one node last, all outside after it) is explored on its own:

* T(c), the least time from the end of its node until all is done, by the calls left, when only its tensor exists;
* S(c), the same from just before its node, which reads what it reads for nothing.

T settles every schedule that passes through the ideal.  S bounds what remains of any state before it: all that was not
run before the node can be taken away, and each node on a path to it takes its time, before its call or in it.  And the
call that holds the node begins within the segment: it pays to read what is open there, and the time of the rest of the
segment (:func:`_fill_ahead`), or the node is on the host.  What these bounds rule out is not explored.  An exploration
that takes too long is given up; the time along paths then stands for T and S.

Each exploration that finds T keeps the way to it, from one narrow ideal to a next one.  Joined from the beginning, they
are a schedule of the reduced problem, and what was merged or taken away is put back (:mod:`.calls_placement`): often
that is a schedule of the least latency before nothing is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.bounds.calls_chains import shorten_chains
from placedsl.algorithms.bounds.calls_kernel import Labels, Lattice, Room, begin, explore
from placedsl.algorithms.bounds.calls_lattice import lattice_of, narrow_ideals, rooms, without_last
from placedsl.algorithms.bounds.calls_placement import Run, Way, joined, placed, way
from placedsl.algorithms.bounds.calls_reduction import Reduced, reduce, relaxed
from placedsl.algorithms.calls import Answer, answer_of, calls_of, latency_of, structure
from placedsl.algorithms.calls_kernel import Calls
from placedsl.algorithms.calls_start import filled, on_hosts
from placedsl.graph.graph import Floats
from placedsl.problem import Problem

#: How much is left out at each level: of time and memory, as a share; of chains, as a share of a call's memory.
LEVELS = ((0.01, 0.1), (0.01, 0.05), (0.01, 0.03), (0.01, 0.02), (0.01, 0.0), (0.001, 0.0), (1e-5, 0.0), (0.0, 0.0))
#: More ideals than this are not looked at; more states than this are not kept.
MOST_IDEALS, MOST_STATES = 60_000, 1_000_000
#: What rounding may take from a sum of a few thousand terms, relatively; taken off every bound.
ROUNDING = 1e-11
#: Ideals between two looks at the clock, and the share of the time left that one exploration may take.
_CHUNK, _SHARE = 64, 0.2
#: How far above the best bound the least latency is looked for first, relatively, and where at most.
_STEP, _LONGEST_STEP = 0.1, 100.0


def fits(problem: Problem) -> list[str]:
    """Why the bounds do not hold, in the user's words; further constraints only make the optimum larger."""
    against = structure(problem)
    if problem.soft:
        against.append("it does not know soft constraints")
    return against


def proven_bounds(
    problem: Problem,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[float, Answer | None]]:
    """Ever better bounds, and the better schedules met on the way; nothing where the problem is another one.

    Ends when a bound reaches ``upper()``, the value of the best known schedule, or that of the best found here: then
    that is optimal.  Schedules keep to memory limits and colocation; other constraints they do not know.
    """
    if not fits(problem):
        yield from bounds_of(calls_of(problem), upper=upper, deadline=deadline, stop=stop)


def bounds_of(
    calls: Calls,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[float, Answer | None]]:
    """The same from arrays."""
    best, found = longest_path(calls) * (1.0 - ROUNDING), _start(calls)
    least = np.inf if found is None else found.latency
    best = min(best, least)
    yield best, found if least < upper() else None
    known: dict[int, Floats] = {}
    limits = Limits(deadline, stop)
    more = _STEP
    for light, chains in LEVELS:
        problem = relaxed(calls)
        reduce(problem, light, exact_times=calls.pieces == 1)
        if chains and shorten_chains(problem, chains):
            reduce(problem, light, exact_times=calls.pieces == 1)
        elif chains:
            continue
        if not problem.fast:
            continue
        lattice = lattice_of(problem, MOST_IDEALS)
        if lattice is None:
            return
        settled = False
        while not settled and not limits.passed:
            # Above what is known nothing need be proven.  Where that is far away, a limit nearer by is tried first.
            below = min(upper(), least) * (1.0 + 2.0 * ROUNDING)
            if best > 0.0 and more < _LONGEST_STEP:
                below = min(below, best * (1.0 + more))
            for bound, runs in least_latency(lattice, below, problem, known, limits):
                answer = None if runs is None else placed(calls, problem, lattice, runs)
                # What was known may have been told by another, who has the schedule: any that is better is told.
                better = answer is not None and answer.latency < min(least, upper())
                if better and answer is not None:
                    least = answer.latency
                value = min(bound * (1.0 - ROUNDING), upper(), least)
                if value > best or better:
                    best = max(best, value)
                    yield best, answer if better else None
            settled = bound < below or below >= min(upper(), least)
            more *= 1.0 if settled else 2.0
        if best >= min(upper(), least) * (1.0 - 4.0 * ROUNDING) or limits.passed:
            return


def _start(calls: Calls) -> Answer | None:
    """A schedule that is found at once."""
    places = [place for place in (on_hosts(calls), filled(calls, None)) if place is not None]
    answers = [answer_of(calls, place) for place in places if np.isfinite(latency_of(calls, place))]
    return min(answers, key=lambda answer: answer.latency, default=None)


def longest_path(calls: Calls) -> float:
    """The longest path with each node on its best device."""
    least = calls.time.min(axis=0)
    finish = np.zeros(len(least))
    for v in calls.order.tolist():
        makers = calls.producer[calls.taken[calls.taken_start[v] : calls.taken_start[v + 1]]]
        finish[v] = least[v] + finish[makers].max(initial=0.0)
    return float(finish.max(initial=0.0))


@dataclass
class Limits:
    """When to stop: a ``time.monotonic()`` value, and what is asked now and then."""

    deadline: float | None = None
    stop: Callable[[], bool] = lambda: False

    @property
    def passed(self) -> bool:
        """It is time to stop."""
        return self.stop() or (self.deadline is not None and time.monotonic() > self.deadline)

    def share(self) -> Limits:
        """The limits of one exploration of several."""
        if self.deadline is None:
            return self
        now = time.monotonic()
        return Limits(now + _SHARE * max(0.0, self.deadline - now), self.stop)


@dataclass
class _Sweep:
    """A sweep from the end to the beginning.  ``onward``: at least from the end of each node until all is done, by the
    calls left; ``down``: from its start; ``rest``: T of each narrow ideal, 0 for the last of all; ``narrow``: these and
    their last nodes; ``ways``: how T is attained, by narrow ideal and calls left."""

    lattice: Lattice
    upper: float
    down: Floats
    narrow: list[tuple[int, int]]
    labels: Labels
    room: Room
    onward: Floats = field(init=False)
    rest: Floats = field(init=False)
    tensors: list[list[tuple[float, list[int]]]] = field(init=False)
    ways: dict[tuple[int, int], Way] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lattice = self.lattice
        self.onward = np.zeros_like(self.down)
        self.rest = np.zeros((len(self.narrow) + 1, lattice.calls + 1))
        self.tensors = [
            [
                (float(lattice.into[t]), lattice.reader[lattice.read_start[t] : lattice.read_start[t + 1]].tolist())
                for t in lattice.made[lattice.made_start[v] : lattice.made_start[v + 1]].tolist()
            ]
            for v in range(len(lattice.fast))
        ]


def least_latency(
    lattice: Lattice, upper: float, problem: Reduced, known: dict[int, Floats], limits: Limits
) -> Iterator[tuple[float, list[Run] | None]]:
    """Bounds that end with the least latency, or ``upper`` where that is less, and with what runs in which order then.

    ``known``: how long it takes at least from the start of each node, by the calls left, if what it reads is free: what
    problems reduced further said, to which what is found here is added.
    """
    names = problem.order()
    states = lattice.calls + 1
    down = np.array([known.get(v, np.zeros(states)) for v in names]).reshape(len(names), states)
    narrow = narrow_ideals(lattice)
    for number, (i, _) in enumerate(narrow):
        lattice.narrow[i] = number
    sweep = _Sweep(lattice, upper, down, narrow, *rooms(lattice, MOST_STATES))
    best = np.minimum(lattice.slow, lattice.fast)
    first = _first_starts(lattice, best)
    above = len(lattice.narrow)
    for number in range(len(narrow) - 1, -1, -1):
        i, v = narrow[number]
        _fill(sweep, i, above, number + 1)
        above = i
        _follow(sweep, v)
        value = _explored(sweep, i, False, upper - first[v] - best[v], limits.share())
        _remember(sweep, number)
        sweep.rest[number] = sweep.onward[v] if value is None else np.maximum(value, sweep.onward[v])
        j = without_last(lattice, i, v)
        # Nothing lies before the first nodes, for which S would be of use.
        value = None if j == 0 else _explored(sweep, j, True, upper - first[v], limits.share())
        if value is not None:
            sweep.down[v] = np.maximum(sweep.down[v], value)
        yield first[v] + float(sweep.down[v, -1]), None
        if limits.passed:
            return
    _fill(sweep, -1, above, 0)
    value = _explored(sweep, 0, False, upper, limits)
    _remember(sweep, -1)
    starts = [v for v in range(len(names)) if lattice.maker_start[v] == lattice.maker_start[v + 1]]
    bound = max((float(sweep.down[v, -1]) for v in starts), default=0.0) if value is None else float(value[-1])
    for u, row in zip(names, sweep.down, strict=True):
        # Less reduced, it pays for this where it is read.
        known[u] = np.maximum(row - problem.charged.get(u, 0.0), known.get(u, 0.0))
    yield min(bound, upper), joined(sweep.ways, lattice.calls)


def _remember(sweep: _Sweep, number: int) -> None:
    """Keep how an exploration from a narrow ideal (-1: from the beginning) found what it found."""
    for calls in range(sweep.lattice.calls + 1):
        if (found := way(sweep.lattice, sweep.labels, calls)) is not None:
            sweep.ways[number, calls] = found


def _first_starts(lattice: Lattice, best: Floats) -> Floats:
    """How early each node can start."""
    first = np.zeros(len(best))
    for v in range(len(best)):
        makers = lattice.maker[lattice.maker_start[v] : lattice.maker_start[v + 1]]
        first[v] = (first[makers] + best[makers]).max(initial=0.0)
    return first


def _explored(sweep: _Sweep, start: int, free: bool, upper: float, limits: Limits) -> Floats | None:
    """The least time from an ideal, by the calls left, or ``upper`` where that is less (None: given up)."""
    lattice = sweep.lattice
    value = np.full(lattice.calls + 1, upper)
    begin(lattice, sweep.labels, start, sweep.room)
    for at in range(start, len(lattice.narrow), _CHUNK):
        stop = min(at + _CHUNK, len(lattice.narrow))
        if limits.passed or not explore(
            lattice, sweep.labels, at, stop, free and at == start, sweep.rest, value, sweep.room
        ):
            return None
    return value


def _fill(sweep: _Sweep, low: int, high: int, number: int) -> None:
    """Bounds for the nodes and ideals of the segment that ends before ideal ``high``, narrow ideal ``number``."""
    lattice = sweep.lattice
    beyond = np.ones(len(lattice.fast), dtype=bool) if low < 0 else ~lattice.inside[low]
    if high < len(lattice.narrow):
        # The last node of that ideal has been looked at, and all that comes after it.
        beyond &= lattice.inside[high]
        beyond[sweep.narrow[number][1]] = False
    for v in np.flatnonzero(beyond)[::-1].tolist():
        _follow(sweep, v)
    for i in range(max(low, 0), high):
        for e in range(lattice.open_start[i], lattice.open_start[i + 1]):
            for into, readers in sweep.tensors[lattice.open_node[e]]:
                for r in readers:
                    if not lattice.inside[i, r]:
                        paid = np.minimum(lattice.slow[r], into + lattice.fast[r]) + sweep.onward[r]
                        lattice.tail[e] = np.maximum(lattice.tail[e], np.maximum(sweep.down[r], paid))
    if high < len(lattice.narrow):
        _fill_ahead(sweep, low, high, number)


def _follow(sweep: _Sweep, v: int) -> None:
    """Bounds for one node from those of its readers."""
    lattice = sweep.lattice
    for _, readers in sweep.tensors[v]:
        sweep.onward[v] = np.maximum(sweep.onward[v], sweep.down[readers].max(axis=0))
    least = min(lattice.slow[v], lattice.fast[v])
    sweep.down[v] = np.maximum(sweep.down[v], least + sweep.onward[v])


def _fill_ahead(sweep: _Sweep, low: int, high: int, number: int) -> None:
    """At least from the latest of what is open in an ideal: the call that holds the segment's last node starts then.

    It begins at some ideal between, pays to read all that is open there, and takes the time of all the rest.
    """
    lattice, (whole, v) = sweep.lattice, sweep.narrow[number]
    least = np.full(high - low, np.inf)
    for j in range(high - 1, low, -1):
        opened = 0.0
        for e in range(lattice.open_start[j], lattice.open_start[j + 1]):
            for into, readers in sweep.tensors[lattice.open_node[e]]:
                opened += 0.0 if lattice.inside[j, readers].all() else into
        rest = lattice.inside[whole] & ~lattice.inside[j]
        rest[v] = False
        least[j - low] = opened + lattice.fast[rest].sum()
        for e in range(lattice.next_start[j], lattice.next_start[j + 1]):
            if lattice.next_node[e] != v:
                least[j - low] = min(least[j - low], least[lattice.next_ideal[e] - low])
        lattice.ahead[j] = np.minimum(least[j - low] + sweep.down[v], lattice.slow[v] + sweep.rest[number])
