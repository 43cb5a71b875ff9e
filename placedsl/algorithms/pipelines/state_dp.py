"""Dynamic programming over ideals: the best pipeline of contiguous stages.   Tarnawski et al. 2020, section 5.1.1.

A contiguous placement is a chain of ideals; the stage of one device is what it adds to the chain.  The state is an
ideal and how many devices of each class have been used.  Three things keep the search small:

1. Slices of a few topological orders give an upper bound, often the optimum itself.
2. Only ideals are stored from which, within that bound, the devices that are left can take what is left, and the
   devices used can have taken what is inside.
3. Whether anything is better is asked first, without values: an ideal that was reached is not reached again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover
from placedsl.algorithms.ideals.enumeration import count_ideals, ideals
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_table import StateDPResult, StateTable
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.topological_orders import orders
from placedsl.arrays import Floats, Integers, distinct
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

#: The most table entries (ideals x states).
MOST_ENTRIES = 40_000_000
#: Orders longer than this are sliced under tentative bounds first.
_LONG = 1_000
#: With more ideals than this, the best load is closed in on first, until the two sides are this share apart.
_FEW = 15_000
_APPROACH_GAP = 2e-3
#: With more ideals than this, a lower load is tried first.
_MANY = 50_000
#: A load that is so much less than the one that a table was made for has one of its own.
_MUCH_BETTER = 1e-2
#: So many walks may be given up before the search is.
_TRIES = 1


#: With more units than this, ideals are counted before anything else is done.
_MANY_UNITS = 5_000


def best_pipeline(
    costs: StageCostModel,
    limits: SearchLimits | None = None,
    *,
    at_least: float = 0.0,
    at_most: float = np.inf,
    fewest: bool = True,
    progress: Callable[[Integers, float], None] | None = None,
) -> StateDPResult:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound, at which the search may end; only loads below ``at_most`` are of interest.
    ``progress`` hears of the first pipeline.  With memory ``behind`` units the least load is a bound, and nothing is
    said of the number of devices.
    """
    limits = limits or SearchLimits()
    if not costs.behind.size:
        return _best_pipeline(costs, limits, at_least, at_most, fewest, progress)
    # Each device that is used has some unit, or one of some class has only what is beside the units.  The second case
    # also has what the first passes over because an ideal was reached with fewer devices.
    best = replace(_best_pipeline(costs, limits, at_least, at_most, False, progress), fewest=False)
    kinds = np.flatnonzero(np.array(costs.classes.counts) > 0) if costs.classes.total > 1 else np.zeros(0, np.int64)
    for kind in kinds.tolist():
        below = at_most if best.device is None else best.value * (1.0 - EQUAL_COSTS)
        other = _best_pipeline(_without_one(costs, kind), limits, at_least, below, False, None)
        if other.device is not None:
            bound = min(best.bound, other.bound)
            best = replace(other, complete=best.complete and other.complete, bound=bound, fewest=False)
        elif not other.complete:
            best = replace(best, complete=False, bound=min(best.bound, other.bound))
    return best


def _without_one(costs: StageCostModel, kind: int) -> StageCostModel:
    """With one device less of a class, and nothing beside units."""
    classes = costs.classes
    counts = tuple(count - (c == kind) for c, count in enumerate(classes.counts))
    return replace(costs, classes=replace(classes, counts=counts), behind=np.zeros((2, 0)))


def _best_pipeline(
    costs: StageCostModel, limits: SearchLimits, at_least: float, at_most: float, fewest: bool,
    progress: Callable[[Integers, float], None] | None,
) -> StateDPResult:  # fmt: skip
    if not np.isfinite(costs.least).all():
        return StateDPResult(np.inf, None, True)
    if costs.units > _MANY_UNITS and too_wide(costs, limits.most):
        return StateDPResult(np.inf, None, False, at_least, too_many=True)
    start = sliced(costs, limits, at_most)
    if start.device is not None and progress is not None:
        progress(start.device, start.value)
    if limits.passed:
        return start
    settled = start.value <= at_least * (1.0 + EQUAL_COSTS)
    if settled and start.device is not None and not fewest:
        return replace(start, complete=True, bound=start.value)
    cover = chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return StateDPResult(start.value, start.device, settled, at_least, too_many=True)
    search = PipelineSearch(costs, cover, limits, start, at_least, at_most)
    search.run(fewest)
    found = search.found()
    return found if found.complete or not settled else replace(found, complete=True)


