"""The best pipeline where operators without time hang off the graph: from a bound and a placement that meet.

What is dominated has a host already.  What only memory, or devices that do not support it, may keep from its host is
left out at first: the search then gives a bound, and a placement that is mended.  Where the two differ, the units that
stand in the way are counted in full, and the search is repeated.  docs/presolve.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.placement_result import PlacementResult
from placedsl.algorithms.pipelines.refitting import refitted
from placedsl.algorithms.presolve.attached import Attached, held, relaxed
from placedsl.algorithms.units import with_rounding
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, topological
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS

#: A placement is mended with so many units free to move.
_MOST_FREE = 10
#: So many units that were left out of the costs are counted after a search whose placement costs more than its bound.
_COUNTED = 4

#: Answers for a problem: the best pipeline below a value, where another is proven to be the least.  The last arguments:
#: whether it may end at that bound, without looking for one with fewer devices, and memory beside that of the problem,
#: as :class:`Relaxation` says it.
Search = Callable[[Problem, float, float, bool, Floats | None], PlacementResult]


def best_of(
    known: Attached, search: Search, at_least: float, at_most: float, found: Callable[[PlacementResult], None],
    *, fewest: bool,
) -> PlacementResult:  # fmt: skip
    """The best pipeline below ``at_most``, by searches of problems with fewer units.

    ``at_least``: a proven bound.  ``found`` hears of each better pipeline.  ``fewest``: of those that are equally good,
    one with the fewest devices is asked for.
    """
    open_ = known.open
    kept, bound = known.inside.copy(), at_least
    best: PlacementResult | None = None
    first = True
    while (open_ & ~kept).any():
        smaller = relaxed(known, kept)
        out = smaller.out
        last = search(smaller.problem, bound, at_most, not first, None if fewest else smaller.behind)
        if not last.complete or last.placement is None:
            # Nothing better is allowed even there, or it is not known.
            if best is not None:
                return _with(last, best, bound if last.complete else max(bound, last.bound))
            return replace(last, placement=None, value=np.inf, bound=max(bound, last.bound))
        bound = max(bound, last.bound)
        mended = _Mended.of(known, out, kept, last.placement)
        if mended.allowed and not out.any():
            found(last)
            return last
        for narrower in (mended.problem, held(known, smaller.root) if first else None):
            if narrower is None:
                continue
            other = search(narrower, bound, at_most, True, None)
            if other.placement is not None and (best is None or other.value < best.value):
                best, at_most = other, other.value * (1.0 - EQUAL_COSTS)
                found(other)
            if best is not None and best.value <= bound * (1.0 + EQUAL_COSTS):
                proven = _proven(best, bound, last)
                if proven.fewest or not fewest:
                    return proven
        # What devices must hold is known better where a value is: before units are counted, that is tried.
        again = first and best is not None and bool(smaller.behind.any())
        first = False
        if again:
            continue
        more = mended.blocking & ~kept
        kept = kept | (more if more.any() else open_)
    last = search(known.problem, bound, at_most, False, None)
    if best is None or (last.placement is not None and (last.complete or last.value < best.value)):
        return last
    return _with(last, best, max(bound, last.bound))


def _with(last: PlacementResult, best: PlacementResult, bound: float) -> PlacementResult:
    """What is known after a search that has found nothing better."""
    complete = last.complete
    proven = best.value if complete else min(bound, best.value)
    return replace(last, placement=best.placement, value=best.value, copies=best.copies, bound=proven, fewest=False)


def _proven(best: PlacementResult, bound: float, relaxation: PlacementResult) -> PlacementResult:
    """A pipeline as good as the bound; one with the fewest devices where even the relaxation needs as many."""
    fewest = relaxation.fewest and best.devices <= relaxation.devices
    return replace(best, bound=min(best.value, bound), complete=True, fewest=fewest)


@dataclass(frozen=True, eq=False)
class _Mended:
    """A placement of a relaxation, with the units that it leaves out.

    ``allowed``   memory permits it as it is, each of these units with its host
    ``problem``   that of finding the best place for a few of them, all else on its device
    ``blocking``  u: units that have to be counted for the relaxation to see why the placement is worth less
    """

    allowed: bool
    problem: Problem
    blocking: Booleans

    @classmethod
    def of(cls, known: Attached, out: Booleans, kept: Booleans, placement: Integers) -> _Mended:
        """From the placement of the nodes; ``out``: as :func:`relaxed` gives it, for the units that are ``kept``."""
        units, problem = known.units, known.written
        device = np.empty(units.units, dtype=np.int64)
        device[units.unit_of_node] = placement
        loose = known.open & ~kept
        device = _placed(known, out, device)
        limits = with_rounding(problem.memory_limits, problem.graph.memory)
        allowed = bool((np.bincount(device, units.memory, minlength=len(limits)) <= limits).all())
        cost = _costs(known)
        moved = refitted(known, loose, device, limits, cost)
        used = np.bincount(moved, units.memory, minlength=len(limits))
        over = np.flatnonzero(used > limits)
        free = np.zeros(units.units, dtype=bool)
        blocking = np.zeros(units.units, dtype=bool)
        for d in over.tolist():
            own = np.flatnonzero(loose & (moved == d))
            own = own[np.argsort(-units.memory[own], kind="stable")]
            free[own[: max(2, _MOST_FREE // len(over))]] = True
            # As few as make the relaxation see that the device cannot hold what it has.
            held_there = used[d] - units.memory[own].sum() + np.cumsum(units.memory[own])
            blocking[own[: int(np.count_nonzero(held_there <= limits[d])) + 1]] = True
        away = np.flatnonzero(out | ((moved != device) & (cost > 0.0)))
        away = away[np.argsort(-cost[away], kind="stable")]
        free[away[:_MOST_FREE]] = True
        if not len(over):
            blocking[away[:_COUNTED]] = True
        labels = np.where(free, len(limits) + np.arange(units.units), moved)
        return cls(allowed, held(known, labels), blocking & known.open)


def _costs(known: Attached) -> Floats:
    """u: what the tensors of each unit without time cost at most."""
    out = np.zeros(known.units.units)
    for one in known.units.tensors:
        most = float(one.cost.max(initial=0.0))
        for v in (one.producer, *one.readers):
            out[v] += most
    return out


def _placed(known: Attached, out: Booleans, device: Integers) -> Integers:
    """u devices where what is left out comes as soon as what is before it permits, or just before what it precedes."""
    if not out.any() or out.all():
        return device
    units = known.units
    device = device.copy()
    used, at = np.unique(device[~out], return_inverse=True)
    place = np.full(units.units, -1, dtype=np.int64)
    place[~out] = at
    first, second = place[units.before], place[units.after]
    apart = (first >= 0) & (second >= 0) & (first != second)
    order = topological(len(used), first[apart], second[apart])
    if order is None:
        return device
    rank = np.empty(len(used), dtype=np.int64)
    rank[order] = np.arange(len(used))
    turn = np.where(out, -1, rank[np.maximum(place, 0)])
    start, earlier = csr(units.after, units.before, units.units)
    ahead, later = csr(units.before, units.after, units.units)
    every = topological(units.units, units.before, units.after)
    assert every is not None, "units are on no cycle"
    for v in every[out[every]].tolist():
        known_before = turn[earlier[start[v] : start[v + 1]]]
        behind = turn[later[ahead[v] : ahead[v + 1]]]
        if len(known_before):
            turn[v] = max(0, int(known_before.max()))
        else:
            turn[v] = int(behind[behind >= 0].min(initial=len(used) - 1))
        device[v] = used[order[turn[v]]]
    return device
