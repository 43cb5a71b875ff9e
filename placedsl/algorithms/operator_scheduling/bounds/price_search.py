"""The prices that raise the bound of a chain most, and devices of the chain's nodes in branches.

Prices are found by cutting planes: the placement behind a bound says how the bound changes with the prices, and the
next prices are the best ones near the best so far, as far as all placements tell.  At first branches of a block's cases
are not divided, which is quick and leads near the best prices.

At the best prices several paths over the chain cost the same, and only a mixture of them, in fractions, stays within
what there is.  Where no prices say more, the node of the chain whose device is the least certain in this mixture is on
its most likely device in one branch and on the others in a second, each with prices of its own.  The bound is the least
of the branches, of which that with the least is worked on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.priced_chain import Priced, PricedChain, Uses
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Chain
from placedsl.algorithms.operator_scheduling.instance import floats
from placedsl.arrays import Booleans, Floats
from placedsl.ir.linear_rows import LinearRows

#: How far prices go at first, after bounds of blocks have risen, and in each further search at the least, in terms of
#: what makes all uses cost as much as the bound, and by how much this changes where the bound rises and where it does
#: not; for more prices than a few it takes as many times more placements to see where the bound rises.
_REACH, _RISEN, _AGAIN, _WIDER, _NARROWER, _FEW = 0.5, 0.1, 0.02, 1.5, 0.5, 3
#: Gains of a smaller share are none: they end a search from the best prices, and so many searches without one are the
#: end, of the whole and of branches.
_LEAST_GAIN, _IDLE, _IDLE_BRANCH = 2e-4, 6, 1
#: With prices of time, how often a branch that cannot be divided is searched once more from further away, before it
#: waits for blocks.  Those of memory wait at once: bounds of blocks rise for longer where it binds.
_FURTHER = 2
#: A bound so many times that of the chain without prices is no longer pursued: no placement may be within the limits.
_BEYOND = 1e6
#: So many of the latest shortest paths are refined beside that without prices.
_LATEST = 6
#: The largest share of its latency that a part of the chain is priced for.
_MOST_SHARED = 0.99
#: Of nodes whose device is nearly as uncertain as that of the least certain, by this share, the middle one is divided.
_AS_UNCERTAIN = 0.9


def priced_bounds(chain: Chain, uses: Uses) -> Iterator[tuple[float, bool]]:
    """Lower bounds on the latency in seconds that do not decrease, one after each block that is asked, and whether that
    is all until bounds of the chain's blocks rise.  They end where no placement may be within the limits.
    """
    first = chain.bound()
    if not 0.0 < first < np.inf:
        return
    priced = PricedChain(chain, uses)
    branches = [_Branch(priced, np.ones((len(chain.nodes), chain.instance.devices), dtype=bool))]
    best = 0.0
    while best <= _BEYOND * first:
        one = min(branches, key=lambda branch: branch.best)
        for _ in one.evaluate():
            yield best, False
        chain.also[priced] = one.paths
        best = max(best, min(branch.best for branch in branches))
        yield best, False
        if one.best == np.inf or one.move():
            continue
        if parts := one.divided():
            branches.remove(one)
            branches += parts
            continue
        one.further += 1
        while (one.further > _FURTHER or not uses.timed) and not one.risen():
            yield best, True
        one.reach = max(one.reach, _RISEN)


class _Branch:
    """Devices ``allowed`` for the chain's nodes (nodes x D), the prices, the bounds so far and what is behind them.

    ``price``   seconds per use of each kind, and seconds per second of each port or link, now; ``centre``: those of the
                bound ``best``
    ``reach``   how far from ``centre`` the next prices may be, in terms of the bound over all uses
    ``cuts``    of each evaluation;  ``paths``: of the latest ones
    ``further`` how often it was searched from further away without a gain
    """

    def __init__(self, priced: PricedChain, allowed: Booleans) -> None:
        self._priced, self._allowed = priced, allowed
        self._price = self._centre = np.zeros(len(priced.limit))
        self.best, self.reach = 0.0, _REACH
        self._cuts: list[Priced] = []
        self._settled, self._idle, self._divide, self._most_idle = 0.0, 0, False, _IDLE
        self.paths: list[list[int]] = []
        self.further = 0
        self._below = 0.0
        self._shares = np.zeros(allowed.shape)

    def evaluate(self) -> Iterator[None]:
        """Evaluate the shortest path at the present prices; yields after each block that is asked."""
        found = yield from self._priced.at(self._price, self._allowed, self._divide)
        if (self._price != self._centre).any():
            narrower = _NARROWER ** min(1.0, _FEW / len(self._price))
            self.reach *= _WIDER if found.bound > self.best * (1.0 + _LEAST_GAIN) else narrower
        if found.bound > self.best * (1.0 + _LEAST_GAIN):
            self.further = 0
        if found.bound > self.best:
            self.best, self._centre = found.bound, self._price
        if np.isfinite(found.bound):
            self.paths = [*self.paths[1 - _LATEST :], found.path]
            self._cuts.append(found)

    def move(self) -> bool:
        """Go to the next prices; False if there are none."""
        if not self._centre.any() and (self._cuts[0].beyond <= 0.0).all():  # without prices there is enough
            self._begin_anew()
            seen, self._divide = self._divide, True
            return not seen
        price, promised = self._most_promising()
        if promised < self.best * (1.0 + _LEAST_GAIN):
            # Bounds of blocks have risen since their first placements.
            self._idle = 0 if self.best > self._settled * (1.0 + _LEAST_GAIN) else self._idle + 1
            price = self._begin_anew()
            if self._idle and not self._divide:
                self._divide, self._idle = True, 0
        self._price = price
        if self._idle < self._most_idle:
            return True
        self._idle = 0
        return False

    def divided(self) -> list[_Branch]:
        """Two branches; none if a single path is behind the bound, and the latest ones are the same."""
        timed = self._priced.uses.timed
        for shares in (self._shares, self._of_latest()) if timed else (self._shares,):
            uncertain = 1.0 - shares.max(axis=1, initial=0.0)
            if shares.any() and uncertain.max() > _LEAST_GAIN:
                likely = np.flatnonzero(uncertain >= _AS_UNCERTAIN * uncertain.max())
                k = int(likely[len(likely) // 2])
                first = np.arange(self._allowed.shape[1]) == shares[k].argmax()
                return [self._with(k, first), self._with(k, ~first)]
        return []

    def _of_latest(self) -> Floats:
        """How much of each device the latest paths have for the chain's nodes."""
        shares = np.zeros(self._allowed.shape)
        for path in self.paths:
            shares[np.arange(len(path)), path] += 1.0 / len(self.paths)
        return shares

    def _with(self, k: int, among: Booleans) -> _Branch:
        """The branch with a node of the chain on some devices only (D flags)."""
        out = _Branch(self._priced, self._allowed.copy())
        out._allowed[k] &= among
        out._price = out._centre = self._centre
        out.best = out._settled = self.best
        out.reach, out._divide, out._most_idle = _RISEN, self._divide, _IDLE_BRANCH
        out.paths = [path for path in self.paths if among[path[k]]]
        return out

    def _begin_anew(self) -> Floats:
        """Forget the placements so far; returns the best prices."""
        self._settled, self._cuts, self._below = self.best, [], self._lower_bounds()
        self.reach = max(self.reach, _AGAIN)
        return self._centre

    def risen(self) -> bool:
        """Whether what is known of the blocks of the latest paths has risen since the last beginning."""
        return self._lower_bounds() > self._below * (1.0 + _LEAST_GAIN)

    def _lower_bounds(self) -> float:
        blocks = self._priced.chain.blocks
        return sum(
            float(block.lower_bound[a, b])
            for path in self.paths
            for block, a, b in zip(blocks, [0, *path], [*path, 0], strict=True)
        )

    def _most_promising(self) -> tuple[Floats, float]:
        """The prices within reach for which all placements so far allow the highest bound, and that bound; keeps how
        much of each device the placements behind it have for the chain's nodes.
        """
        priced = self._priced
        bound, point, beyond = (
            np.array([getattr(cut, name) for cut in self._cuts]) for name in ("bound", "price", "beyond")
        )
        many, kinds = beyond.shape
        line, column = np.arange(many), np.arange(kinds)
        unit = self.best / priced.amount
        rows = LinearRows()
        rows.at_most(
            np.concatenate([np.repeat(line, kinds), line]),
            np.concatenate([np.tile(column, many), np.full(many, kinds)]),
            np.concatenate([-beyond.ravel() / priced.amount, np.ones(many)]),
            (bound - (beyond * point).sum(axis=1)) / self.best,
        )
        if priced.uses.timed:
            rows.at_most(np.zeros(kinds, dtype=np.int64), column, priced.many * unit, np.array([_MOST_SHARED]))
        centre = self._centre / unit
        low, high = np.append(np.maximum(centre - self.reach, 0.0), 0.0), np.append(centre + self.reach, np.inf)
        solved = rows.minimise(np.append(np.zeros(kinds), -1.0), np.stack([low, high], axis=1))
        if solved.status != 0:
            return self._centre, 0.0
        self._shares = np.zeros(self._allowed.shape)
        for cut, share in zip(self._cuts, np.maximum(-solved.ineqlin.marginals[:many], 0.0).tolist(), strict=True):
            self._shares[np.arange(len(cut.path)), cut.path] += share
        return floats(solved.x[:kinds] * unit), float(solved.x[kinds] * self.best)
