"""What devices can take within a load, and which ideals that leaves.

An ideal matters only if the devices used by then can have taken what is inside, and those that are left can take the
rest.  Weights are the least times of units; a class of devices takes most weight by the units at which it is quickest
(a fractional knapsack).  Where one class alone pays for transfers, these count as well:

- The stages inside an ideal pay at least what the ideal as a whole would, and so do those outside.
- Where all devices of that class are needed, each takes a weight of at least ``share``.  An edge that is cut only by
  ideals whose weights are within ``share`` of one another is cut at one boundary between two of these devices at most.
  So every boundary adds at least the least cost of such edges on either side, over all ideals that can be there.
"""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover
from placedsl.algorithms.ideals.walk_kernel import TransferPruning
from placedsl.algorithms.pipelines.state_dp_kernel import DeviceStates
from placedsl.algorithms.stages.cut_edges_kernel import CutEdges, cut_costs
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.arrays import Booleans, Floats, Integers

#: Weights are whole numbers of this many parts of the sum of least times, so that order by weight is exact.
_PARTS = 2**44
#: Numbers of such parts below this can be added without overflow.
_COUNTED = 2.0**61
_ROUNDS = 6
_BLOCK = 1 << 14
#: What boundaries add has grown worth another look where that is more than this share of the bound.
_WORTHWHILE_GROWTH = 1e-3


def weights(costs: StageCostModel) -> Integers:
    """u: the least time of each unit in whole parts."""
    least = costs.least
    whole = least.sum()
    return np.rint(least / whole * _PARTS).astype(np.int64) if whole > 0.0 else np.zeros(len(least), dtype=np.int64)


