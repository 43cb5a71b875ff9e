"""The partition bound: can the units be divided among the devices so that no load exceeds T?

A placement is one set of units per device.  Let ``price`` be any prices of the units and m[c] >= 0 of a whole device's
memory of class c.  Let

    value[c]  >=  max over sets S with load(c, S) <= T of  sum over v in S of (price[v] - m[c] * memory[c][v])

be upper bounds for the classes.  If   sum over v of price[v]  >  sum over c of count[c] * (m[c] + value[c]),   then no
placement has all loads within T: its sets together would be worth the left side, but no more than the right side.  T is
then a lower bound.  This is the Dantzig-Wolfe (set partitioning) relaxation of the problem; the load stays a whole in
each set, so that transfers are not averaged over equal devices.  The master program proposes the prices; errors in them
weaken the bound and cannot make it wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placedsl.algorithms.exchange import ALONE, Exchange
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.column_generation import ColumnGeneration, WarmStart, cold_start
from placedsl.algorithms.partitions.bounds.entangled_pricing import EntangledPricing
from placedsl.algorithms.partitions.bounds.priced_sets import PricedSets
from placedsl.algorithms.partitions.bounds.pricing import Pricing
from placedsl.algorithms.partitions.bounds.relaxation import Relaxation, relaxation
from placedsl.algorithms.partitions.bounds.shared_sets import SharedSets
from placedsl.algorithms.partitions.bounds.state_graph import state_graph
from placedsl.algorithms.partitions.bounds.work import work_bound
from placedsl.problem.problem import Problem
from placedsl.tolerances import LIMIT_SLACK, PROOF

#: What it is, in words.
WORDS = "the partition bound"
#: The effort of a run at first, its growth from round to round, and its maximum.
EFFORT, GROWTH, MOST_EFFORT = 2e7, 3, 1e12
#: Runs with relaxed pricing, and the gap at which they end.
QUICK, QUICK_GAP = 14, 2e-4
#: Runs that a round with exact pricing may leave open, and the gap at which the search ends.
MISSES, LAST_GAP = 3, 2e-7
#: Negligible hyperedges are left out, up to this share of the bound, until the gap is of that order.
NEGLIGIBLE = 5e-4


def partition_bounds(
    problem: Problem, *, upper: Callable[[], float], over: Callable[[], bool], known: float = -np.inf,
    lower: Callable[[], float] = lambda: -np.inf, share: float | None = None, exchange: Exchange = ALONE,
) -> Iterator[Bound]:  # fmt: skip
    """Increasing proven lower bounds on the largest load; inf if there is no placement at all.

    The best known value is ``upper()`` (inf: none), the best bound ``known``, and ``lower()`` what is proven elsewhere
    meanwhile.  ``share``: where thresholds lie between bound and value at first (None: where they do best alone), for
    runs side by side.  ``exchange``: the line to these, for sets.  Ends when the bound is within rounding
    of it, when the relaxation is exhausted, or when it is ``over()``.
    """
    relaxed = relaxation(problem)
    bound = work_bound(relaxed)
    if bound.value > known:
        yield bound
    least = max(bound.value, known)
    if relaxed.units and least < np.inf:
        yield from _ThresholdSearch(relaxed, least, upper, over, False, lower, share, exchange).bounds()


def prices_at(relaxed: Relaxation, largest: float, over: Callable[[], bool]) -> dict[str, Any] | None:
    """Prices that prove that no placement is within one load, as a certificate begins; None where none are found."""
    if not relaxed.units or largest <= 0.0:
        return None
    search = _ThresholdSearch(relaxed, largest, lambda: largest / (1.0 - PROOF), over, full=True)
    effort, outcome = EFFORT, "open"
    while outcome == "open" and not over() and effort < MOST_EFFORT:
        outcome = search.attempt(largest, True, effort)
        effort *= GROWTH
    return search.proof if outcome == "proven" else None


@dataclass(eq=False)
class _ThresholdSearch:
    """The search over T.  ``full``: no hyperedge is left out any more; the rest as of :func:`partition_bounds`."""

    relaxed: Relaxation
    bound: float
    upper: Callable[[], float]
    over: Callable[[], bool]
    full: bool = False
    lower: Callable[[], float] = lambda: -np.inf
    share: float | None = None
    exchange: Exchange = ALONE
    warm_start: WarmStart = field(init=False)
    _pricing: list[Pricing | EntangledPricing] = field(init=False, default_factory=list)
    _made_for: tuple[float, bool] = (np.inf, False)
    proof: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.warm_start = cold_start(self.relaxed)
        work = np.array([device.work for device in self.relaxed.classes])
        finite = np.where(np.isfinite(work), work, 0.0).max(axis=0).sum()
        #: No placement has a larger load than this.
        self.all = float(finite + max(device.edges.cost.sum() for device in self.relaxed.classes)) * (1 + LIMIT_SLACK)

    @property
    def top(self) -> float:
        """The largest T that is worth proving."""
        return min(self.upper() * (1 - PROOF), self.all)

    def bounds(self) -> Iterator[Bound]:
        """First with relaxed pricing, then with exact pricing and increasing effort."""
        self._build_graphs(self.top)
        entangled = any(isinstance(pricing, EntangledPricing) for pricing in self._pricing)
        if entangled and len(self.relaxed.classes) == 1:
            (pricing,) = self._pricing
            assert isinstance(pricing, EntangledPricing)
            yield from PricedSets(
                self.relaxed,
                pricing,
                self.bound,
                self.all,
                self.upper,
                self.over,
                self.lower,
                self.share,
                self.exchange,
            ).bounds()
            return
        effort, beyond = EFFORT, np.inf
        if not entangled:
            yield from self._quick()
        while not self.over() and self.bound < self.top and effort < MOST_EFFORT:
            alone = self.share is None
            misses, trial = 0, self._next(beyond) if alone and not entangled else self._between(beyond)
            while not self.over() and misses < MISSES:
                self._hear()
                if trial <= self.bound:
                    if min(beyond, self.top) <= self.bound:
                        return
                    trial = self._between(beyond)
                if trial < self.top and trial - self.bound <= LAST_GAP * self.bound:
                    break
                outcome = self.attempt(trial, True, effort)
                if outcome == "proven":
                    self.bound = trial
                    yield self._proven(np.inf if trial >= self.all else trial)
                    if trial >= self.top:
                        return
                    trial = self._between(beyond)
                else:
                    misses += outcome == "open"
                    beyond = trial if outcome == "beyond" else beyond
                    trial = (self.bound + trial) / 2
                if not self.full and min(beyond, self.top) - self.bound <= NEGLIGIBLE * self.bound:
                    self.full, beyond, trial = True, np.inf, self.top
            if beyond - self.bound <= 3 * LAST_GAP * self.bound:
                return
            effort *= GROWTH

    def _next(self, beyond: float) -> float:
        """Where a round begins: at the top, unless that is known to be beyond proof."""
        return self.top if beyond > self.top else (self.bound + beyond) / 2

    def _between(self, beyond: float) -> float:
        """Between the bound and what may be proven."""
        return self.bound + (0.5 if self.share is None else self.share) * (min(beyond, self.top) - self.bound)

    def _hear(self) -> None:
        """Take the bound that is proven elsewhere."""
        self.bound = max(self.bound, self.lower())

    def _quick(self) -> Iterator[Bound]:
        """Bisection with relaxed pricing."""
        high = self.top
        for _ in range(QUICK):
            high = min(high, self.top)
            self._hear()
            if self.over() or high - self.bound <= QUICK_GAP * self.bound:
                return
            middle = self._between(high)
            if self.attempt(middle, False, EFFORT) == "proven":
                self.bound = middle
                yield self._proven(middle)
            else:
                high = middle

    def attempt(self, largest: float, exact: bool, effort: float) -> str:
        """One run of column generation, on layered graphs that also serve for larger T."""
        made_for, full = self._made_for
        if not self._pricing or largest > made_for or made_for > 2 * largest or self.full != full:
            self._build_graphs(min(max(self.top, largest), 2 * largest))
        shared = SharedSets(self.exchange, self.relaxed.units, full=self.full)
        run = ColumnGeneration(self.relaxed, self._pricing, self.warm_start, largest, exact, effort, self.over, shared)
        outcome = run.run()
        self.proof = None if run.proof is None else {
            "kind": "prices", "largest": largest, "price": run.proof.unit.tolist(),
            "memory": run.proof.memory.tolist(), "value": run.proof.device.tolist(),
        }  # fmt: skip
        return outcome

    def _proven(self, value: float) -> Bound:
        """What the last attempt has proven, with its prices; what sets are worth at most is left to be shown."""
        return Bound(value, WORDS, self.proof)

    def _build_graphs(self, largest: float) -> None:
        """Layered graphs for loads up to ``largest``; the columns known may exceed them and are dropped."""
        self.warm_start.columns.clear()
        self._made_for = (largest, self.full)
        self._pricing.clear()
        for device in self.relaxed.classes:
            graph = state_graph(device, largest, 0.0 if self.full else NEGLIGIBLE * self.bound)
            self._pricing.append(EntangledPricing(device, self.over) if graph is None else Pricing(graph))
