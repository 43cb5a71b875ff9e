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
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.capacity import Capacity
from placedsl.algorithms.chains import Chains, chains
from placedsl.algorithms.ideal_kernel import Costs, Lattice, cut_costs, cut_lists, join, previous
from placedsl.algorithms.ideals import ideals
from placedsl.algorithms.orders import orders
from placedsl.algorithms.stages import Stages
from placedsl.graph.graph import Floats, Integers

#: The most ideals that are stored, and the most table entries (ideals x states).
MOST_IDEALS = 2_000_000
MOST_ENTRIES = 40_000_000
#: Placements that differ by less than this share are equally good.
_SAME = 1e-9
#: Orders longer than this are sliced under tentative bounds first.
_LONG = 1_000
#: With more ideals than this, the best load is closed in on first, until the two sides are this share apart.
_FEW = 15_000
_CLOSE = 2e-3
#: Pairs between two looks at the clock.
_PATIENCE = 10_000_000
#: With more ideals than this, a lower load is tried first.
_MANY = 50_000
#: So many walks may be given up before the search is.
_TRIES = 1


@dataclass(frozen=True, eq=False)
class Found:
    """The best pipeline found: its largest load and the device of each unit (inf and None where there is none).

    ``complete``: the value is proven the least, or that no pipeline is allowed.  ``bound``: no load is below it.
    ``fewest``: no pipeline that good has fewer devices.  ``too_many``: more ideals matter than may be stored.
    ``met``, ``stored``: ideals that were met and stored; ``pairs``: stages looked at, of which subsets, evaluated.
    """

    value: float
    device: Integers | None
    complete: bool
    bound: float = 0.0
    fewest: bool = False
    too_many: bool = False
    met: int = 0
    stored: int = 0
    pairs: tuple[int, int, int] = (0, 0, 0)


@dataclass
class Limits:
    """When a run stops by itself: a ``time.monotonic()`` value, what is asked now and then, ideals stored."""

    deadline: float | None = None
    stop: Callable[[], bool] | None = None
    most: int = MOST_IDEALS

    @property
    def passed(self) -> bool:
        """It is time to stop."""
        return (self.deadline is not None and time.monotonic() > self.deadline) or bool(self.stop and self.stop())


