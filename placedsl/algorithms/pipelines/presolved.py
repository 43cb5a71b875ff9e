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
from placedsl.algorithms.pipelines.room import RoomResult
from placedsl.algorithms.presolve.attached import Attached, Relaxation, held, relaxed
from placedsl.algorithms.units import with_rounding
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, topological
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS

#: A placement is mended with so many units free to move.
_MOST_FREE = 10
#: So many units that were left out of the costs are counted after a search whose placement costs more than its bound.
_COUNTED = 4
#: It is asked for room below a load that is so far from the bound to the best value at first.
_FIRST_SHARE = 0.25

#: Answers for a problem: the best pipeline below a value, where another is proven to be the least.  The last arguments:
#: whether it may end at that bound, without looking for one with fewer devices, and memory beside that of the problem,
#: as :class:`Relaxation` says it.
Search = Callable[[Problem, float, float, bool, Floats | None], PlacementResult]


#: Answers for a relaxation and a load: as :func:`placedsl.algorithms.pipelines.room.with_room`, in terms of nodes.
Room = Callable[[Relaxation, float], RoomResult]


def best_of(
    known: Attached, search: Search, room: Room | None, at_least: float, at_most: float,
    found: Callable[[PlacementResult], None], *, fewest: bool,
) -> PlacementResult:  # fmt: skip
    """The best pipeline below ``at_most``, by searches of problems with fewer units.

    ``at_least``: a proven bound.  ``found`` hears of each better pipeline.  ``fewest``: of those that are equally good,
    one with the fewest devices is asked for.  ``room``: None where the question cannot be answered.
    """
    return _Presolved(known, search, room, found, fewest, at_least, at_most).run()


@dataclass(eq=False)
class _Presolved:
    """From a bound and a placement to the best one.

    ``bound``, ``at_most``  a proven bound; only what is below is of interest
    ``best``, ``last``      the best pipeline, and what the last relaxation gave
    ``share``               of the way from the bound to what is of interest, for what is asked next
    """

    known: Attached
    search: Search
    room: Room | None
    found: Callable[[PlacementResult], None]
    fewest: bool
    bound: float
    at_most: float
    best: PlacementResult | None = None
    last: PlacementResult | None = None
    share: float = _FIRST_SHARE

    def run(self) -> PlacementResult:
        """Relaxations and placements in turn, with ever more units that are counted."""
        known, open_ = self.known, self.known.open
        kept = known.inside.copy()
        smaller, first = relaxed(known, kept), True
        while (open_ & ~kept).any():
            below = self._asked_below()
            asked = RoomResult(False) if first or self.room is None else self.room(smaller, below)
            if asked.known and asked.device is None:
                if below == self.at_most:
                    return self._nothing_below()
                self.bound, self.share = below, 1.0
                continue
            placement = asked.device
            if placement is None:
                # Most often memory does not bind.
                behind = None if self.fewest or first else smaller.behind
                self.last = self.search(smaller.problem, self.bound, self.at_most, not first, behind)
                placement = self.last.placement
                if not self.last.complete or placement is None:
                    return self._ended(self.last)
                self.bound = max(self.bound, self.last.bound)
            mended = _Mended.of(known, smaller, kept, placement, asked.leaves)
            if self.last is not None and asked.device is None and mended.allowed and not smaller.out.any():
                self.found(self.last)
                return self.last
            before = self.best
            self._search_in(mended.problem)
            if first and self._settled() is None and (self.best is None or self.room is None):
                self._search_in(held(known, smaller.root))
            if (settled := self._settled()) is not None:
                return settled
            # With a value more is known of what devices must hold: that is tried before units are counted.
            again = first and bool(smaller.behind.any()) and (self.best is not None or self.room is not None)
            first = False
            if again or (asked.known and (self.best is not before or below < self.at_most)):
                self.share = _FIRST_SHARE if self.best is not before else 1.0
                continue
            more = mended.blocking & ~kept
            kept, self.share = kept | (more if more.any() else open_), _FIRST_SHARE
            smaller = relaxed(known, kept)
        last = self.search(known.problem, self.bound, self.at_most, False, None)
        if self.best is None or (last.placement is not None and (last.complete or last.value < self.best.value)):
            return last
        return self._ended(last)

    def _asked_below(self) -> float:
        """The load that is asked for next: near the bound, where what is found is good, or where nothing is there all
        that is of interest.
        """
        if self.share == 1.0 or not np.isfinite(self.at_most):
            return self.at_most
        return min(self.bound + self.share * max(self.at_most - self.bound, 0.0), self.at_most)

    def _search_in(self, narrower: Problem) -> None:
        """Keep what is best where all placements are placements of the problem."""
        other = self.search(narrower, self.bound, self.at_most, True, None)
        if other.placement is not None and (self.best is None or other.value < self.best.value):
            self.best, self.at_most = other, other.value * (1.0 - EQUAL_COSTS)
            self.found(other)

    def _settled(self) -> PlacementResult | None:
        """A pipeline as good as the bound; one with the fewest devices where even the relaxation needs as many."""
        best, last = self.best, self.last
        if best is None or last is None or best.value > self.bound * (1.0 + EQUAL_COSTS):
            return None
        fewest = last.fewest and best.devices <= last.devices
        proven = replace(best, bound=min(best.value, self.bound), complete=True, fewest=fewest)
        return proven if fewest or not self.fewest else None

    def _nothing_below(self) -> PlacementResult:
        """The best pipeline, where no other is below it."""
        if self.best is None:
            return PlacementResult(None, np.inf, np.inf, True)
        return replace(self.best, bound=self.best.value, complete=True, fewest=False)

    def _ended(self, last: PlacementResult) -> PlacementResult:
        """What is known after a search that has found nothing better, or has not come to its end."""
        bound = self.bound if last.complete and self.best is not None else max(self.bound, last.bound)
        if self.best is None:
            return replace(last, placement=None, value=np.inf, bound=bound)
        proven = self.best.value if last.complete else min(bound, self.best.value)
        return replace(
            last, placement=self.best.placement, value=self.best.value, copies=self.best.copies, bound=proven,
            fewest=False,
        )  # fmt: skip


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
    def of(cls, known: Attached, smaller: Relaxation, kept: Booleans, placement: Integers, leaves: Booleans) -> _Mended:
        """From the placement of the nodes in the relaxation that has the units ``kept``.

        ``leaves``: groups of :class:`Homes` that are best moved where memory is short (none: not known).
        """
        units, problem, out = known.units, known.written, smaller.out
        device = np.empty(units.units, dtype=np.int64)
        device[units.unit_of_node] = placement
        loose = known.open & ~kept
        device = _placed(known, out, device)
        limits = with_rounding(problem.memory_limits, problem.graph.memory)
        allowed = bool((np.bincount(device, units.memory, minlength=len(limits)) <= limits).all())
        cost = _costs(known)
        group = smaller.homes.group
        leaving = (group >= 0) & np.append(leaves, False)[group] if len(leaves) else np.zeros(units.units, dtype=bool)
        moved = refitted(known, loose, device, limits, cost, leaving)
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