def too_wide(costs: StageCostModel, most: int) -> bool:
    """Whether there are more ideals than so many, or more chains than are counted with."""
    cover = chain_cover(costs.units, costs.before, costs.after)
    return cover is None or count_ideals(cover, most) is None


def sliced(costs: StageCostModel, limits: SearchLimits | None = None, at_most: float = np.inf) -> StateDPResult:
    """The best cut of a few topological orders into stages that is below ``at_most``; it proves nothing."""
    limits = limits or SearchLimits()
    value, device = at_most, None
    if not np.isfinite(costs.least).all() or costs.classes.states * (costs.units + 1) > MOST_ENTRIES:
        return StateDPResult(value, device, False)
    pruning = LoadPruning(costs, np.inf)
    for order in orders(costs):
        line = ChainCover.of_order(order)
        for bound in _ladder(costs, value):
            table = StateTable(costs, line, line.prefixes(order), pruning.within(bound), wide=False)
            found = table.search(bound * (1.0 - EQUAL_COSTS), limits, exact=True)
            if found.device is not None:
                value, device = found.value, found.device
            if found.device is not None or limits.passed:
                break
        if limits.passed:
            break
    return StateDPResult(np.inf if device is None else value, device, False)


def _ladder(costs: StageCostModel, known: float) -> list[float]:
    """Bounds to try in turn: on a long order, far stages are looked at only when near ones do not do."""
    if np.isfinite(known):
        return [known]
    share = max(float(costs.least.sum()) / costs.classes.total, float(costs.least.max(initial=0.0)))
    return [*(share * 2.0**k for k in range(1, 8)), np.inf] if costs.units > _LONG and share > 0.0 else [np.inf]