def best_pipeline(
    stages: Stages,
    limits: Limits | None = None,
    *,
    at_least: float = 0.0,
    at_most: float = np.inf,
    fewest: bool = True,
    progress: Callable[[Integers, float], None] | None = None,
) -> Found:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound, at which the search may end; only loads below ``at_most`` are of interest.
    ``progress`` hears of the first pipeline.
    """
    limits = limits or Limits()
    if not np.isfinite(stages.least).all():
        return Found(np.inf, None, True)
    start = sliced(stages, limits, at_most)
    if start.device is not None and progress is not None:
        progress(start.device, start.value)
    if limits.passed:
        return start
    cover = chains(stages.units, stages.before, stages.after)
    settled = start.value <= at_least * (1.0 + _SAME)
    if cover is None:
        return Found(start.value, start.device, settled, at_least, too_many=True)
    search = _Search(stages, cover, limits, start, at_least, at_most)
    search.run(fewest)
    found = search.found()
    return found if found.complete or not settled else replace(found, complete=True)


def sliced(stages: Stages, limits: Limits | None = None, at_most: float = np.inf) -> Found:
    """The best cut of a few topological orders into stages that is below ``at_most``; it proves nothing."""
    limits = limits or Limits()
    value, device = at_most, None
    if not np.isfinite(stages.least).all() or stages.classes.states * (stages.units + 1) > MOST_ENTRIES:
        return Found(value, device, False)
    capacity = Capacity(stages, np.inf)
    for order in orders(stages):
        line = Chains.of_order(order)
        for bound in _ladder(stages, value):
            table = _Table(stages, line, line.prefixes(order), capacity.within(bound), wide=False)
            found = table.search(bound * (1.0 - _SAME), limits, exact=True)
            if found.device is not None:
                value, device = found.value, found.device
            if found.device is not None or limits.passed:
                break
        if limits.passed:
            break
    return Found(np.inf if device is None else value, device, False)


def _ladder(stages: Stages, known: float) -> list[float]:
    """Bounds to try in turn: on a long order, far stages are looked at only when near ones do not do."""
    if np.isfinite(known):
        return [known]
    share = max(float(stages.least.sum()) / stages.classes.total, float(stages.least.max(initial=0.0)))
    return [*(share * 2.0**k for k in range(1, 8)), np.inf] if stages.units > _LONG and share > 0.0 else [np.inf]


class _Search:
    """From a first pipeline to the best one."""

    def __init__(
        self, stages: Stages, cover: Chains, limits: Limits, best: Found, at_least: float, at_most: float
    ) -> None:
        self.stages, self.cover, self.limits = stages, cover, limits
        self.capacity = Capacity(stages, np.inf)
        self.value, self.device = min(best.value, at_most), best.device
        # No device can be quicker than its share of the work.
        share = float(stages.least.sum()) / stages.classes.total - stages.beyond
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
        if table is None or not self.tried(table, before * (1.0 - _SAME), exact=False):
            return
        if before == np.inf and self.device is not None:
            table = self.table(self.value)  # now there is a bound to sieve with
            if table is None:
                return
        if self.value < before and not self.tried(table, self.value * (1.0 - _SAME), exact=True):
            return
        self.complete, self.bound = True, self.value
        self.least_devices = self.device is None or (fewest and self.fewest(table, self.value, self.device))

    def narrowed(self) -> _Table | None:
        """The ideals for the best load, after closing in on it from both sides with loads that leave fewer ideals."""
        ceiling = np.inf  # loads from which there are too many
        stages = self.stages
        edges = (stages.read_meter + stages.make_meter)[: stages.loads].max(axis=1).sum()
        largest = float(stages.unit_meter[: stages.loads].max(axis=1).sum() + edges)  # no stage costs more
        while self.value - self.bound > _CLOSE * self.bound or self.value > ceiling:
            top = min(self.value, ceiling)
            middle = (self.bound + top) / 2.0 if np.isfinite(top) else 2.0 * self.bound
            if self.bound > largest or not self.bound < middle < top or top - self.bound < _CLOSE * self.bound / 4.0:
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

    def table(self, bound: float, most: int | None = None) -> _Table | None:
        """The ideals that matter below a load; None when there are too many, or no time."""
        limits = self.limits
        most = limits.most if most is None else min(most, limits.most)
        known = [adds for load, adds in self.boundaries.items() if bound <= load < np.inf]
        capacity = self.capacity.within(bound, np.max(known, axis=0) if known else None)
        room, before = min(most, _MANY), np.inf
        while True:
            gate = capacity.gate(self.cover)
            walked = ideals(
                self.cover, capacity.weight, capacity.windows(), most=most if gate is None else room, gate=gate,
                deadline=limits.deadline, stop=limits.stop,
            )  # fmt: skip
            self.met, self.stored, self.too_many = walked.met, len(walked.positions), walked.too_many
            if walked.complete:
                break
            if gate is None:
                return None
            if walked.fit is None:
                self.given_up += 1
                return None
            # Walked over again, as what boundaries add is known better now; stored when that helps no more.
            if not capacity.learn(gate) or walked.fit > 0.9 * before:
                if walked.fit > most:
                    self.boundaries[bound] = capacity.boundaries
                    return None
                room = walked.fit
            before = walked.fit
        table = _Table(self.stages, self.cover, walked.positions, capacity, wide=True)
        self.boundaries[bound] = capacity.boundaries
        return table

    def tried(self, table: _Table, limit: float, *, exact: bool) -> bool:
        """Look for a chain within the limit and keep it; False when there was no time to end."""
        found = table.search(limit, self.limits, exact=exact)
        self.pairs = (
            self.pairs[0] + found.pairs[0], self.pairs[1] + found.pairs[1], self.pairs[2] + found.pairs[2]
        )  # fmt: skip
        if found.device is not None:
            self.value, self.device = found.value, found.device
        return found.complete

    def fewest(self, table: _Table, value: float, device: Integers) -> bool:
        """Replace the best by one that is as good and uses fewer devices, if there is one."""
        if len(np.unique(device)) <= self.capacity.within(value).fewest_devices:
            return True
        done = self.tried(table, value * (1.0 + 1e-12), exact=False)
        if self.device is None or len(np.unique(self.device)) >= len(np.unique(device)):
            self.device = device
        self.value = value
        return done

    def found(self) -> Found:
        """What there is."""
        value = np.inf if self.device is None else self.value
        return Found(
            value, self.device, self.complete, min(self.bound, value), self.least_devices, self.too_many, self.met,
            self.stored, self.pairs,
        )  # fmt: skip


class _Table:
    """Ideals with their costs, and the search over them; ``wide``: they are more than the prefixes of one order."""

    def __init__(self, stages: Stages, cover: Chains, positions: np.ndarray, capacity: Capacity, *, wide: bool) -> None:
        self.stages, self.cover = stages, cover
        start, edge, code = cut_lists(
            positions, cover.start, cover.unit, stages.touch_start, stages.touched, stages.role, stages.readers
        )
        weight = _sums(cover, positions, capacity.weight)
        fits = capacity.sieve(cover, weight, start, edge, code, transfers=wide)
        kept = np.flatnonzero(fits.any(axis=1))
        self.states = capacity.states
        chosen = kept[np.lexsort((positions[kept].sum(axis=1, dtype=np.int64), weight[kept]))]
        self.fits = fits[chosen]
        if len(chosen) < len(weight) or not (chosen[1:] > chosen[:-1]).all():
            lengths = np.diff(start)[chosen]
            moved = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
            entry = np.repeat(start[:-1][chosen] - moved[:-1], lengths) + np.arange(moved[-1])
            start, edge, code = moved, edge[entry], code[entry]
            positions, weight = positions[chosen], weight[chosen]
        self.positions = positions
        words, top = _packed(positions, cover) if wide else (np.zeros((0, len(weight)), dtype=np.uint64), np.uint64(0))
        own, rest = cut_costs(start, edge, code, stages.read_meter, stages.make_meter)
        units, blocked = _sums(cover, positions, stages.unit_meter), _sums(cover, positions, (~stages.supported) * 1)
        memory = _sums(cover, positions, stages.memory)
        # Edges that a stage cannot cut on both sides are paid in full on each.
        short = np.stack([capacity.short(cover, c) for c in range(len(self.states.share))])
        ahead, behind = cut_costs(start, edge, code, stages.read_meter[:1] * short, stages.make_meter[:1] * short)
        self.lattice = Lattice(
            weight, words, top, units, blocked, memory, start, edge, code, own, rest, units[0] + ahead[0],
            units[0] - behind[0],
        )  # fmt: skip
        costs = stages.read_meter + stages.make_meter
        meter, kind = np.nonzero((costs > 0.0).any(axis=2))
        even = (stages.read_meter == stages.make_meter).all(axis=2)
        rounding = 1e-12 * np.where(np.isfinite(stages.limit), np.abs(stages.unit_meter).sum(axis=2), 0.0)
        self.costs = Costs(
            meter, kind, even, stages.read_meter, stages.make_meter, stages.limit + rounding, stages.loads
        )

    @property
    def count(self) -> int:
        """How many ideals there are."""
        return len(self.positions)

    def search(self, limit: float, limits: Limits, *, exact: bool) -> Found:
        """The best chain within a load, or any (with the fewest devices) where not ``exact``."""
        count = self.count
        if not count or self.positions[0].any() or self.lattice.weight[-1] < self.states.whole:
            return Found(np.inf, None, True)  # not even nothing can be gone on from
        value = np.where(self.fits, np.inf, np.nan)
        value[0, 0] = -np.inf if exact else 0.0
        within = np.array([limit])
        seen, cursor = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
        complete = False
        while not (complete or limits.passed):
            complete = join(exact, self.lattice, self.costs, self.states, value, within, cursor, seen, _PATIENCE)
        pairs = (int(seen[0]), int(seen[1]), int(seen[2]))
        final = np.where(np.isnan(value[count - 1]), np.inf, value[count - 1])
        if not np.isfinite(final.min()):
            return Found(np.inf, None, complete, pairs=pairs)
        good = np.flatnonzero(final <= final.min() * (1.0 + 1e-12))
        state = int(good[np.argmin(self.states.digits[good].sum(axis=1))])
        device, load = self._chain(state, value, limit, exact)
        return Found(load, device, complete, pairs=pairs)

    def _chain(self, state: int, value: Floats, limit: float, exact: bool) -> tuple[Integers, float]:
        """The device of each unit, from everything back to nothing, and the largest load."""
        stages, cover = self.stages, self.cover
        device = np.full(stages.units, -1, dtype=np.int64)
        used = [0] * len(stages.classes.counts)
        goal, largest = len(value) - 1, 0.0
        while goal:
            base, kind = previous(goal, state, exact, self.lattice, self.costs, self.states, value, limit)
            ends = zip(cover.start, self.positions[base].tolist(), self.positions[goal].tolist(), strict=False)
            own = np.concatenate([cover.unit[first + low : first + high] for first, low, high in ends])
            device[own] = stages.classes.devices[kind][used[kind]]
            used[kind] += 1
            largest = max(largest, stages.load(own, kind))
            goal, state = base, state - int(self.states.stride[kind])
        return device, largest


def _sums(cover: Chains, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums over each ideal; the units are the last axis of ``values``, the ideals that of the result."""
    prefix = cover.prefix_sums(values)
    out = np.zeros((*values.shape[:-1], len(positions)), dtype=values.dtype)
    for c in range(cover.count):
        out += prefix[..., cover.row_start[c] + positions[:, c].astype(np.int64)]
    return out


def _packed(positions: np.ndarray, cover: Chains) -> tuple[np.ndarray, np.uint64]:
    """Positions in words of 64 bits, as many lanes a word as the longest chain allows; a lane's top bit is free."""
    longest = int(np.diff(cover.start).max())
    bits = next(b for b in (8, 16, 32, 64) if longest < 1 << (b - 1))
    lanes = 64 // bits
    words = np.zeros((-(-cover.count // lanes), len(positions)), dtype=np.uint64)
    for c in range(cover.count):
        words[c // lanes] |= positions[:, c].astype(np.uint64) << np.uint64(bits * (c % lanes))
    return words, np.uint64(sum(1 << (bits * lane + bits - 1) for lane in range(lanes)))
