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

from functools import cached_property

import numpy as np

from placedsl.algorithms.chains import Chains
from placedsl.algorithms.ideal_kernel import States, cut_costs
from placedsl.algorithms.stages import Stages
from placedsl.graph.graph import Booleans, Floats, Integers

#: Weights are whole numbers of this many parts of the sum of least times, so that order by weight is exact.
_PARTS = 2**44
_ROUNDS = 6


def weights(stages: Stages) -> Integers:
    """u: the least time of each unit in whole parts."""
    least = stages.least
    whole = least.sum()
    return np.rint(least / whole * _PARTS).astype(np.int64) if whole > 0.0 else np.zeros(len(least), dtype=np.int64)


class Capacity:
    """What the devices of each state can take when no load exceeds ``bound``.  s states, K ideals.

    ``boundaries``: what boundaries are known to add, where that has been found for this bound or a larger one.
    """

    def __init__(self, stages: Stages, bound: float, boundaries: Floats | None = None) -> None:
        self.stages = stages
        self.time = bound + stages.beyond
        classes = stages.classes
        self.counts = np.array(classes.counts, dtype=np.int64)
        self.stride = np.concatenate((np.ones(1, dtype=np.int64), np.cumprod(self.counts + 1)[:-1]))
        self.digits = (np.arange(classes.states)[:, None] // self.stride) % (self.counts + 1)
        self.left = self.counts - self.digits
        self.weight = weights(stages)
        self.total = int(self.weight.sum())
        self.knapsacks = [_knapsack(stages, c) for c in range(len(self.counts))]
        self.paying = self._paying()
        self.boundaries = np.zeros(self._payers + 1) if boundaries is None else boundaries

    def _paying(self) -> int | None:
        """The only class that pays for edges, in meters that its computation counts in as well."""
        stages = self.stages
        timed = [q for q in range(len(stages.limit) - 1) if stages.unit_meter[q].any()]
        pays: Booleans = np.any((stages.read_meter + stages.make_meter)[timed] > 0.0, axis=(0, 2))
        self.timed = timed
        return int(np.flatnonzero(pays)[0]) if pays.sum() == 1 and np.isfinite(self.time) else None

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
    def states(self) -> States:
        """The states as the search wants them."""
        stages = self.stages
        whole = float(stages.memory.sum())
        rooms = np.minimum(np.array(stages.classes.memory), 2.0 * whole + 1.0)
        room = (self.left * rooms).sum(axis=1) * (1.0 + 1e-9) + 1e-9 * whole
        one = np.eye(len(self.counts), dtype=np.int64)[self.counts > 0]
        widest = int(self.takes(one).max(initial=0))
        return States(self.digits, self.stride, self.counts, self.takes(self.left, self._moving[1]), room, widest)

    @property
    def fewest_devices(self) -> int:
        """A number of devices below which the weight cannot be taken."""
        used, number = self.takes(self.digits), self.digits.sum(axis=1)
        return int(number[used >= self.total].min(initial=int(self.counts.sum())))

    def windows(self) -> list[tuple[int, int]]:
        """The weights that an ideal can have on the way of some state, as ascending disjoint ranges."""
        before, after = self._moving
        low = np.maximum(0, self.total - self.takes(self.left, after))
        high = np.minimum(self.total, self.takes(self.digits, before))
        out: list[tuple[int, int]] = []
        for first, last in sorted(zip(low[low <= high].tolist(), high[low <= high].tolist(), strict=True)):
            if out and first <= out[-1][1] + 1:
                out[-1] = (out[-1][0], max(out[-1][1], last))
            else:
                out.append((first, last))
        return out

    def sieve(
        self, cover: Chains, weight: Integers, cut_start: Integers, cut_edge: np.ndarray, cut_code: np.ndarray
    ) -> Booleans:
        """Which of K ideals still matter when transfers count; what boundaries add is kept for ``states``."""
        kept = np.ones(len(weight), dtype=bool)
        if self.paying is None or not len(weight):
            return kept
        stages, a = self.stages, self.paying
        read = stages.read_meter[self.timed][:, a : a + 1].sum(axis=0, keepdims=True)
        make = stages.make_meter[self.timed][:, a : a + 1].sum(axis=0, keepdims=True)
        own, rest = (side[0, 0] for side in cut_costs(cut_start, cut_edge, cut_code, read, make))
        short = self._short(cover)
        sides = [side[0, 0] for side in cut_costs(cut_start, cut_edge, cut_code, read * short, make * short)]
        others: list[Booleans] = [np.any(np.delete(side, a, axis=1), axis=1) for side in (self.digits, self.left)]
        for _ in range(_ROUNDS):
            before, after = self.inner
            some = np.zeros(len(weight), dtype=bool)
            least = np.full((2, self._payers + 1), np.inf)
            for s, digit in enumerate(self.digits[:, a].tolist()):
                # Where another class takes part on a side, it may be the one that has the edges of the ideal.
                inside = before[digit] + (0.0 if others[0][s] else own)
                outside = after[digit] + (0.0 if others[1][s] else rest)
                fits = kept & (weight <= self.takes(self.digits[s], inside))
                fits &= self.total - weight <= self.takes(self.left[s], outside)
                # The two sides apart: a device of another class may stand between them.
                least[:, digit] = np.minimum(least[:, digit], [np.min(x, where=fits, initial=np.inf) for x in sides])
                some |= fits
            boundaries = least.sum(axis=0)
            boundaries[[0, -1]] = 0.0
            unchanged = bool(some.sum() == kept.sum())
            kept = some
            self.boundaries = np.maximum(self.boundaries, np.where(np.isfinite(boundaries), boundaries, 0.0))
            del self.inner
            if unchanged:
                break
        return kept

    def _short(self, cover: Chains) -> Booleans:
        """The edges that only one boundary between paying devices can cut."""
        stages, a = self.stages, self.paying
        fewer = self.counts - np.eye(len(self.counts), dtype=np.int64)[a]
        share = self.total - int(self.takes(fewer))
        sums = cover.prefix_sums(self.weight)
        rows = cover.row_start[cover.chain] + cover.position
        lightest = sums[cover.row_start[:-1] + cover.need[rows + 1]].sum(axis=1)
        heaviest = sums[cover.row_start[:-1] + cover.block[rows]].sum(axis=1)
        unit = np.repeat(np.arange(stages.units), np.diff(stages.touch_start))
        first = np.full(len(stages.readers), np.iinfo(np.int64).max)
        last = np.zeros(len(stages.readers), dtype=np.int64)
        np.minimum.at(first, stages.touched, lightest[unit])
        np.maximum.at(last, stages.touched, heaviest[unit])
        short: Booleans = last - first < share
        return short


def _knapsack(stages: Stages, c: int) -> tuple[Floats, Floats]:
    """Time spent and weight taken, unit by unit from the one that a class is quickest at."""
    own = stages.supported[c]
    least = stages.least
    scale = _PARTS / least.sum() if least.sum() > 0.0 else 0.0
    work, least = stages.work[c][own], least[own] * scale
    free = least[work == 0.0].sum()
    work, least = work[work > 0.0], least[work > 0.0]
    gain = np.argsort(-(least / work), kind="stable")
    return np.concatenate(([0.0], np.cumsum(work[gain]))), free + np.concatenate(([0.0], np.cumsum(least[gain])))
