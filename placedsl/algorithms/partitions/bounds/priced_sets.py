"""The partition bound of devices that are all alike, where tensors are entangled: prices whose cheapest set is dear.

Let the prices of all units be k together, net of what they take of memory at its own price.  One of k devices then has
a set worth at least 1, so the largest load is at least

    g(price)  =  min over sets S with  price(S) >= 1  of  load(S)

for whatever prices.  g is what :class:`CheapestSet` proves, wherever it is left.  Here g is maximised: the master
program proposes prices at which no known set of a load below some T is worth 1, which are the prices of the partition
bound at T; annealing and the search for the cheapest set find sets that are.  T is between the best g and the least T
for which the known sets leave no prices.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placedsl.algorithms.exchange import ALONE, Exchange
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.entangled_pricing import EntangledPricing
from placedsl.algorithms.partitions.bounds.master_program import MasterProgram, base_prices, unit_groups
from placedsl.algorithms.partitions.bounds.relaxation import Relaxation
from placedsl.algorithms.partitions.bounds.set_annealing_kernel import load_of
from placedsl.algorithms.partitions.bounds.shared_sets import SharedSets
from placedsl.arrays import Booleans, Floats
from placedsl.tolerances import BOUND_ROUNDING, PROOF

#: What it is, in words.
WORDS = "the partition bound"
#: Where T is between what is proven and what the known sets allow, at most; how much nearer to the latter after a
#: proof, to the former after none, and at least; where they are so near that all of it is tried; and how near in the
#: end.
_BETWEEN, _HIGHER, _LOWER, _LEAST, _CLOSE, _NEAR = 0.2, 1.5, 0.4, 0.03, 1e-3, 2e-7
#: The prices of all are more than k by this share, so that a set worth 1 has to be; and how much more than the devices
#: that there are would have to be needed, for there to be prices.
_MORE, _NEEDED = 1e-8, 1e-6
#: Shares of the best prices in those that are tried.
_SMOOTHING = (0.6, 0.3, 0.0)
#: Half of the box that prices are within around the best ones, in terms of base prices; and wider ones.
_BOXES = (2.0, 8.0, 32.0, 128.0)
#: Nodes of a run for one T at first, how many more after one that stays open, and when to end; and questions of a run.
_NODES, _MORE_NODES, _MOST_NODES, _QUESTIONS = 200_000, 1.5, 10**9, (40, 40, 40, 200)
#: Units are priced in so many groups at first, and in more where these leave no prices.
_GROUPS = (20, 50, 100, 10**9)
#: A proof goes on to this share above T.
_BEYOND = 2e-3
#: Sets that annealing gives at once, and sets kept.
_SETS, _KEPT = 5, 4_000
#: Where a search over connected sets does no more than this, it takes less than to anneal.
_QUICK = 60_000_000


@dataclass(frozen=True, eq=False)
class _Prices:
    """Prices of the units (u), 1 together, and of a device's memory."""

    unit: Floats
    memory: float

    def towards(self, other: _Prices, share: float) -> _Prices:
        """So much of these, and the rest of others."""
        return _Prices(
            share * self.unit + (1.0 - share) * other.unit, share * self.memory + (1.0 - share) * other.memory
        )