class PipelineSearch:
    """From a first pipeline to the best one."""

    def __init__(
        self,
        costs: StageCostModel,
        cover: ChainCover,
        limits: SearchLimits,
        best: StateDPResult,
        at_least: float,
        at_most: float,
    ) -> None:
        self.costs, self.cover, self.limits = costs, cover, limits
        self.pruning = LoadPruning(costs, np.inf)
        self.value, self.device = min(best.value, at_most), best.device
        # No device can be quicker than its share of the work.
        share = float(costs.least.sum()) / costs.classes.total - costs.beyond
        self.bound = max(at_least, share if np.isfinite(share) else 0.0, 0.0)
        self.complete = self.least_devices = self.too_many = False
        self.met = self.stored = self.given_up = 0
        self.pairs = (0, 0, 0)
        #: What boundaries add, by the largest load that it holds for.
        self.boundaries: dict[float, Floats] = {}

    def run(self, fewest: bool) -> None:
        """Is there anything better?  Then how good is the best?  And with how few devices?"""
        table = self.table(self.value, _MANY)
        if table is None or table.count > _FEW:
            table = self.narrowed()
        before = self.value
        if table is None or not self.tried(table, before * (1.0 - EQUAL_COSTS), exact=False):
            return
        if self.value < _MUCH_BETTER * before:
            table = self.table(self.value)  # now there is a bound to prune with, and that is no longer hidden in sums
            if table is None:
                return
        if self.value < before and not self.tried(table, self.value * (1.0 - EQUAL_COSTS), exact=True):
            return
        self.complete, self.bound = True, self.value
        self.least_devices = self.device is None or (fewest and self.fewest(table, self.value, self.device))

    def narrowed(self) -> StateTable | None:
        """The ideals for the best load, after closing in on it from both sides with loads that leave fewer ideals."""
        ceiling = np.inf  # loads from which there are too many
        costs = self.costs
        edges = (costs.input_cost + costs.output_cost)[: costs.loads].max(axis=1).sum()
        alone = float(costs.unit_cost[: costs.loads].max(axis=1).sum() + costs.most_streamed.max(initial=0.0))
        largest = alone + float(edges)  # no stage costs more
        while self.value - self.bound > _APPROACH_GAP * self.bound or self.value > ceiling:
            top = min(self.value, ceiling)
            middle = (self.bound + top) / 2.0 if np.isfinite(top) else 2.0 * self.bound
            if (
                self.bound > largest
                or not self.bound < middle < top
                or top - self.bound < _APPROACH_GAP * self.bound / 4.0
            ):
                break
            table = self.table(middle, _MANY)
            if table is None:
                if self.limits.passed or self.given_up > _TRIES:
                    return None
                ceiling = middle
            elif not self.tried(table, middle, exact=False):
                return None
            elif self.value > middle:
                self.bound = middle
        return self.table(self.value)

    def table(self, bound: float, most: int | None = None) -> StateTable | None:
        """The ideals that matter below a load; None when there are too many, or no time."""
        limits = self.limits
        most = limits.most if most is None else min(most, limits.most)
        known = [adds for load, adds in self.boundaries.items() if bound <= load < np.inf]
        pruning = self.pruning.within(bound, np.max(known, axis=0) if known else None)
        room, before = min(most, _MANY), np.inf
        while True:
            transfers = pruning.transfer_pruning(self.cover)
            walked = ideals(
                self.cover, pruning.weight, pruning.weight_ranges(), most=most if transfers is None else room,
                pruning=transfers, deadline=limits.deadline, stop=limits.stop,
            )  # fmt: skip
            self.met, self.stored, self.too_many = walked.met, len(walked.positions), walked.too_many
            if walked.complete:
                break
            if transfers is None:
                return None
            if walked.fit is None:
                self.given_up += 1
                return None
            # Walked over again, as what boundaries add is known better now; stored when that helps no more.
            if not pruning.learn(transfers) or walked.fit > 0.9 * before:
                if walked.fit > most:
                    self.boundaries[bound] = pruning.boundaries
                    return None
                room = walked.fit
            before = walked.fit
        if not limits.time_for(len(walked.positions)):
            return None
        began = time.monotonic()
        table = StateTable(self.costs, self.cover, walked.positions, pruning, wide=True)
        limits.made(len(walked.positions), began)
        self.boundaries[bound] = pruning.boundaries
        return table

    def tried(self, table: StateTable, limit: float, *, exact: bool) -> bool:
        """Look for a chain within the limit and keep it; False when there was no time to end."""
        found = table.search(limit, self.limits, exact=exact)
        self.pairs = (
            self.pairs[0] + found.pairs[0], self.pairs[1] + found.pairs[1], self.pairs[2] + found.pairs[2]
        )  # fmt: skip
        if found.device is not None:
            self.value, self.device = found.value, found.device
        return found.complete

    def fewest(self, table: StateTable, value: float, device: Integers) -> bool:
        """Replace the best by one that is as good and uses fewer devices, if there is one."""
        if len(distinct(device)) <= self.pruning.within(value).fewest_devices:
            return True
        done = self.tried(table, value * (1.0 + IMPROVEMENT), exact=False)
        if self.device is None or len(distinct(self.device)) >= len(distinct(device)):
            self.device = device
        self.value = value
        return done

    def found(self) -> StateDPResult:
        """What there is."""
        value = np.inf if self.device is None else self.value
        return StateDPResult(
            value, self.device, self.complete, min(self.bound, value), self.least_devices, self.too_many, self.met,
            self.stored, self.pairs,
        )  # fmt: skip
