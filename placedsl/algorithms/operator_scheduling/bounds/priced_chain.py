"""What the blocks of a chain share, such as the memory of devices or their time, at prices.

Each block takes the best devices for itself, and together they may need more of a device than there is.  With prices
instead of limits (Lagrange) blocks stay apart: a schedule takes at least the shortest path over the chain, where a node
costs its time and what it uses and a block at least the least sum of its latency and what it uses, less what all that
there is would cost.  Every price gives a bound.  That of a block is the one by
:mod:`~placedsl.algorithms.operator_scheduling.bounds.broadcast`, whose weights are kept from price to price.

Of the time of a device there is as much as the counted part of the chain takes: prices that add up to a share M leave
1 - M of what this part costs.  Devices that are alike have one price.  Ports and links have one as well, which the
transfers within blocks pay once their cases are divided; not those of tensors that are read outside of the block, for
a tensor crosses once for all its readers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.beside import Beside
from placedsl.algorithms.operator_scheduling.bounds.priced_block import priced_blocks
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, Chain
from placedsl.algorithms.operator_scheduling.instance import floats
from placedsl.arrays import Booleans, Floats
from placedsl.tolerances import BOUND_ROUNDING, LIMIT_SLACK


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


class Priced(NamedTuple):
    """The chain at a price: the ``bound`` in seconds (inf: no devices are possible), the devices of the chain's nodes
    behind it, and what the placement behind it uses ``beyond`` what there is of each kind, port and link: the seconds
    by which the bound changes with the price at most.
    """

    price: Floats
    bound: float
    path: list[int]
    beyond: Floats


class PricedChain:
    """A chain at prices of what its blocks share; what is known of blocks at some prices is used at others.

    ``kinds``   how many kinds of devices have a price, which ports and links follow; ``limit``: how much there is of
                each kind, without their time
    ``many``    of each price: how many devices, ports or links it is for
    ``amount``  what all uses are together, to measure prices by
    """

    def __init__(self, chain: Chain, uses: Uses) -> None:
        self.chain, self.uses = chain, uses
        between = chain.nodes[uses.blocks.start : max(uses.blocks.stop - 1, uses.blocks.start)]
        self._between = dict(zip(uses.blocks, between.tolist(), strict=False))  # the counted node after a block
        _, self._kind = np.unique(chain.alike, return_inverse=True)
        many = np.bincount(self._kind)
        ports = chain.instance.resources if uses.timed else 0
        # Ports of devices that may change places have prices of their own, at which these may not.
        self._sends = ports > 0 and len(many) == chain.instance.devices
        self._blocks = priced_blocks(chain, uses.use, uses.blocks, ports=self._sends)
        self.kinds, self.many = len(many), np.concatenate([many, np.ones(ports)])
        self.limit = np.zeros(len(many) + ports) if uses.timed else np.bincount(self._kind, weights=uses.limit)
        self.amount = chain.bound() if uses.timed else float(uses.use.max(axis=1).sum())
        self._turn = 0

    def at(self, price: Floats, allowed: Booleans, divide: bool) -> Generator[None, None, Priced]:
        """Evaluate the shortest path at a price (of each kind, port and link) over the devices ``allowed`` (nodes of
        the chain x D), block by block, until all of it is; ``divide``: whether branches of a block's cases are.
        """
        uses = self.uses
        devices, ports = price[self._kind], price[self.kinds :]
        left = 1.0 - float(self.many @ price) if uses.timed else 1.0
        limited = np.isfinite(self.limit)
        sent = ports if divide else np.zeros(len(ports))
        of_blocks = floats(np.concatenate([devices, sent]) if self._sends else devices) / left
        offered = float(price[limited] @ self.limit[limited])
        beside, beside_used = uses.beside.least(devices, ports)
        self._turn += 1
        while True:
            reached, path = self.chain.shortest(self._costs(devices, of_blocks, left, beside), allowed)
            if not np.isfinite(reached):
                return Priced(price, np.inf, path, np.zeros(len(self.limit)))
            ends = [*zip(self._blocks, [0, *path], [*path, 0], strict=True)]
            missing = [(block, a, b) for block, a, b in ends if block.counted and block.turn[a, b] < self._turn]
            if not missing:
                break
            for block, a, b in missing:
                if block.turn[a, b] < self._turn:  # of equal blocks one is enough
                    block.evaluate(a, b, of_blocks, self._turn, divide)
                    yield
        bound = reached - offered - BOUND_ROUNDING * reached - LIMIT_SLACK * offered
        return Priced(price, bound, path, self._beyond(path, of_blocks, beside_used, divide))

    def _beyond(self, path: list[int], price: Floats, beside: Floats, sends: bool) -> Floats:
        """What the placement behind a path uses of each kind and port beyond what there is."""
        instance, uses, devices = self.chain.instance, self.uses, self.chain.instance.devices
        ends = [*zip([0, *path], [*path, 0], strict=True)]
        used = beside[path[uses.after] if uses.after >= 0 else 0].copy()
        latency = 0.0
        for k in uses.blocks:
            block, (a, b) = self._blocks[k], ends[k]
            priced = len(price) if sends else devices
            used[:priced] += block.used[a, b, :priced]
            if uses.timed:
                latency += float(block.cost[a, b] - price @ block.used[a, b])
            if k in self._between:
                used[b] += uses.use[self._between[k], b]
                latency += float(instance.time[self._between[k], b])
        kinds = np.bincount(self._kind, weights=used[:devices])
        out = np.concatenate([kinds, used[devices:]])[: len(self.limit)]
        if uses.timed:
            return floats(out - self.many * latency)
        limited = np.isfinite(self.limit)
        return floats(np.where(limited, out - np.where(limited, self.limit, 0.0), 0.0))

    def _costs(
        self, price: Floats, of_blocks: Floats, left: float, beside: Floats
    ) -> Callable[[Block], Floats]:  # fmt: skip
        """What blocks cost at least at a price, with what the nodes after them use, and those beside after these.

        ``of_blocks``: what blocks pay, in terms of their latency; ``left``: the share of the latency of what is counted
        that is not priced.
        """
        instance, uses = self.chain.instance, self.uses
        costs = {}
        for k, (block, priced) in enumerate(zip(self.chain.blocks, self._blocks, strict=True)):
            cost = left * priced.costs(of_blocks) if k in uses.blocks else block.lower_bound.copy()
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
