"""What the blocks of a chain share, such as the memory of devices or their time, at prices.

Each block takes the best devices for itself, and together they may need more of a device than there is.  With prices
instead of limits (Lagrange) blocks stay apart: a schedule takes at least the shortest path over the chain, where a node
costs its time and what it uses and a block at least the least sum of its latency and what it uses, less what all that
there is would cost.  Every price gives a bound.  That of a block is the one by
:mod:`~placedsl.algorithms.operator_scheduling.bounds.broadcast`, whose weights are kept from price to price.

Of the time of a device there is as much as the counted part of the chain takes: prices that add up to a share M leave
1 - M of what this part costs.

The prices that raise the bound most are looked for by cutting planes: the placement behind a bound says how the bound
changes with the prices, and the next prices are the best ones near the best so far, as far as all placements tell.
At first branches of cases are not divided, which is quick and leads near the best prices.  Devices that are alike have
one price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.beside import Beside
from placedsl.algorithms.operator_scheduling.bounds.broadcast import Cases, Learned
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, Chain
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import renamings
from placedsl.algorithms.operator_scheduling.instance import floats
from placedsl.arrays import Floats
from placedsl.ir.linear_rows import LinearRows
from placedsl.tolerances import BOUND_ROUNDING, LIMIT_SLACK

#: Steps of the weights of a block without prices, the first time it is asked, and with prices, each time.
_UNPRICED, _STEPS = 10, 20
#: How far prices go at first, after bounds of blocks have risen, and in each further search at the least, in terms of
#: what makes all uses cost as much as the bound, and by how much this changes where the bound rises and where it does
#: not.
_REACH, _RISEN, _AGAIN, _WIDER, _NARROWER = 0.5, 0.1, 0.02, 1.5, 0.5
#: Gains of a smaller share are none: they end a search from the best prices, and so many searches without one are the
#: end.
_LEAST_GAIN, _IDLE = 2e-4, 6
#: A bound so many times that of the chain without prices is no longer pursued: no placement may be within the limits.
_BEYOND = 1e6
#: So many of the latest shortest paths are refined beside that without prices.
_LATEST = 6
#: The largest share of its latency that a part of the chain is priced for.
_MOST_SHARED = 0.99


@dataclass(frozen=True, eq=False)
class Uses:
    """What nodes use of devices, and how much of it there is.

    ``use``     n x D, not negative: what a node uses of a device (bytes or seconds; 0 where it is not counted)
    ``limit``   D: how much there is (inf: any amount)
    ``blocks``  of the chain that are counted, with the nodes between them
    ``timed``   use is seconds, of which there are as many as the counted blocks and the nodes between them take
    ``beside``  the nodes that are counted but in no block
    """

    use: Floats
    limit: Floats
    blocks: range
    timed: bool
    beside: Beside

    @property
    def after(self) -> int:
        """The block before the node that those beside come after, -1: they come after none."""
        return self.blocks.start - 1


def priced_bounds(chain: Chain, uses: Uses) -> Iterator[tuple[float, bool]]:
    """Lower bounds on the latency in seconds that do not decrease, one after each block that is asked, and whether that
    is all until bounds of the chain's blocks rise.  They end where no placement may be within the limits.
    """
    first = chain.bound()
    if not 0.0 < first < np.inf:
        return
    prices = _Prices(chain, uses)
    while True:
        for _ in prices.evaluate():
            yield prices.best, False
        if prices.best > _BEYOND * first:
            return
        if not prices.move():
            while not prices.risen():
                yield prices.best, True
            prices.reach = max(prices.reach, _RISEN)


class _PricedBlock:
    """A block, and what it costs at least with prices of what it uses, for each pair of devices of its ends.

    ``use``     its nodes x D: what they use of devices, none of its ends; ``counted``: whether any does
    ``cost``    D x D seconds of latency and use, at those of the ``prices`` so far that ``at``, D x D, says
    ``used``    D x D x D: what the placement behind that cost uses of each device
    ``turn``    D x D: when a pair was evaluated last
    """

    def __init__(self, chain: Chain, block: Block, use: Floats, learned: dict[int, Learned]) -> None:
        instance, devices = chain.instance, chain.instance.devices
        self.chain, self.block, self.use = chain, block, use
        self.counted = bool(use.any())
        self._able = np.isfinite(instance.time[block.nodes])
        self.cost, self.used = block.lower_bound.copy(), np.zeros((devices, devices, devices))
        self.turn, self.at = np.zeros((2, devices, devices), dtype=np.int64)
        self.prices = [np.zeros(devices)]
        self._cases: dict[tuple[int, int], Cases] = {}
        self._learned = learned.setdefault(len(block.nodes), Learned())

    def costs(self, price: Floats) -> Floats:
        """D x D seconds that the block costs at least at a price, from what is known at others."""
        alone = self.block.lower_bound
        if not self.counted:
            return alone
        changed = np.zeros(len(self.prices))
        for i in np.unique(self.at).tolist():
            changed[i] = self._least(price - self.prices[i])
        return floats(
            np.maximum(alone + self._least(price), np.where(self.turn > 0, self.cost + changed[self.at], 0.0))
        )

    def _least(self, price: Floats) -> float:
        """The least that all nodes cost for what they use."""
        return float(np.where(self._able, self.use * price, np.inf).min(axis=1).sum())

    def evaluate(self, a: int, b: int, price: Floats, turn: int, divide: bool) -> None:
        """Raise the cost of a pair, and of all like it, to that at a price (D seconds per use)."""
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
        if (self.prices[-1] != price).any():
            self.prices.append(price)
        if self.at[a, b] != len(self.prices) - 1:
            cases.price(floats(self.use * price), latency)
        cases.improve(latency, _STEPS, divide)
        self.cost[a, b], self.at[a, b], self.turn[a, b] = cases.bound * (1.0 - LIMIT_SLACK), len(self.prices) - 1, turn
        if cases.bound < np.inf:
            use = self.use[np.arange(len(cases.device)), cases.device]
            self.used[a, b] = np.bincount(cases.device, weights=use, minlength=len(price))
        for new in renamings(alike, a, b, (block.before >= 0, block.after >= 0)):
            x, y = int(new[a]) if block.before >= 0 else a, int(new[b]) if block.after >= 0 else b
            self.cost[x, y], self.at[x, y], self.turn[x, y] = self.cost[a, b], self.at[a, b], turn
            self.used[x, y, new] = self.used[a, b]


class _Prices:
    """The prices, the bounds so far and the placements behind them.

    ``kind``   D: devices of one kind share a price and what there is; ``limit``: of each kind, without their time
    ``price``  seconds per use of each kind, and seconds per second of each port or link, now; ``centre``: those of the
               bound ``best``
    ``reach``  how far from ``centre`` the next prices may be, in terms of the bound over all uses
    ``cuts``   of each evaluation: the bound, the prices, and what is used beyond the limits (seconds by which the bound
               changes with the price at most)
    """

    def __init__(self, chain: Chain, uses: Uses) -> None:
        self.chain, self.uses = chain, uses
        self._blocks = _priced_blocks(chain, uses)
        between = chain.nodes[uses.blocks.start : max(uses.blocks.stop - 1, uses.blocks.start)]
        self._between = dict(zip(uses.blocks, between.tolist(), strict=False))  # the counted node after a block
        _, self.kind = np.unique(chain.alike, return_inverse=True)
        many = np.bincount(self.kind)
        ports = chain.instance.resources if uses.timed else 0
        self._kinds, self._many = len(many), np.concatenate([many, np.ones(ports)])
        self.limit = np.zeros(len(many) + ports) if uses.timed else np.bincount(self.kind, weights=uses.limit)
        self.price = self.centre = np.zeros(len(many) + ports)
        self.best, self.reach = 0.0, _REACH
        self._amount = chain.bound() if uses.timed else float(uses.use.max(axis=1).sum())
        self.cuts: list[tuple[float, Floats, Floats]] = []
        self._settled, self._turn, self._idle, self._divide = 0.0, 0, 0, False
        self._paths: list[list[int]] = []
        self._below = 0.0

    def evaluate(self) -> Iterator[None]:
        """Evaluate the shortest path at the present prices, block by block, until all of it is."""
        price, ports = self.price[self.kind], self.price[self._kinds :]
        left = 1.0 - float(self._many @ self.price) if self.uses.timed else 1.0
        limited = np.isfinite(self.limit)
        offered = float(self.price[limited] @ self.limit[limited])
        beside, beside_used = self.uses.beside.least(price, ports)
        self._turn += 1
        while True:
            reached, path = self.chain.shortest(self._costs(price, left, beside))
            bound = np.inf
            if np.isfinite(reached):
                bound = reached - offered - BOUND_ROUNDING * reached - LIMIT_SLACK * offered
            ends = [*zip(self._blocks, [0, *path], [*path, 0], strict=True)]
            missing = [(block, a, b) for block, a, b in ends if block.counted and block.turn[a, b] < self._turn]
            if not missing or not np.isfinite(reached):
                break
            for block, a, b in missing:
                if block.turn[a, b] < self._turn:  # of equal blocks one is enough
                    block.evaluate(a, b, price / left, self._turn, self._divide)
                    yield
        if (self.price != self.centre).any():
            self.reach *= _WIDER if bound > self.best * (1.0 + _LEAST_GAIN) else _NARROWER
        if bound > self.best:
            self.best, self.centre = bound, self.price
        if np.isfinite(reached):
            self._paths = self.chain.also[self] = [*self._paths[1 - _LATEST :], path]
            self.cuts.append((bound, self.price, self._beyond(path, price / left, beside_used)))
        yield

    def _beyond(self, path: list[int], price: Floats, beside: Floats) -> Floats:
        """What the placement behind a path uses of each kind and port beyond what there is."""
        instance, uses, devices = self.chain.instance, self.uses, self.chain.instance.devices
        ends = [*zip([0, *path], [*path, 0], strict=True)]
        used = beside[path[uses.after] if uses.after >= 0 else 0].copy()
        latency = 0.0
        for k in uses.blocks:
            block, (a, b) = self._blocks[k], ends[k]
            used[:devices] += block.used[a, b]
            if uses.timed:
                latency += float(block.cost[a, b] - price @ block.used[a, b])
            if k in self._between:
                used[b] += uses.use[self._between[k], b]
                latency += float(instance.time[self._between[k], b])
        out = np.concatenate([np.bincount(self.kind, weights=used[:devices]), used[devices:]])[: len(self.limit)]
        if uses.timed:
            return floats(out - self._many * latency)
        limited = np.isfinite(self.limit)
        return floats(np.where(limited, out - np.where(limited, self.limit, 0.0), 0.0))

    def _costs(self, price: Floats, left: float, beside: Floats) -> Callable[[Block], Floats]:
        """What blocks cost at least at a price, with what the nodes after them use, and those beside after these.

        ``left``: the share of the latency of what is counted that is not priced.
        """
        instance, uses = self.chain.instance, self.uses
        costs = {}
        for k, (block, priced) in enumerate(zip(self.chain.blocks, self._blocks, strict=True)):
            cost = left * priced.costs(price / left) if k in uses.blocks else block.lower_bound.copy()
            v = self._between.get(k, -1)
            if v >= 0:
                able = np.isfinite(instance.time[v])
                cost += np.where(able, uses.use[v] * price - (1.0 - left) * np.where(able, instance.time[v], 0.0), 0.0)
            if k == uses.after:
                cost += beside
            costs[id(block)] = cost
        if uses.after < 0:
            costs[id(self.chain.blocks[0])] = costs[id(self.chain.blocks[0])] + beside[0]
        return lambda block: costs[id(block)]

    def move(self) -> bool:
        """Go to the next prices; False if there are none."""
        if not self.centre.any() and (self.cuts[0][2] <= 0.0).all():  # without prices there is enough
            self._begin_anew()
            return False
        price, promised = self._most_promising()
        if promised < self.best * (1.0 + _LEAST_GAIN):
            # Bounds of blocks have risen since their first placements.
            self._idle = 0 if self.best > self._settled * (1.0 + _LEAST_GAIN) else self._idle + 1
            price = self._begin_anew()
            if self._idle and not self._divide:
                self._divide, self._idle = True, 0
        self.price = price
        if self._idle < _IDLE:
            return True
        self._idle = 0
        return False

    def _begin_anew(self) -> Floats:
        """Forget the placements so far; returns the best prices."""
        self._settled, self.cuts, self._below = self.best, [], self._lower_bounds()
        self.reach = max(self.reach, _AGAIN)
        return self.centre

    def risen(self) -> bool:
        """Whether what is known of the blocks of the latest paths has risen since the last beginning."""
        return self._lower_bounds() > self._below * (1.0 + _LEAST_GAIN)

    def _lower_bounds(self) -> float:
        blocks = self.chain.blocks
        return sum(
            float(block.lower_bound[a, b])
            for path in self._paths
            for block, a, b in zip(blocks, [0, *path], [*path, 0], strict=True)
        )

    def _most_promising(self) -> tuple[Floats, float]:
        """The prices within reach for which all placements so far allow the highest bound, and that bound."""
        bound, point, beyond = map(np.array, zip(*self.cuts, strict=True))
        many, kinds = beyond.shape
        line, column = np.arange(many), np.arange(kinds)
        unit = self.best / self._amount
        rows = LinearRows()
        rows.at_most(
            np.concatenate([np.repeat(line, kinds), line]),
            np.concatenate([np.tile(column, many), np.full(many, kinds)]),
            np.concatenate([-beyond.ravel() / self._amount, np.ones(many)]),
            (bound - (beyond * point).sum(axis=1)) / self.best,
        )
        if self.uses.timed:
            rows.at_most(np.zeros(kinds, dtype=np.int64), column, self._many * unit, np.array([_MOST_SHARED]))
        centre = self.centre / unit
        low, high = np.append(np.maximum(centre - self.reach, 0.0), 0.0), np.append(centre + self.reach, np.inf)
        solved = rows.minimise(np.append(np.zeros(kinds), -1.0), np.stack([low, high], axis=1))
        if solved.status != 0:
            return self.centre, 0.0
        return floats(solved.x[:kinds] * unit), float(solved.x[kinds] * self.best)


def _priced_blocks(chain: Chain, uses: Uses) -> list[_PricedBlock]:
    """The blocks of a chain; equal ones share their bounds."""
    learned: dict[int, Learned] = {}
    known: dict[tuple[int, bytes], _PricedBlock] = {}
    out = []
    for k, block in enumerate(chain.blocks):
        ends = np.isin(block.nodes, [block.before, block.after])[:, None]
        use = floats(np.where(ends | (k not in uses.blocks), 0.0, uses.use[block.nodes]))
        priced = _PricedBlock(chain, block, use, learned)
        out.append(known.setdefault((id(block.lower_bound), use.tobytes()), priced))
    return out
