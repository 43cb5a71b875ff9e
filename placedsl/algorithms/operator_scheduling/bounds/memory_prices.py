"""Memory limits beside a chain of blocks: what memory is worth, in seconds per byte of each device.

Each block takes the best devices for itself, and together they may need more memory than these have.  With prices of
memory instead of limits (Lagrange) blocks stay apart: a schedule takes at least the shortest path over the chain, where
a node costs its time and its memory and a block at least the least sum of its latency and its memory, less what all
memory that there is would cost.  Every price gives a bound.  That of a block is the one by
:mod:`~placedsl.algorithms.operator_scheduling.bounds.broadcast`, whose weights are kept from price to price.

The prices that raise the bound most are looked for by cutting planes: the placement behind a bound says how the bound
changes with the prices, and the next prices are the best ones near the best so far, as far as all placements tell.
At first branches of cases are not divided, which is quick and leads near the best prices.  Devices that are alike have
one price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast import Cases, Learned, fits
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, Chain
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import renamings
from placedsl.algorithms.operator_scheduling.instance import floats
from placedsl.arrays import Floats
from placedsl.ir.linear_rows import LinearRows
from placedsl.tolerances import BOUND_ROUNDING, LIMIT_SLACK

#: Steps of the weights of a block without prices, the first time it is asked, and with prices, each time.
_UNPRICED, _STEPS = 10, 20
#: How far prices go at first, and in each further search at the least, in terms of what makes all memory cost as much
#: as the bound, and by how much this changes where the bound rises and where it does not.
_REACH, _AGAIN, _WIDER, _NARROWER = 0.5, 0.02, 1.5, 0.5
#: Gains of a smaller share are none: they end a search from the best prices, and so many searches without one are the
#: end.
_LEAST_GAIN, _IDLE = 2e-4, 6
#: A bound so many times that of the chain without prices is no longer pursued: no placement may be within the limits.
_BEYOND = 1e6


def priced_bounds(chain: Chain) -> Iterator[float]:
    """Increasing lower bounds on the latency in seconds of an instance with memory limits, one after each block that is
    asked; none if the limits cannot bind.
    """
    instance = chain.instance
    binding = instance.memory.sum() > instance.memory_limit
    first = chain.bound()
    if not fits(instance) or not binding.any() or not 0.0 < first < np.inf:
        return
    prices = _Prices(chain)
    while True:
        for _ in prices.evaluate():
            yield prices.best
        if prices.best > _BEYOND * first or not prices.move():
            return


class _PricedBlock:
    """A block, and what it costs at least with prices of memory, for each pair of devices of its ends.

    ``memory``  bytes of its nodes, none of its ends; ``total``: their sum
    ``cost``    D x D seconds of latency and memory, at the prices ``at``, D x D x D seconds per byte
    ``used``    D x D x D bytes on each device, in the placement behind that cost
    ``turn``    D x D: when a pair was evaluated last
    """

    def __init__(self, chain: Chain, block: Block, learned: dict[int, Learned]) -> None:
        instance, devices = chain.instance, chain.instance.devices
        self.chain, self.block = chain, block
        self.memory = np.where(np.isin(block.nodes, [block.before, block.after]), 0.0, instance.memory[block.nodes])
        self.total = float(self.memory.sum())
        self.cost = block.lower_bound.copy()
        self.at, self.used = np.zeros((2, devices, devices, devices))
        self.turn = np.zeros((devices, devices), dtype=np.int64)
        self._cases: dict[tuple[int, int], Cases] = {}
        self._learned = learned.setdefault(len(block.nodes), Learned())

    def costs(self, price: Floats) -> Floats:
        """D x D seconds that the block costs at least at a price, from what is known at others."""
        alone = self.block.lower_bound
        if self.total == 0.0:
            return alone
        changed = self.cost + self.total * (price - self.at).min(axis=2)
        return floats(np.maximum(alone + self.total * price.min(), changed))

    def evaluate(self, a: int, b: int, price: Floats, turn: int, divide: bool) -> None:
        """Raise the cost of a pair, and of all like it, to that at a price (D seconds per byte)."""
        block, alike = self.block, self.chain.alike
        cases = self._cases.get((a, b))
        if cases is None:
            known = float(block.lower_bound[a, b])
            inner = block.with_fixed_ends(self.chain.instance, a, b)
            cases = self._cases[a, b] = Cases(inner, known, learned=self._learned, among=alike)
            cases.improve(known, _UNPRICED, divide)
            block.lower_bound[a, b] = max(known, cases.bound * (1.0 - LIMIT_SLACK))
            block.spread(alike, a, b)
        latency = float(block.lower_bound[a, b])
        if not self.turn[a, b] or (self.at[a, b] != price).any():
            cases.price(np.outer(self.memory, price), latency)
        cases.improve(latency, _STEPS, divide)
        self.cost[a, b], self.at[a, b], self.turn[a, b] = cases.bound * (1.0 - LIMIT_SLACK), price, turn
        if cases.bound < np.inf:
            self.used[a, b] = np.bincount(cases.device, weights=self.memory, minlength=len(price))
        for new in renamings(alike, a, b, (block.before >= 0, block.after >= 0)):
            x, y = int(new[a]) if block.before >= 0 else a, int(new[b]) if block.after >= 0 else b
            self.cost[x, y], self.at[x, y], self.turn[x, y] = self.cost[a, b], price, turn
            self.used[x, y, new] = self.used[a, b]


class _Prices:
    """The prices, the bounds so far and the placements behind them.

    ``kind``   D: devices of one kind share a price and their memory; ``limit``: bytes of each kind
    ``price``  seconds per byte of each kind, now; ``centre``: those of the bound ``best``
    ``reach``  how far from ``centre`` the next prices may be, in terms of the bound over all memory
    ``cuts``   of each evaluation: the bound, the prices, and the bytes beyond the limits (seconds by which the bound
               changes with the price at most)
    """

    def __init__(self, chain: Chain) -> None:
        self.chain, instance = chain, chain.instance
        learned: dict[int, Learned] = {}
        known: dict[tuple[int, bytes], _PricedBlock] = {}
        self._blocks: list[_PricedBlock] = []
        for block in chain.blocks:  # equal blocks share their bounds
            priced = _PricedBlock(chain, block, learned)
            self._blocks.append(known.setdefault((id(block.lower_bound), priced.memory.tobytes()), priced))
        self._after = [0.0 if block.after < 0 else float(instance.memory[block.after]) for block in chain.blocks]
        _, self.kind = np.unique(chain.alike, return_inverse=True)
        self.limit = np.bincount(self.kind, weights=instance.memory_limit)
        self.price = self.centre = np.zeros(len(self.limit))
        self.best, self.reach = 0.0, _REACH
        self.cuts: list[tuple[float, Floats, Floats]] = []
        self._settled, self._turn, self._idle, self._divide = 0.0, 0, 0, False

    def evaluate(self) -> Iterator[None]:
        """Evaluate the shortest path at the present prices, block by block, until all of it is."""
        price, limited = self.price[self.kind], np.isfinite(self.limit)
        offered = float(self.price[limited] @ self.limit[limited])
        self._turn += 1
        while True:
            reached, path = self.chain.shortest(self._costs(price))
            bound = reached - offered - BOUND_ROUNDING * reached - LIMIT_SLACK * offered
            ends = [*zip(self._blocks, [0, *path], [*path, 0], strict=True)]
            missing = [(block, a, b) for block, a, b in ends if block.total > 0.0 and block.turn[a, b] < self._turn]
            if not missing or not np.isfinite(reached):
                break
            for block, a, b in missing:
                if block.turn[a, b] < self._turn:  # of equal blocks one is enough
                    block.evaluate(a, b, price, self._turn, self._divide)
                    yield
        if (self.price != self.centre).any():
            self.reach *= _WIDER if bound > self.best * (1.0 + _LEAST_GAIN) else _NARROWER
        if bound > self.best:
            self.best, self.centre = bound, self.price
        if np.isfinite(reached):
            used = np.bincount(path, weights=self._after[: len(path)], minlength=len(price))
            used = used + sum(block.used[a, b] for block, a, b in ends)
            beyond = np.bincount(self.kind, weights=used)
            beyond[limited] -= self.limit[limited]
            self.cuts.append((bound, self.price, np.where(limited, beyond, 0.0)))
        yield

    def _costs(self, price: Floats) -> Callable[[Block], Floats]:
        """What a block costs at least at a price, with the memory of the node after it."""
        of = [block.costs(price) + after * price for block, after in zip(self._blocks, self._after, strict=True)]
        costs = dict(zip(map(id, self.chain.blocks), of, strict=True))
        return lambda block: costs[id(block)]

    def move(self) -> bool:
        """Go to the next prices; False at the end."""
        if not self.centre.any() and (self.cuts[0][2] <= 0.0).all():  # without prices memory is enough
            return False
        price, promised = self._most_promising()
        if promised < self.best * (1.0 + _LEAST_GAIN):
            # Bounds of blocks have risen since their first placements: begin anew from the best prices.
            self._idle = 0 if self.best > self._settled * (1.0 + _LEAST_GAIN) else self._idle + 1
            self._settled, self.cuts, price = self.best, [], self.centre
            self.reach = max(self.reach, _AGAIN)
            if self._idle and not self._divide:
                self._divide, self._idle = True, 0
        self.price = price
        return self._idle < _IDLE

    def _most_promising(self) -> tuple[Floats, float]:
        """The prices within reach for which all placements so far allow the highest bound, and that bound."""
        bound, point, beyond = map(np.array, zip(*self.cuts, strict=True))
        many, kinds = beyond.shape
        line, column = np.arange(many), np.arange(kinds)
        memory = float(self.chain.instance.memory.sum())
        unit = self.best / memory
        rows = LinearRows()
        rows.at_most(
            np.concatenate([np.repeat(line, kinds), line]),
            np.concatenate([np.tile(column, many), np.full(many, kinds)]),
            np.concatenate([-beyond.ravel() / memory, np.ones(many)]),
            (bound - (beyond * point).sum(axis=1)) / self.best,
        )
        centre = self.centre / unit
        low, high = np.append(np.maximum(centre - self.reach, 0.0), 0.0), np.append(centre + self.reach, np.inf)
        solved = rows.minimise(np.append(np.zeros(kinds), -1.0), np.stack([low, high], axis=1))
        if solved.status != 0:
            return self.centre, 0.0
        return floats(solved.x[:kinds] * unit), float(solved.x[kinds] * self.best)
