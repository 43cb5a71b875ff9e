"""Lower bounds on the latency of subgraph calls, by dynamic programming over the ideals of less and less reduced
instances.

The state (an ideal, what the calls so far have taken of the budget, when each tensor that is still read was made)
determines the future of a schedule if accelerators are equal and have one slot each, which is a budget of as many
calls: the result is then the optimum, up to the reduction.  With more slots the calls of all accelerators share the
memory of all, in whole grains.  Colocation is kept where nodes are merged (:mod:`.reduction`), else left out.

Backwards from the end, each *narrow* ideal (one node last, all nodes outside after it) is explored separately:

* T(c), the least time from the end of its node to the end of all, by the budget left, when only its tensor exists;
* S(c), the same from just before its node, which reads its inputs at no cost.

T settles every schedule that passes through the ideal.  S bounds the rest of any state before it: all nodes that did
not run before the node can be removed, and each node on a path to it takes its time, before its call or in it.  And the
call that holds the node begins within the segment: it pays to read the tensors open there, and takes the time of the
rest of the segment (:func:`_fill_ahead`), or the node is on the host.  States that these bounds rule out are not
explored.  An exploration that takes too long is abandoned; the time along paths then replaces T and S.

Each exploration that finds T records the steps to a next narrow ideal.  Stitched from the beginning, they are a
schedule of the reduced instance, and the merged and removed nodes are restored (:mod:`.recovery`): often that is a
schedule of the least latency even at the first levels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from placedsl.algorithms.subgraph_calls.bounds.chain_reduction import shorten_chains
from placedsl.algorithms.subgraph_calls.bounds.ideal_dp_kernel import begin, explore
from placedsl.algorithms.subgraph_calls.bounds.lattice import ideal_lattice, narrow_ideals, new_tables, without_last
from placedsl.algorithms.subgraph_calls.bounds.recovery import (
    IdealStep,
    SegmentPath,
    backtrack,
    recover_placement,
    stitch,
)
from placedsl.algorithms.subgraph_calls.bounds.reduction import ReducedInstance, best_devices, reduce
from placedsl.algorithms.subgraph_calls.bounds.tables import ExplorationScratch, IdealLattice, StateTable
from placedsl.algorithms.subgraph_calls.initial_placements import all_on_host, fill_accelerators
from placedsl.algorithms.subgraph_calls.instance import (
    SUPPORTS,
    CallPlacement,
    call_instance,
    call_placement,
    latency_of,
)
from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance
from placedsl.algorithms.supports import reasons_against
from placedsl.arrays import Floats
from placedsl.problem.problem import Problem
from placedsl.tolerances import BOUND_ROUNDING

#: The reduction at each level: light time and memory, as a share; chains shortened, as a share of a call's memory.
LEVELS = (
    (0.01, 0.1), (0.01, 0.05), (0.01, 0.03), (0.01, 0.02), (0.01, 0.01), (0.01, 0.0), (0.001, 0.0), (1e-5, 0.0),
    (0.0, 0.0),
)  # fmt: skip
#: The largest number of ideals, and of states kept.
MOST_IDEALS, MOST_STATES = 60_000, 1_000_000
#: Ideals between two checks of the time, and the share of the time left that one exploration may take.
_CHUNK, _SHARE = 64, 0.2
#: How far above the best bound the least latency is sought first, relatively, and at most.
_STEP, _LONGEST_STEP = 0.1, 100.0


#: Further constraints only make the optimum larger.
BOUNDED = replace(SUPPORTS, relaxes=True, formulations=True)


def proven_bounds(
    problem: Problem,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[float, CallPlacement | None]]:
    """Increasing bounds in seconds, and better placements met on the way; none if the problem is another one.

    Ends when a bound reaches ``upper()``, the value of the best known schedule, or that of the best found here: then
    that is optimal.  Placements satisfy memory limits and colocation, not necessarily other constraints.
    """
    if not reasons_against(problem, BOUNDED):
        yield from bounds_of(call_instance(problem), upper=upper, deadline=deadline, stop=stop)


def bounds_of(
    instance: CallInstance,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[float, CallPlacement | None]]:
    """The same from arrays."""
    best, found = longest_path(instance) * (1.0 - BOUND_ROUNDING), _start(instance)
    least = np.inf if found is None else found.latency
    best = min(best, least)
    yield best, found if least < upper() else None
    known: dict[int, Floats] = {}
    limits = TimeLimits(deadline, stop)
    more = _STEP
    for light, chains in LEVELS:
        problem = best_devices(instance)
        reduce(problem, light, exact_times=instance.slots == 1)
        if chains and shorten_chains(problem, chains):
            reduce(problem, light, exact_times=instance.slots == 1)
        elif chains:
            continue
        if not problem.fast:
            continue
        lattice = ideal_lattice(problem, MOST_IDEALS)
        if lattice is None:
            return
        settled = False
        while not settled and not limits.passed:
            # Nothing above the best known value needs proof.  If that is far away, a nearer limit is tried first.
            below = min(upper(), least) * (1.0 + 2.0 * BOUND_ROUNDING)
            if best > 0.0 and more < _LONGEST_STEP:
                below = min(below, best * (1.0 + more))
            for bound, steps in least_latency(lattice, below, problem, known, limits):
                answer = None if steps is None else recover_placement(instance, problem, lattice, steps)
                # The best known value may be another member's, with its placement: report only better ones.
                better = answer is not None and answer.latency < min(least, upper())
                if better and answer is not None:
                    least = answer.latency
                value = min(bound * (1.0 - BOUND_ROUNDING), upper(), least)
                if value > best or better:
                    best = max(best, value)
                    yield best, answer if better else None
            settled = bound < below or below >= min(upper(), least)
            more *= 1.0 if settled else 2.0
        if best >= min(upper(), least) * (1.0 - 4.0 * BOUND_ROUNDING) or limits.passed:
            return


def _start(instance: CallInstance) -> CallPlacement | None:
    """A placement that is found at once (None: none)."""
    places = [place for place in (all_on_host(instance), fill_accelerators(instance, None)) if place is not None]
    answers = [call_placement(instance, place) for place in places if np.isfinite(latency_of(instance, place))]
    return min(answers, key=lambda answer: answer.latency, default=None)


def longest_path(instance: CallInstance) -> float:
    """The longest path in seconds, each node on its best device."""
    least = instance.time.min(axis=0)
    finish = np.zeros(len(least))
    for v in instance.order.tolist():
        makers = instance.producer[instance.taken[instance.taken_start[v] : instance.taken_start[v + 1]]]
        finish[v] = least[v] + finish[makers].max(initial=0.0)
    return float(finish.max(initial=0.0))


@dataclass
class TimeLimits:
    """When to stop: a ``time.monotonic()`` value, and a function that is polled."""

    deadline: float | None = None
    stop: Callable[[], bool] = lambda: False

    @property
    def passed(self) -> bool:
        """Whether to stop."""
        return self.stop() or (self.deadline is not None and time.monotonic() > self.deadline)

    def share(self) -> TimeLimits:
        """The limits of one exploration of several."""
        if self.deadline is None:
            return self
        now = time.monotonic()
        return TimeLimits(now + _SHARE * max(0.0, self.deadline - now), self.stop)


@dataclass
class _BackwardSweep:
    """A sweep from the end to the beginning; all times by the budget left.

    ``onward``: the least time from the end of each node to the end of all; ``down``: from its start; ``rest``: T of
    each narrow ideal, 0 for the last of all; ``narrow``: these ideals and their last nodes; ``segment_paths``: the
    steps that attain T, by narrow ideal and budget left.
    """

    lattice: IdealLattice
    upper: float
    down: Floats
    narrow: list[tuple[int, int]]
    states: StateTable
    scratch: ExplorationScratch
    onward: Floats = field(init=False)
    rest: Floats = field(init=False)
    tensors: list[list[tuple[float, list[int]]]] = field(init=False)
    segment_paths: dict[tuple[int, int], SegmentPath] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lattice = self.lattice
        self.onward = np.zeros_like(self.down)
        self.rest = np.zeros((len(self.narrow) + 1, lattice.budget + 1))
        self.tensors = [
            [
                (float(lattice.into[t]), lattice.reader[lattice.read_start[t] : lattice.read_start[t + 1]].tolist())
                for t in lattice.made[lattice.made_start[v] : lattice.made_start[v + 1]].tolist()
            ]
            for v in range(len(lattice.fast))
        ]


def least_latency(
    lattice: IdealLattice, upper: float, problem: ReducedInstance, known: dict[int, Floats], limits: TimeLimits
) -> Iterator[tuple[float, list[IdealStep] | None]]:
    """Increasing bounds that end with the least latency, or ``upper`` if that is less, and with the steps that attain
    it.

    ``known``: by node, lower bounds on the time from its start to the end of all, by the budget left, if its inputs
    cost nothing: results for more reduced instances, to which those found here are added.
    """
    nodes = problem.order()
    entries = lattice.budget + 1
    down = np.array([known.get(v, np.zeros(entries)) for v in nodes]).reshape(len(nodes), entries)
    narrow = narrow_ideals(lattice)
    for number, (i, _) in enumerate(narrow):
        lattice.narrow[i] = number
    sweep = _BackwardSweep(lattice, upper, down, narrow, *new_tables(lattice, MOST_STATES))
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
        # No state lies before the first nodes: S is of no use there.
        value = None if j == 0 else _explored(sweep, j, True, upper - first[v], limits.share())
        if value is not None:
            sweep.down[v] = np.maximum(sweep.down[v], value)
        yield first[v] + float(sweep.down[v, -1]), None
        if limits.passed:
            return
    _fill(sweep, -1, above, 0)
    value = _explored(sweep, 0, False, upper, limits)
    _remember(sweep, -1)
    starts = [v for v in range(len(nodes)) if lattice.maker_start[v] == lattice.maker_start[v + 1]]
    bound = max((float(sweep.down[v, -1]) for v in starts), default=0.0) if value is None else float(value[-1])
    for u, row in zip(nodes, sweep.down, strict=True):
        # A less reduced instance pays for this where the tensor is read.
        known[u] = np.maximum(row - problem.charged.get(u, 0.0), known.get(u, 0.0))
    yield min(bound, upper), stitch(sweep.segment_paths, lattice.budget)


def _remember(sweep: _BackwardSweep, number: int) -> None:
    """Record how an exploration from a narrow ideal (-1: from the beginning) attained its values."""
    for allowed in range(sweep.lattice.budget + 1):
        if (found := backtrack(sweep.lattice, sweep.states, allowed)) is not None:
            sweep.segment_paths[number, allowed] = found


def _first_starts(lattice: IdealLattice, best: Floats) -> Floats:
    """The earliest start of each node."""
    first = np.zeros(len(best))
    for v in range(len(best)):
        makers = lattice.maker[lattice.maker_start[v] : lattice.maker_start[v + 1]]
        first[v] = (first[makers] + best[makers]).max(initial=0.0)
    return first


def _explored(sweep: _BackwardSweep, start: int, free: bool, upper: float, limits: TimeLimits) -> Floats | None:
    """The least time from an ideal, by the budget left, or ``upper`` if that is less (None: abandoned)."""
    lattice = sweep.lattice
    value = np.full(lattice.budget + 1, upper)
    begin(lattice, sweep.states, start, sweep.scratch)
    for at in range(start, len(lattice.narrow), _CHUNK):
        stop = min(at + _CHUNK, len(lattice.narrow))
        if limits.passed or not explore(
            lattice, sweep.states, at, stop, free and at == start, sweep.rest, value, sweep.scratch
        ):
            return None
    return value


def _fill(sweep: _BackwardSweep, low: int, high: int, number: int) -> None:
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


def _follow(sweep: _BackwardSweep, v: int) -> None:
    """Bounds for one node from those of its readers."""
    lattice = sweep.lattice
    for _, readers in sweep.tensors[v]:
        sweep.onward[v] = np.maximum(sweep.onward[v], sweep.down[readers].max(axis=0))
    least = min(lattice.slow[v], lattice.fast[v])
    sweep.down[v] = np.maximum(sweep.down[v], least + sweep.onward[v])


def _fill_ahead(sweep: _BackwardSweep, low: int, high: int, number: int) -> None:
    """Bounds from the latest of the tensors open in an ideal: the call that holds the segment's last node starts after
    it.

    That call begins at some ideal of the segment, pays to read all tensors open there, and takes the time of all the
    rest.
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
