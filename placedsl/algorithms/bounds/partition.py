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

import numpy as np

from placedsl.algorithms.bounds.attempt import Attempt, Carried, nothing_carried
from placedsl.algorithms.bounds.frontier import frontier
from placedsl.algorithms.bounds.pricing import Pricing
from placedsl.algorithms.bounds.relaxation import Hyperedges, Relaxation, relaxation
from placedsl.algorithms.bounds.work import work_bound
from placedsl.problem import Problem

#: A bound this near to the incumbent, relatively, proves it optimal (the planner calls values within 1e-6 the same).
SAME = 5e-7
#: Effort of an attempt, at first, how it grows from round to round, and what is the most.
EFFORT, GROWTH, MOST_EFFORT = 2e7, 3, 1e12
#: Attempts by relaxed worths, and the gap at which they end.
QUICK, QUICK_GAP = 14, 2e-4
#: Attempts that a round by exact worths may leave open, and the gap at which all ends.
MISSES, LAST_GAP = 3, 1e-5
#: Cheap hyperedges are left out, up to this share of the bound, until the gap is of that order.
CHEAP = 5e-4


def partition_bounds(
    problem: Problem, *, upper: Callable[[], float], deadline: float | None, stop: Callable[[], bool]
) -> Iterator[float]:
    """Increasing proven bounds on the largest load; inf when there is no placement at all.

    ``upper`` tells the best known value (inf: none) whenever asked.  Ends when the bound is within rounding of it, when
    the relaxation has no more to give, at the ``deadline`` (``time.monotonic()``), or when ``stop()`` says so.
    """

    def over() -> bool:
        return (deadline is not None and time.monotonic() > deadline) or stop()

    relaxed = relaxation(problem)
    bound = work_bound(relaxed)
    yield bound
    if relaxed.units and bound < np.inf:
        yield from _Search(relaxed, bound, upper, over).bounds()


@dataclass(eq=False)
class _Search:
    """The search over T.  ``full``: no hyperedge is left out any more."""

    relaxed: Relaxation
    bound: float
    upper: Callable[[], float]
    over: Callable[[], bool]
    full: bool = False
    carried: Carried = field(init=False)
    _searches: list[Pricing] = field(init=False, default_factory=list)
    _made_for: tuple[float, bool] = (np.inf, False)

    def __post_init__(self) -> None:
        self.carried = nothing_carried(self.relaxed)
        work = np.array([device.work for device in self.relaxed.classes])
        finite = np.where(np.isfinite(work), work, 0.0).max(axis=0).sum()
        #: No placement has a larger load than this.
        self.all = float(finite + max(device.edges.cost.sum() for device in self.relaxed.classes)) * (1 + 1e-9)

    @property
    def top(self) -> float:
        """The largest T that is worth proving."""
        return min(self.upper() * (1 - SAME), self.all)

    def bounds(self) -> Iterator[float]:
        """First by relaxed worths, then by exact ones with ever more effort."""
        yield from self._quick()
        effort, beyond = EFFORT, np.inf
        while not self.over() and self.bound < self.top and effort < MOST_EFFORT:
            misses, trial = 0, self._next(beyond)
            while not self.over() and misses < MISSES:
                if trial < self.top and trial - self.bound <= LAST_GAP * self.bound:
                    break
                outcome = self._attempt(trial, True, effort)
                if outcome == "proven":
                    self.bound = trial
                    yield np.inf if trial >= self.all else trial
                    if trial >= self.top:
                        return
                    trial = (self.bound + min(beyond, self.top)) / 2
                else:
                    misses += outcome == "open"
                    beyond = trial if outcome == "beyond" else beyond
                    trial = (self.bound + trial) / 2
                if not self.full and min(beyond, self.top) - self.bound <= CHEAP * self.bound:
                    self.full, beyond, trial = True, np.inf, self.top
            if beyond - self.bound <= 3 * LAST_GAP * self.bound:
                return
            effort *= GROWTH

    def _next(self, beyond: float) -> float:
        """Where a round begins: at the top, unless that is known to be too much."""
        return self.top if beyond > self.top else (self.bound + beyond) / 2

    def _quick(self) -> Iterator[float]:
        """Halving by relaxed worths."""
        high = self.top
        for _ in range(QUICK):
            high = min(high, self.top)
            if self.over() or high - self.bound <= QUICK_GAP * self.bound:
                return
            middle = (self.bound + high) / 2
            if self._attempt(middle, False, EFFORT) == "proven":
                self.bound = middle
                yield middle
            else:
                high = middle

    def _attempt(self, largest: float, exact: bool, effort: float) -> str:
        """One attempt, over layered graphs that serve for it and for larger T."""
        made_for, full = self._made_for
        if not self._searches or largest > made_for or made_for > 2 * largest or self.full != full:
            self._make(min(max(self.top, largest), 2 * largest))
        return Attempt(self.relaxed, self._searches, self.carried, largest, exact, effort, self.over).run()

    def _make(self, largest: float) -> None:
        """Layered graphs for loads up to ``largest``; what sets were found may not fit them."""
        self.carried.sets.clear()
        self._made_for = (largest, self.full)
        self._searches.clear()
        for device in self.relaxed.classes:
            graph = frontier(device, largest, 0.0 if self.full else CHEAP * self.bound)
            if graph is None:  # too wide: without transfers it is a bound still
                graph = frontier(replace(device, edges=Hyperedges((), np.zeros(0))), largest)
            assert graph is not None
            self._searches.append(Pricing(graph))