class LoadPruning:
    """What the devices of each state can take when no load exceeds ``bound``.  s states, K ideals.

    ``boundaries``: what boundaries are known to add, where that has been found for this bound or a larger one.
    """

    def __init__(self, costs: StageCostModel, bound: float) -> None:
        self.costs = costs
        classes = costs.classes
        self.counts = np.array(classes.counts, dtype=np.int64)
        self.stride = np.concatenate((np.ones(1, dtype=np.int64), np.cumprod(self.counts + 1)[:-1]))
        self.digits = (np.arange(classes.states)[:, None] // self.stride) % (self.counts + 1)
        self.left = self.counts - self.digits
        self.weight = weights(costs)
        self.total = int(self.weight.sum())
        self.knapsacks = [_knapsack(costs, c) for c in range(len(self.counts))]
        # The components that computation counts in, and the classes that pay for edges in these.
        self.timed = [q for q in range(len(costs.limit) - 1) if costs.unit_cost[q].any()]
        self.payers = np.flatnonzero(np.any((costs.input_cost + costs.output_cost)[self.timed] > 0.0, axis=(0, 2)))
        self._within(bound, None)

    def within(self, bound: float, boundaries: Floats | None = None) -> LoadPruning:
        """The same for another bound."""
        other = copy.copy(self)
        other._within(bound, boundaries)
        return other

    def _within(self, bound: float, boundaries: Floats | None) -> None:
        self.bound, self.time = bound, bound + self.costs.beyond
        self.paying = int(self.payers[0]) if len(self.payers) == 1 and np.isfinite(self.time) else None
        self.boundaries = np.zeros(self._payers + 1) if boundaries is None else boundaries
        for name in ("inner", "shares"):
            self.__dict__.pop(name, None)

    def takes(self, numbers: Integers, moving: Floats | float = 0.0) -> Integers:
        """The weight that so many devices of each class (an entry a class, or s x c) can take at most.

        ``moving``: time that the paying class spends on transfers.
        """
        out = np.zeros(np.broadcast_shapes(numbers.shape[:-1], np.shape(moving)), dtype=np.int64)
        for c, (spent, taken) in enumerate(self.knapsacks):
            number = numbers[..., c]
            time = np.where(number > 0, number, 0) * (self.time if np.isfinite(self.time) else spent[-1])
            time = time - moving if c == self.paying else time + 0.0
            can = np.interp(time, spent, taken)
            out = out + np.where(number > 0, np.ceil(can * (1.0 + 1e-9)).astype(np.int64) + 2 * len(self.weight) + 2, 0)
        return np.minimum(out, 2 * _PARTS)

    @cached_property
    def inner(self) -> tuple[Floats, Floats]:
        """Per number of paying devices 0, 1, ...: what boundaries before, and after, are known to add."""
        known = self.boundaries
        before = np.concatenate((np.zeros(1), np.cumsum(known)[:-1]))
        after = np.concatenate((np.cumsum(known[::-1])[::-1][1:], np.zeros(1)))
        return before, after

    @property
    def _payers(self) -> int:
        return int(self.counts[self.paying]) if self.paying is not None else 0

    @property
    def _moving(self) -> tuple[Floats, Floats]:
        """s: time for transfers at boundaries, of the devices used and of those that are left."""
        if self.paying is None:
            return np.zeros(len(self.digits)), np.zeros(len(self.digits))
        before, after = self.inner
        return before[self.digits[:, self.paying]], after[self.digits[:, self.paying]]

    @property
    def states(self) -> DeviceStates:
        """The states as the search wants them."""
        costs = self.costs
        whole = float(costs.memory.sum())
        memory = np.minimum(np.array(costs.classes.memory), 2.0 * whole + 1.0)
        free_memory = (self.left * memory).sum(axis=1) * (1.0 + 1e-9) + 1e-9 * whole
        one = np.eye(len(self.counts), dtype=np.int64)[self.counts > 0]
        widest = int(self.takes(one).max(initial=0))
        turn = np.argsort(self.digits.sum(axis=1), kind="stable")
        takes = self.takes(self.left, self._moving[1])
        return DeviceStates(
            self.digits, self.stride, self.counts, takes, free_memory, widest, self.shares, turn, self.total
        )

    @property
    def fewest_devices(self) -> int:
        """A number of devices below which the weight cannot be taken."""
        used, number = self.takes(self.digits), self.digits.sum(axis=1)
        return int(number[used >= self.total].min(initial=int(self.counts.sum())))

    @property
    def _ranges(self) -> tuple[Integers, Integers]:
        """s: the least and the largest weight that an ideal can have there."""
        before, after = self._moving
        low: Integers = np.maximum(0, self.total - self.takes(self.left, after))
        high: Integers = np.minimum(self.total, self.takes(self.digits, before))
        return low, high

    def weight_ranges(self) -> list[tuple[int, int]]:
        """The weights that an ideal can have on the way of some state, as ascending disjoint ranges."""
        low, high = self._ranges
        out: list[tuple[int, int]] = []
        for first, last in sorted(zip(low[low <= high].tolist(), high[low <= high].tolist(), strict=True)):
            if out and first <= out[-1][1] + 1:
                out[-1] = (out[-1][0], max(out[-1][1], last))
            else:
                out.append((first, last))
        return out

    def transfer_pruning(self, cover: ChainCover) -> TransferPruning | None:
        """What ideals can be asked during the walk; None where transfers are not one class's alone."""
        if self.paying is None or self.costs.least.sum() <= 0.0:
            return None
        costs, a = self.costs, self.paying
        parts = _PARTS / float(costs.least.sum())
        # Smaller costs prune less: no cost that matters is near this one, which has room to be multiplied.
        read, make = (np.minimum(np.floor(cost * parts), 2.0**45).astype(np.int64) for cost in self._transfers)
        before, after = self._moving
        spent, taken = self.knapsacks[a]
        used = [side[:, a] * self.time * parts for side in (self.digits, self.left)]
        if max(float(np.max(values, initial=0.0)) for values in (*used, before * parts, after * parts)) >= _COUNTED:
            return None  # beside such times, transfers are too small to be counted in whole numbers
        short = self.short(cover, self.paying)
        cost = np.array([[read, make], [make, read], [read * short, make * short], [make * short, read * short]])
        apart = np.delete(np.arange(len(self.counts)), a)
        sides = (self.digits, self.left)
        without = [np.where(np.arange(len(self.counts)) == a, 0, side) for side in sides]
        slack = [np.where(side[:, a] > 0, 2 * len(self.weight) + 2, 0) for side in sides]
        time = [np.ceil(one * (1.0 + 1e-9)) for one in used]
        low, high = self._ranges
        straight = bool(np.allclose(spent * parts, taken, rtol=1e-12, atol=0.0))
        nothing = np.zeros(0, dtype=np.int64)
        return TransferPruning(
            touch_start=costs.touch_start, touched=costs.touched, role=costs.role, full=2 * costs.readers + 1,
            cost=np.ascontiguousarray(cost.T), inside=np.zeros(len(costs.readers), dtype=np.int32),
            paid=np.zeros(4, dtype=np.int64),
            low=low, high=high, total=np.array([self.total]),
            others=np.array([self.takes(n) + extra for n, extra in zip(without, slack, strict=True)]),
            time=np.array([time[0] - np.floor(before * parts), time[1] - np.floor(after * parts)]).astype(np.int64),
            counts=np.array([~np.any(side[:, apart], axis=1) for side in sides]),
            # What takes longer than all the time that there is is never taken.
            spent=nothing if straight else np.minimum(np.floor(spent * parts), 2.0 * _COUNTED).astype(np.int64),
            taken=nothing if straight else np.ceil(taken).astype(np.int64),
            digit=self.digits[:, a].copy(), least=np.full((2, self._payers + 1), 2**62),
        )  # fmt: skip

    def learn(self, transfers: TransferPruning) -> bool:
        """Keep what a walk has shown that boundaries add; whether that is worth another look."""
        parts = _PARTS / float(self.costs.least.sum())
        least = np.where(transfers.least < 2**62, transfers.least / parts, np.inf)
        return self._add(least) > _WORTHWHILE_GROWTH * self.time

    def _add(self, least: Floats) -> float:
        """Keep the least cost on either side of each boundary; by how much all of them grew."""
        known, found = self.boundaries, least.sum(axis=0)
        found[[0, -1]] = 0.0
        self.boundaries = np.maximum(known, np.where(np.isfinite(found), found, 0.0))
        self.__dict__.pop("inner", None)
        return float((self.boundaries - known).sum())

    @property
    def _transfers(self) -> tuple[Floats, Floats]:
        """e: what the paying class spends where it reads an edge, and where it makes one."""
        a, costs = self.paying, self.costs
        return costs.input_cost[self.timed][:, a].sum(axis=0), costs.output_cost[self.timed][:, a].sum(axis=0)

    def prune(
        self,
        cover: ChainCover,
        weight: Integers,
        cuts: CutEdges,
        *,
        transfers: bool,
    ) -> Booleans:
        """K x s: where each of K ideals still matters; where ``transfers`` count, what boundaries add is kept."""
        low, high = self._ranges
        fits: Booleans = (weight[:, None] >= low) & (weight[:, None] <= high)
        if not transfers or self.paying is None or not len(weight):
            return fits
        a = self.paying
        read, make = (cost[None, None] for cost in self._transfers)
        own, rest = (side[0, 0] for side in cut_costs(cuts, read, make))
        short = self.short(cover, self.paying)
        sides = [side[0, 0] for side in cut_costs(cuts, read * short, make * short)]
        # Where another class takes part on a side, it may be the one that has the edges of the ideal.
        alone = [np.delete(side, a, axis=1).sum(axis=1) == 0 for side in (self.digits, self.left)]
        block = max(1, _BLOCK // len(weight))
        for _ in range(_ROUNDS):
            moving = self._moving
            least = np.full((2, self._payers + 1), np.inf)
            kept = np.count_nonzero(fits)
            for first in range(0, len(self.digits), block):
                s = slice(first, first + block)
                here = np.flatnonzero(fits[:, s].any(axis=1))
                inside = moving[0][s] + np.where(alone[0][s], own[here, None], 0.0)
                outside = moving[1][s] + np.where(alone[1][s], rest[here, None], 0.0)
                still = fits[here, s]
                still &= weight[here, None] <= self.takes(self.digits[s], inside)
                still &= self.total - weight[here, None] <= self.takes(self.left[s], outside)
                fits[here, s] = still
                # The two sides apart: a device of another class may stand between them.
                for side, paid in enumerate(sides):
                    found = np.where(still, paid[here, None], np.inf).min(axis=0, initial=np.inf)
                    np.minimum.at(least[side], self.digits[s, a], found)
            self._add(least)
            if np.count_nonzero(fits) == kept:
                break
        return fits

    @cached_property
    def shares(self) -> Integers:
        """c: the weight that a device of a class takes at least, as all others cannot take more."""
        return self.total - self.takes(self.counts - np.eye(len(self.counts), dtype=np.int64))

    def short(self, cover: ChainCover, c: int) -> Booleans:
        """The edges that are cut only by ideals that are closer to one another than a device's share."""
        if self.shares[c] <= 0:
            return np.zeros(len(self.costs.readers), dtype=bool)
        costs, share = self.costs, self.shares[c]
        sums = cover.prefix_sums(self.weight)
        rows = cover.row_start[cover.chain] + cover.position
        lightest = sums[cover.row_start[:-1] + cover.need[rows + 1]].sum(axis=1)
        heaviest = sums[cover.row_start[:-1] + cover.block[rows]].sum(axis=1)
        unit = np.repeat(np.arange(costs.units), np.diff(costs.touch_start))
        first = np.full(len(costs.readers), np.iinfo(np.int64).max)
        last = np.zeros(len(costs.readers), dtype=np.int64)
        np.minimum.at(first, costs.touched, lightest[unit])
        np.maximum.at(last, costs.touched, heaviest[unit])
        short: Booleans = last - first < share
        return short


def _knapsack(costs: StageCostModel, c: int) -> tuple[Floats, Floats]:
    """Time spent and weight taken, unit by unit from the one that a class is quickest at."""
    own = costs.supported[c]
    least = costs.least
    scale = _PARTS / least.sum() if least.sum() > 0.0 else 0.0
    work, least = costs.work[c][own], least[own] * scale
    free = least[work == 0.0].sum()
    work, least = work[work > 0.0], least[work > 0.0]
    gain = np.argsort(-(least / work), kind="stable")
    return np.concatenate(([0.0], np.cumsum(work[gain]))), free + np.concatenate(([0.0], np.cumsum(least[gain])))
