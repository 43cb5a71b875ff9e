"""One attempt of the partition bound: prices that prove that no placement has all loads within T.

Master program and worths in turn (column generation), the units in ever finer groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from placedsl.algorithms.bounds.master import Master, Prices, base_prices, grouped
from placedsl.algorithms.bounds.pricing import Pricing
from placedsl.algorithms.bounds.relaxation import Relaxation
from placedsl.graph.graph import Floats

#: What rounding may add to a worth, as a share of all prices together.
ROUNDING = 1e-10
#: How far below what a proof allows the worths are sought.
MARGIN = 1e-7
#: Groups of units, from coarse to fine; the relaxed worth goes no further than the last but one.
GROUPS = (20, 50, 100, 10**9)
#: How many labels a state are followed, in turn, while no set is found.
KEEP = (30, 100, 500, 3000, 20000)
#: How far prices stay at the best so far, in turn, while no set is found.
STAY = (0.7, 0.35, 0.0)
#: Limits on prices, and how often they are widened.
BOX, WIDER, WIDENINGS = 2.0, 4.0, 3
#: Sets that a search may give at once, and sets that are carried to the next attempt.
SETS, CARRIED = 5, 3000

#: No placement is within T; no proof of that is to be had here; more effort might bring one.
Outcome = Literal["proven", "beyond", "open"]


@dataclass(frozen=True, eq=False)
class Members:
    """A set of units for a device of class ``which``, or a mixture of sets: u shares, and the load."""

    shares: Floats
    which: int
    load: float


@dataclass(eq=False)
class Carried:
    """What goes from one attempt to the next: the best prices, and the sets that were found."""

    best: Prices
    sets: list[Members] = field(default_factory=list)


def nothing_carried(relaxed: Relaxation) -> Carried:
    """The start: prices by work, all devices alike."""
    classes = len(relaxed.classes)
    devices = sum(device.count for device in relaxed.classes)
    return Carried(Prices(base_prices(relaxed), np.full(classes, 1.0 / devices), np.zeros(classes), 0.0, False))


@dataclass(eq=False)
class Attempt:
    """``exact``: worths by search, else their upper bounds.  ``effort``: labels, vertices and entries of the master
    program after which it ends; ``over()``: whether to end at once."""

    relaxed: Relaxation
    searches: list[Pricing]
    carried: Carried
    largest: float
    exact: bool
    effort: float
    over: Callable[[], bool]
    _ratio: float = 0.0
    _mixtures: list[Members] = field(default_factory=list)

    def run(self) -> Outcome:
        """Try to prove that no placement has all loads within ``largest``."""
        best = self.carried.best
        self._ratio = self._proof(best, self._worths(best, best, KEEP[0])[0])
        if self._ratio > 1:
            return "proven"
        levels = [most for most in GROUPS if most < self.relaxed.units]
        if self.exact or not levels:
            levels.append(self.relaxed.units)
        outcome: Outcome = "open"
        for most in levels:
            outcome = self._at_level(most, most == levels[-1])
            if outcome == "proven":
                break
            if self.over() or self.effort <= 0:
                outcome = "open"
                break
        self.carried.sets = self.carried.sets[-CARRIED:]
        return outcome

    def _at_level(self, most: int, finest: bool) -> Outcome:
        """With at most so many groups of units; limits on prices are widened where they decide at the finest."""
        outcome: Outcome = "open"
        group = grouped(self.relaxed, most)
        for widening in range(WIDENINGS + 1):
            master = Master(self.relaxed, group, self.carried.best.unit, BOX * WIDER**widening)
            for members in (*self.carried.sets, *self._mixtures):
                if members.load <= self.largest:
                    master.add(members.shares, members.which)
            outcome, loose = self._column_generation(master)
            if not loose or (outcome == "beyond" and not finest) or self.effort <= 0:
                break
        return outcome

    def _column_generation(self, master: Master) -> tuple[Outcome, bool]:
        """Master program and worths in turn; the outcome, and whether it hangs on the limits on prices."""
        keep = stay = 0
        while not self.over() and self.effort > 0:
            found = master.solve()
            if found is None:  # no prices within the limits fit the sets known
                return "open", True
            if found.needed < 1 - 1e-6:
                return "beyond", found.loose
            new = False
            while not new and not self.over():
                prices = _between(self.carried.best, found, STAY[stay])
                worth, sets, dropped = self._worths(prices, found, KEEP[keep])
                self.effort -= master.size
                ratio = self._proof(prices, worth)
                if ratio > self._ratio:
                    self._ratio, self.carried.best = ratio, self._scaled(prices, worth)
                if ratio > 1:
                    return "proven", False
                for members in sets:
                    if self._lacking(members, found) and master.add(members.shares, members.which):
                        new = True
                        (self.carried.sets if self.exact else self._mixtures).append(members)
                if new:
                    stay = 0
                elif stay + 1 < len(STAY):
                    stay += 1
                elif self.exact and dropped and keep + 1 < len(KEEP):
                    keep += 1
                else:
                    return "beyond", found.loose
        return "open", False

    def _worths(self, prices: Prices, found: Prices, keep: int) -> tuple[Floats, list[Members], bool]:
        """By class a bound on what a device can bear is worth, sets that are worth much, and whether more labels might
        give better bounds."""
        worth, sets, dropped = np.zeros(len(self.relaxed.classes)), [], False
        # What the devices may be worth for a proof, in the proportion of the master program: no need to know more.
        count = np.array([device.count for device in self.relaxed.classes])
        shares = found.device / max(float(count @ found.device), 1e-12)
        goal = np.maximum(shares * float(prices.unit.sum() - count @ prices.memory) * (1 - MARGIN), MARGIN / 100)
        for which, (device, search) in enumerate(zip(self.relaxed.classes, self.searches, strict=True)):
            price = prices.unit - prices.memory[which] * device.memory
            if self.exact:
                value, several, final = search.dearest(price, self.largest, float(goal[which]), keep, SETS)
                dropped |= not final
                sets += [Members(taken.astype(np.float64), which, load) for taken, load in several]
            else:
                value, mixed = search.relaxed(price, self.largest)
                sets.append(Members(mixed, which, self.largest))
            worth[which] = max(value, 0.0)
            self.effort -= search.effort
            search.effort = 0
        return worth, sets, dropped

    def _proof(self, prices: Prices, worth: Floats) -> float:
        """Above 1: proven.  Rounding is counted against the proof."""
        have = float(prices.unit.sum())
        most, size = 0.0, float(np.abs(prices.unit).sum())
        for which, device in enumerate(self.relaxed.classes):
            memory = float(prices.memory[which])
            most += device.count * (memory + float(worth[which]))
            size += device.count * (memory + float((np.abs(prices.unit) + memory * device.memory).sum()))
        return have / (most + ROUNDING * size)

    def _scaled(self, prices: Prices, worth: Floats) -> Prices:
        """The same prices in the scale of the master program, where all devices together cost 1."""
        count = np.array([device.count for device in self.relaxed.classes])
        scale = 1 / max(float(count @ (prices.memory + worth)), 1e-12)
        return Prices(scale * prices.unit, scale * worth, scale * prices.memory, prices.needed, prices.loose)

    def _lacking(self, members: Members, found: Prices) -> bool:
        """Whether a set is worth more, at the master program's own prices, than its device is priced there."""
        memory = found.memory[members.which] * self.relaxed.classes[members.which].memory
        return bool((found.unit - memory) @ members.shares > found.device[members.which] + 1e-9)


def _between(one: Prices, other: Prices, share: float) -> Prices:
    """Prices ``share`` of the way from ``other`` to ``one``."""
    unit, device, memory = (
        share * a + (1 - share) * b
        for a, b in ((one.unit, other.unit), (one.device, other.device), (one.memory, other.memory))
    )
    return Prices(unit, device, memory, other.needed, other.loose)