@dataclass(eq=False)
class PricedSets:
    """The search for prices.

    ``bound``  what is proven, seconds;  ``upper()``  the value of the best placement (inf: none)
    ``lower()``  what is proven elsewhere meanwhile;  ``share``  where T is at first in what is open (None: the usual)
    ``most``   no placement loads more: if that is proven there is none, which a bound of inf says
    """

    relaxed: Relaxation
    pricing: EntangledPricing
    bound: float
    most: float
    upper: Callable[[], float]
    over: Callable[[], bool]
    lower: Callable[[], float] = lambda: -np.inf
    share: float | None = None
    exchange: Exchange = ALONE
    _known: list[tuple[Booleans, float]] = field(default_factory=list)
    _best: _Prices = field(init=False)
    _shared: SharedSets = field(init=False)
    #: No prices prove this.
    _ceiling: float = np.inf
    _nodes: int = _NODES
    _left: int = 0
    _level: int = 0

    def __post_init__(self) -> None:
        self._best = _Prices(base_prices(self.relaxed), 0.0)
        self._shared = SharedSets(self.exchange, self.relaxed.units)

    @property
    def _top(self) -> float:
        return min(self.upper() * (1.0 - PROOF), self.most)

    def bounds(self) -> Iterator[Bound]:
        """Increasing bounds, first by the work as prices; until the value is reached, prices are exhausted, or over."""
        first = _BETWEEN if self.share is None else self.share
        between, whole = first, True
        while not self.over() and self._nodes < _MOST_NODES:
            self.bound = max(self.bound, self.lower())
            open_gap = min(self._ceiling, self._top) - self.bound
            if open_gap <= _NEAR * self.bound:
                return
            if whole and open_gap <= _CLOSE * self.bound:
                # The value itself, or what is known to be out of reach: proven, or not at all.
                outcome = yield from self._at(self.bound + open_gap)
                whole = outcome == "proven"
                continue
            outcome = yield from self._at(self.bound + between * open_gap)
            between = min(between * _HIGHER, first) if outcome == "proven" else max(between * _LOWER, _LEAST)
            if outcome == "beyond" or between * open_gap < _NEAR * self.bound:
                between = first
            if outcome == "open":
                whole = True
                self._nodes, self._level = int(self._nodes * _MORE_NODES), min(self._level + 1, len(_GROUPS) - 1)

    def _at(self, trial: float) -> Generator[Bound, None, str]:
        """Look for prices at which no set of a load below ``trial`` is worth 1: "proven", "beyond" or "open"."""
        box = step = 0
        self._left, asked_for = self._nodes, 0
        master = self._master(trial, _BOXES[box])
        while not self.over() and self._left > 0:
            for members, load in self._heard():
                if load < trial:
                    master.add(members.astype(np.float64), 0)
            duals = master.solve()
            missing = duals is None or duals.needed < 1.0 + _NEEDED
            if missing and (duals is None or duals.loose):
                box += 1
                if box == len(_BOXES):
                    return "open"
                master = self._master(trial, _BOXES[box])
                continue
            if missing and self._level + 1 < len(_GROUPS):
                box, self._level = 0, self._level + 1
                master = self._master(trial, _BOXES[box])
                continue
            if duals is None or missing:
                self._ceiling = min(self._ceiling, trial)
                return "beyond"
            asked = _Prices(duals.unit / duals.needed, float(duals.memory[0]) / duals.needed)
            worth = self._worth(asked)
            new = False
            while not new and not self.over():
                prices = self._best.towards(asked, _SMOOTHING[step])
                asked_for += 1
                if asked_for > _QUESTIONS[self._level]:
                    return "open"
                quick = self._listed(trial) and self.pricing.connected.effort <= _QUICK
                found = [] if quick else self.pricing.annealed(self._worth(prices), trial, 1.0, _SETS)
                if not found:
                    sets = yield from self._cheapest(prices, trial)
                    if not sets:
                        return "proven" if self.bound >= min(trial, self._top) else "open"
                    found = [(own, float(load_of(self.pricing.tensors, own))) for own in sets]
                self._known = [*self._known, *found][-_KEPT:]
                self._shared.tell((0, members, load) for members, load in found)
                for members, _ in found:
                    new |= master.add(members.astype(np.float64), 0) and bool(worth @ members >= 1.0)
                step = 0 if new else step + 1
                if step == len(_SMOOTHING):
                    return "open"
        return "open"

    def _heard(self) -> list[tuple[Booleans, float]]:
        """Take the sets that others have found, with their loads."""
        sets = [(own, float(load_of(self.pricing.tensors, own))) for _, own, _ in self._shared.heard()]
        self._known = [*self._known, *sets][-_KEPT:]
        return sets

    def _worth(self, prices: _Prices) -> Floats:
        """What units are worth (u) where one of the devices has a set worth more than 1; nothing, where none has to."""
        (device,) = self.relaxed.classes
        share = 1.0 / device.count - prices.memory  # above 0, for the devices of the master program cost something
        return (prices.unit - prices.memory * device.memory) * ((1.0 + _MORE) / share)

    def _most(self, trial: float) -> float:
        """The load up to which a question about ``trial`` is answered."""
        return min(trial * (1.0 + _BEYOND), self._top)

    def _listed(self, trial: float) -> bool:
        """Whether there are so few connected sets that the cheapest set is put together from them."""
        return self.pricing.connected.listed(self._most(trial), self._top, self.over)

    def _cheapest(self, prices: _Prices, trial: float) -> Generator[Bound, None, list[Booleans]]:
        """Prove what the cheapest set worth 1 loads at least; sets of a load below ``trial``, where some are met."""
        if prices.memory >= 1.0 / self.relaxed.classes[0].count:
            return []  # no set has to be worth anything
        worth, most = self._worth(prices), self._most(trial)
        if self._listed(trial):
            least, sets, _ = self.pricing.connected.least(worth, most, lambda *_: self.over())
        else:
            search = self.pricing.cheapest
            search.nodes = 0
            least, members, _ = search.least(
                worth, lambda: min(most, self._top),
                lambda _, found: found < trial or search.nodes > self._nodes or self.over(),
            )  # fmt: skip
            self._left -= search.nodes
            sets = [] if members is None else [members]
        if least * (1.0 - BOUND_ROUNDING) > self.bound:
            self.bound, self._best = least * (1.0 - BOUND_ROUNDING), prices
            none = least >= self.most
            yield Bound(np.inf if none else self.bound, WORDS, self._proof(prices))
        return [own for own in sets if float(load_of(self.pricing.tensors, own)) < trial]

    def _proof(self, prices: _Prices) -> dict[str, Any]:
        """The prices as a certificate begins; what sets are worth at most is left to be shown."""
        (device,) = self.relaxed.classes
        value = (1.0 / device.count - prices.memory) / (1.0 + _MORE)
        return {
            "kind": "prices", "largest": self.bound, "price": prices.unit.tolist(),
            "memory": [prices.memory], "value": [value],
        }  # fmt: skip

    def _master(self, trial: float, box: float) -> MasterProgram:
        """The master program of the sets known whose load is below ``trial``."""
        group = unit_groups(self.relaxed, _GROUPS[self._level])
        master = MasterProgram(self.relaxed, group, self._best.unit, box)
        for members, load in self._known:
            if load < trial:
                master.add(members.astype(np.float64), 0)
        return master
