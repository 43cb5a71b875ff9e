"""Column generation for the partition bound: dual prices that prove that no placement has all loads within T.

The master program and the pricing problems are solved in turn; units are aggregated to groups, in ever finer levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from placedsl.algorithms.partitions.bounds.entangled_pricing import EntangledPricing
from placedsl.algorithms.partitions.bounds.master_program import Duals, MasterProgram, base_prices, unit_groups
from placedsl.algorithms.partitions.bounds.pricing import Pricing
from placedsl.algorithms.partitions.bounds.relaxation import Relaxation
from placedsl.algorithms.partitions.bounds.shared_sets import SharedSets
from placedsl.arrays import Floats

#: What rounding may add to the value of a set, as a share of all prices together.
PRICE_ROUNDING = 1e-10
#: Sets are sought whose value exceeds what a proof allows less this share.
PROOF_MARGIN = 1e-7
#: Numbers of groups of units, from coarse to fine; relaxed pricing stops at the last but one.
GROUPS = (20, 50, 100, 10**9)
#: Labels per state, increased while no column is found.
LABELS_PER_STATE = (30, 100, 500, 3000, 20000)
#: Smoothing of the duals towards the best so far, decreased while no column is found.
SMOOTHING = (0.7, 0.35, 0.0)
#: The half width of the box of the duals, the factor by which it is widened, and how often.
BOX, WIDER, WIDENINGS = 2.0, 4.0, 3
#: Columns from one pricing problem at once, and columns passed to the next run.
COLUMNS_PER_PRICING, MOST_COLUMNS = 5, 3000

#: No placement is within T; this relaxation cannot prove that; more effort might.
Outcome = Literal["proven", "beyond", "open"]


@dataclass(frozen=True, eq=False)
class Column:
    """A set of units for a device of class ``class_index``, or a convex combination of sets: u shares, and its load in
    seconds.
    """

    shares: Floats
    class_index: int
    load: float


@dataclass(eq=False)
class WarmStart:
    """What one run passes to the next: the best duals, and the columns found."""

    best: Duals
    columns: list[Column] = field(default_factory=list)


def cold_start(relaxed: Relaxation) -> WarmStart:
    """The warm start of the first run: prices in proportion to the work, all devices alike."""
    classes = len(relaxed.classes)
    devices = sum(device.count for device in relaxed.classes)
    return WarmStart(Duals(base_prices(relaxed), np.full(classes, 1.0 / devices), np.zeros(classes), 0.0, False))


@dataclass(eq=False)
class ColumnGeneration:
    """One run for the load limit T = ``largest`` seconds.

    If ``exact``, pricing is by label setting, else by its relaxation.  ``effort``: how many labels, vertices and matrix
    entries of the master program may still be made; ``over()``: whether to stop at once.
    """

    relaxed: Relaxation
    pricing: Sequence[Pricing | EntangledPricing]
    warm_start: WarmStart
    largest: float
    exact: bool
    effort: float
    over: Callable[[], bool]
    shared: SharedSets
    #: The duals that prove it, once it is proven: of a device what a set on it is worth at most.
    proof: Duals | None = None
    _ratio: float = 0.0
    _combinations: list[Column] = field(default_factory=list)

    def run(self) -> Outcome:
        """Try to prove that no placement has all loads within ``largest``."""
        best = self.warm_start.best
        pricing_bound = self._price(best, best, LABELS_PER_STATE[0])[0]
        self._ratio = self._proof(best, pricing_bound)
        if self._ratio > 1:
            self.proof = replace(best, device=pricing_bound)
            return "proven"
        entangled = any(isinstance(pricing, EntangledPricing) for pricing in self.pricing)
        levels = [most for most in GROUPS if most < self.relaxed.units and not entangled]
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
        self.warm_start.columns = self.warm_start.columns[-MOST_COLUMNS:]
        return outcome

    def _at_level(self, most: int, finest: bool) -> Outcome:
        """With at most ``most`` groups of units; the box of the duals is widened if it is binding at the finest
        level.
        """
        outcome: Outcome = "open"
        group = unit_groups(self.relaxed, most)
        self._hear()
        for widening in range(WIDENINGS + 1):
            master = MasterProgram(self.relaxed, group, self.warm_start.best.unit, BOX * WIDER**widening)
            for column in (*self.warm_start.columns, *self._combinations):
                if column.load <= self.largest:
                    master.add(column.shares, column.class_index)
            outcome, loose = self._column_generation(master)
            if not loose or (outcome == "beyond" and not finest) or self.effort <= 0:
                break
        return outcome

    def _column_generation(self, master: MasterProgram) -> tuple[Outcome, bool]:
        """Master program and pricing in turn; returns the outcome, and whether it depends on the box of the duals."""
        keep = smoothing = 0
        while not self.over() and self.effort > 0:
            for column in self._hear():
                if column.load <= self.largest:
                    master.add(column.shares, column.class_index)
            master_duals = master.solve()
            if master_duals is None:  # the restricted master program has no duals within the box
                return "open", True
            if master_duals.needed < 1 - 1e-6:
                return "beyond", master_duals.loose
            new = False
            while not new and not self.over():
                duals = _smoothed(self.warm_start.best, master_duals, SMOOTHING[smoothing])
                pricing_bound, columns, dropped = self._price(duals, master_duals, LABELS_PER_STATE[keep])
                self.effort -= master.size
                ratio = self._proof(duals, pricing_bound)
                if ratio > self._ratio:
                    self._ratio, self.warm_start.best = ratio, self._scaled(duals, pricing_bound)
                if ratio > 1:
                    self.proof = replace(duals, device=pricing_bound)
                    return "proven", False
                for column in columns:
                    if self._improves(column, master_duals) and master.add(column.shares, column.class_index):
                        new = True
                        (self.warm_start.columns if self.exact else self._combinations).append(column)
                        if self.exact:
                            self.shared.tell([(column.class_index, column.shares > 0.5, column.load)])
                if new:
                    smoothing = 0
                elif smoothing + 1 < len(SMOOTHING):
                    smoothing += 1
                elif self.exact and dropped and keep + 1 < len(LABELS_PER_STATE):
                    keep += 1
                else:
                    return "beyond", master_duals.loose
        return "open", False

    def _hear(self) -> list[Column]:
        """Take the sets that others have found."""
        heard = [Column(members.astype(np.float64), kind, load) for kind, members, load in self.shared.heard()]
        self.warm_start.columns += heard
        return heard

    def _price(self, duals: Duals, master_duals: Duals, keep: int) -> tuple[Floats, list[Column], bool]:
        """Solve the pricing problems at ``duals``.

        Returns for each class an upper bound on the value of a set, the columns found, and whether following
        more labels could improve the bounds.
        """
        pricing_bound, columns, dropped = np.zeros(len(self.relaxed.classes)), [], False
        # The values that a proof allows the devices, in the proportion of the master program: no need to know more.
        count = np.array([device.count for device in self.relaxed.classes])
        shares = master_duals.device / max(float(count @ master_duals.device), 1e-12)
        goal = np.maximum(
            shares * float(duals.unit.sum() - count @ duals.memory) * (1 - PROOF_MARGIN), PROOF_MARGIN / 100
        )
        for class_index, (device, search) in enumerate(zip(self.relaxed.classes, self.pricing, strict=True)):
            price = duals.unit - duals.memory[class_index] * device.memory
            if self.exact:
                least = float(goal[class_index])
                value, several, final = search.best_priced_set(price, self.largest, least, keep, COLUMNS_PER_PRICING)
                dropped |= not final
                columns += [Column(taken.astype(np.float64), class_index, load) for taken, load in several]
            else:
                value, mixed = search.relaxed(price, self.largest)
                columns.append(Column(mixed, class_index, self.largest))
            pricing_bound[class_index] = max(value, 0.0)
            self.effort -= search.effort
            search.effort = 0
        return pricing_bound, columns, dropped

    def _proof(self, duals: Duals, pricing_bound: Floats) -> float:
        """The ratio of the two sides of the proof: above 1, T is proven.  Rounding counts against the proof."""
        have = float(duals.unit.sum())
        most, size = 0.0, float(np.abs(duals.unit).sum())
        for class_index, device in enumerate(self.relaxed.classes):
            memory = float(duals.memory[class_index])
            most += device.count * (memory + float(pricing_bound[class_index]))
            size += device.count * (memory + float((np.abs(duals.unit) + memory * device.memory).sum()))
        return have / (most + PRICE_ROUNDING * size)

    def _scaled(self, duals: Duals, pricing_bound: Floats) -> Duals:
        """The same duals in the scale of the master program, where all devices together cost 1."""
        count = np.array([device.count for device in self.relaxed.classes])
        scale = 1 / max(float(count @ (duals.memory + pricing_bound)), 1e-12)
        return Duals(scale * duals.unit, scale * pricing_bound, scale * duals.memory, duals.needed, duals.loose)

    def _improves(self, column: Column, master_duals: Duals) -> bool:
        """Whether a column has negative reduced cost in the master program."""
        memory = master_duals.memory[column.class_index] * self.relaxed.classes[column.class_index].memory
        return bool((master_duals.unit - memory) @ column.shares > master_duals.device[column.class_index] + 1e-9)


def _smoothed(one: Duals, other: Duals, share: float) -> Duals:
    """Dual smoothing: duals ``share`` of the way from ``other`` to ``one``."""
    unit, device, memory = (
        share * a + (1 - share) * b
        for a, b in ((one.unit, other.unit), (one.device, other.device), (one.memory, other.memory))
    )
    return Duals(unit, device, memory, other.needed, other.loose)
