"""The partition bound: can the units be shared out among the devices so that no load exceeds T?

A placement is one set of units for each device.  Let ``price`` be any prices of the units and m[c] >= 0 of a whole
device's memory of class c.  If no set that a device of class c can bear (load at most T) is worth more than

    worth[c]  >=  max over sets S with load(c, S) <= T of  sum over v in S of (price[v] - m[c] * memory[c][v])

and   sum over v of price[v]  >  sum over c of count[c] * (m[c] + worth[c]),   then no placement has all loads within T,
for its sets together would be worth the left side and could be worth no more than the right.  T is then a bound.
This is the Dantzig-Wolfe (set partitioning) relaxation of the problem; the load stays whole in each set, so that
transfers cannot be averaged away over like devices.  Prices come from the master program; they are only proposals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from placedsl.algorithms.bounds.frontier import frontier
from placedsl.algorithms.bounds.master import Master, Prices, base_prices, grouped
from placedsl.algorithms.bounds.pricing import Pricing
from placedsl.algorithms.bounds.relaxation import DeviceClass, Hyperedges, Relaxation, relaxation
from placedsl.algorithms.bounds.work import work_bound
from placedsl.graph.graph import Floats
from placedsl.problem import Problem

#: A bound this near to the incumbent, relatively, proves it optimal (the planner calls values within 1e-6 the same).
SAME = 5e-7
#: What rounding may add to a worth, as a share of all prices together.
ROUNDING = 1e-10
#: Groups of units, from coarse to fine, and how many labels a state are followed in turn.
GROUPS = (20, 50, 100, 10**9)
KEEP, KEEP_FINEST = (30, 100), (30, 100, 400, 2000, 20000)
#: How far prices stay at the best so far, in turn, while nothing new is found.
STAY = (0.7, 0.35, 0.0)
#: Limits on prices, and how often they are widened.
BOX, WIDENINGS = 2.0, 3
#: Sets that a search may give at once.
SETS = 5
#: Effort (labels and vertices, and entries of the master program) of an attempt: at first, and how it grows.
EFFORT, GROWTH, MASTER_EFFORT = 20_000_000, 3, 1
#: Attempts of the relaxed search, and the gap at which it ends.
QUICK, QUICK_GAP = 14, 2e-4
#: The gap at which a round of the exact search ends, at first (it shrinks as effort grows), and at last.
ROUND_GAP, LAST_GAP = 1e-3, 1e-5
#: Cheap hyperedges are left out up to this share of the bound, until the gap is of that order.
CHEAP = 5e-4

Outcome = Literal["proven", "feasible", "open"]


def partition_bounds(
    problem: Problem, *, upper: Callable[[], float], deadline: float | None, stop: Callable[[], bool]
) -> Iterator[float]:
    """Increasing proven bounds on the largest load; inf when there is no placement at all.

    ``upper`` tells the best known value (inf: none) whenever asked.  Ends when the bound is within rounding of it, when
    the relaxation has no more to give, at the ``deadline`` (``time.monotonic()``), or when ``stop()`` says so.
    """
    relaxed = relaxation(problem)
    bound = work_bound(relaxed)
    yield bound
    if relaxed.units and bound < np.inf:
        yield from _Search(relaxed, bound, upper, deadline, stop).bounds()


@dataclass(eq=False)
class _Search:
    """The search over T, and what is carried from one T to the next: sets, and the best prices."""

    relaxed: Relaxation
    bound: float
    upper: Callable[[], float]
    deadline: float | None
    stop: Callable[[], bool]
    pool: list[tuple[Floats, int, float]] = field(default_factory=list)
    searches: list[Pricing] = field(default_factory=list)
    built_for: tuple[float, float] = (np.inf, np.inf)
    ratio: float = 0.0

    def __post_init__(self) -> None:
        classes = len(self.relaxed.classes)
        self.best = Prices(base_prices(self.relaxed), np.zeros(classes), np.zeros(classes), 0.0, False)
        work = np.array([device.work for device in self.relaxed.classes])
        finite = np.where(np.isfinite(work), work, 0.0)
        #: No placement has a larger load than this.
        self.all = float(finite.max(axis=0).sum() + max(d.edges.cost.sum() for d in self.relaxed.classes)) * (1 + 1e-9)

    @property
    def over(self) -> bool:
        """Whether to end."""
        return (self.deadline is not None and time.monotonic() > self.deadline) or self.stop()

    @property
    def top(self) -> float:
        """The largest T that is worth proving."""
        return min(self.upper() * (1 - SAME), self.all)

    def bounds(self) -> Iterator[float]:
        """First by the relaxed worth, then by the exact one with ever more effort."""
        high = self.top
        for _ in range(QUICK):
            if self.over or min(high, self.top) - self.bound <= QUICK_GAP * self.bound:
                break
            middle = (self.bound + min(high, self.top)) / 2
            if self.attempt(middle, False, EFFORT) == "proven":
                self.bound = middle
                yield middle
            else:
                high = middle
        feasible, effort, cheap, gap = np.inf, EFFORT, True, ROUND_GAP
        while not self.over and self.bound < self.top:
            high, settled = min(self.top, feasible), feasible <= self.top
            trial = self.top if feasible > self.top else (self.bound + high) / 2
            while not self.over and high - self.bound > gap * self.bound:
                outcome = self.attempt(trial, True, effort, cheap)
                if outcome == "proven":
                    self.bound = trial
                    yield self.proven(trial)
                    if trial >= self.top:
                        return
                else:
                    high, settled = trial, outcome == "feasible"
                    feasible = trial if settled else feasible
                trial = (self.bound + min(high, self.top)) / 2
            near = high - self.bound <= LAST_GAP * self.bound
            if settled and near and not cheap:
                return
            if settled and near:
                cheap, feasible = False, np.inf
            effort, gap = effort * GROWTH, max(gap / GROWTH, LAST_GAP / 2)

    def proven(self, largest: float) -> float:
        """What it means that no placement is within ``largest``."""
        return np.inf if largest >= self.all else largest

    def prepare(self, largest: float, cheap: float) -> None:
        """Layered graphs for loads up to ``largest``; those there are serve unless they are much too large."""
        made_for, made_cheap = self.built_for
        if self.searches and largest <= made_for and made_for <= 2 * largest and made_cheap <= max(cheap, 0.0):
            return
        self.pool.clear()
        self.built_for = (largest, cheap)
        self.searches = []
        for device in self.relaxed.classes:
            graph = frontier(device, largest, cheap)
            if graph is None:  # too wide: without transfers it is a bound still
                graph = frontier(replace(device, edges=Hyperedges((), np.zeros(0))), largest)
            assert graph is not None
            self.searches.append(Pricing(graph))

    def attempt(self, largest: float, exact: bool, effort: int, cheap: bool = True) -> Outcome:
        """Try to prove that no placement has all loads within ``largest``."""
        limit = self.top if self.top <= 2 * largest else 2 * largest
        self.prepare(max(limit, largest), CHEAP * self.bound if cheap else 0.0)
        for search in self.searches:
            search.effort = 0
        spent = [0]
        last = 1 if not exact else 0
        outcome: Outcome = "open"
        worth, _, _ = self._worths(self.best, self.best, largest, exact, KEEP[0])
        self.ratio = self._ratio(self.best, worth)
        if self.ratio > 1:
            return "proven"
        levels = [most for most in GROUPS[: len(GROUPS) - last] if most < self.relaxed.units]
        levels += [] if last and levels else [self.relaxed.units]
        mixtures: list[tuple[Floats, int, float]] = []
        for most in levels:
            finest = most == levels[-1]
            group = grouped(self.relaxed, most)
            box = BOX
            for _ in range(WIDENINGS + 1):
                master = Master(self.relaxed, group, self.best.unit, box)
                for members, which, load in (*self.pool, *mixtures):
                    if load <= largest * (1 + 1e-9):
                        master.add(members, which)
                outcome, loose = self._column_generation(
                    master, largest, exact, finest, effort, spent, mixtures, rows=int(group.max()) + 1
                )
                if not loose or (outcome == "feasible" and not finest):
                    break
                box *= 4
            if outcome == "proven" or self.over or spent[0] > effort:
                break
        return outcome if outcome == "proven" or not (self.over or spent[0] > effort) else "open"

    def _column_generation(
        self, master: Master, largest: float, exact: bool, finest: bool, effort: int, spent: list[int],
        mixtures: list[tuple[Floats, int, float]], rows: int,
    ) -> tuple[Outcome, bool]:  # fmt: skip
        """Master and worths in turn; the outcome, and whether it hangs on the limits on prices."""
        keeps = KEEP_FINEST if finest else KEEP
        keep = stay = columns = 0
        while not self.over and spent[0] <= effort:
            found = master.solve()
            if found is None:  # no prices so near to the centre fit the sets known
                return "open", True
            if found.needed < 1 - 1e-6:
                return "feasible", found.loose
            new = 0
            while not new:
                prices = _between(self.best, found, STAY[stay])
                worth, sets, dropped = self._worths(prices, found, largest, exact, keeps[keep])
                spent[0] += sum(search.effort for search in self.searches) + MASTER_EFFORT * rows * columns
                for search in self.searches:
                    search.effort = 0
                ratio = self._ratio(prices, worth)
                if ratio > 1:
                    self.best = self._scaled(prices, worth)
                    return "proven", False
                if ratio > self.ratio:
                    self.ratio, self.best = ratio, self._scaled(prices, worth)
                for members, which, load in sets:
                    if master.add(members, which):
                        new += 1
                        (self.pool if exact else mixtures).append((members, which, load))
                if new or self.over:
                    stay = 0
                elif stay + 1 < len(STAY):
                    stay += 1
                elif exact and dropped and keep + 1 < len(keeps):
                    keep += 1
                else:
                    return ("open" if dropped and finest else "feasible"), found.loose
            columns += new
        return "open", False

    def _worths(
        self, prices: Prices, found: Prices, largest: float, exact: bool, keep: int
    ) -> tuple[list[float], list[tuple[Floats, int, float]], bool]:
        """By class a bound on what a device can bear is worth; sets that the master program lacks; and whether the
        bounds could be better."""
        worth, sets, dropped = [], [], False
        for which, (device, search) in enumerate(zip(self.relaxed.classes, self.searches, strict=True)):
            price = prices.unit - prices.memory[which] * device.memory
            if exact:
                threshold = max(float(found.device[which]), 1e-9)
                value, members, final = search.dearest(price, largest, threshold, keep, SETS)
                dropped |= not final
                sets += [(m.astype(np.float64), which, load) for m, load in members]
            else:
                value, shares = search.relaxed(price, largest)
                sets.append((shares, which, largest))
            worth.append(max(value, 0.0))
        there = found.unit, found.device, found.memory
        return worth, [s for s in sets if _lacking(self.relaxed.classes[s[1]], s, *there)], dropped

    def _scaled(self, prices: Prices, worth: list[float]) -> Prices:
        """The same prices in the scale of the master program, where all devices together cost 1."""
        count = np.array([device.count for device in self.relaxed.classes])
        scale = 1 / max(float(count @ (prices.memory + worth)), 1e-12)
        return Prices(scale * prices.unit, scale * np.array(worth), scale * prices.memory, prices.needed, prices.loose)

    def _ratio(self, prices: Prices, worth: list[float]) -> float:
        """Above 1: proven.  Rounding is counted against the proof."""
        have = float(prices.unit.sum())
        most, size = 0.0, float(np.abs(prices.unit).sum())
        for which, device in enumerate(self.relaxed.classes):
            memory = float(prices.memory[which])
            most += device.count * (memory + worth[which])
            size += device.count * (memory + float((np.abs(prices.unit) + memory * device.memory).sum()))
        return have / (most + ROUNDING * size)


def _between(one: Prices, other: Prices, share: float) -> Prices:
    """Prices ``share`` of the way towards ``one``."""

    def mix(a: Floats, b: Floats) -> Floats:
        return share * a + (1 - share) * b

    return Prices(
        mix(one.unit, other.unit),
        mix(one.device, other.device),
        mix(one.memory, other.memory),
        other.needed,
        other.loose,
    )


def _lacking(
    device: DeviceClass, found: tuple[Floats, int, float], unit: Floats, price: Floats, memory: Floats
) -> bool:
    """Whether a set is worth more, at the master program's own prices, than the device is priced there."""
    members, which, _ = found
    return bool((unit - memory[which] * device.memory) @ members > price[which] + 1e-9)
