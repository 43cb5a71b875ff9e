"""A block of a chain whose nodes cost something for what they use of devices, beside their latency."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast import Cases, Learned
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, Chain
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import renamings
from placedsl.algorithms.operator_scheduling.instance import floats
from placedsl.arrays import Floats
from placedsl.tolerances import LIMIT_SLACK

#: Steps of the weights of a block without prices, the first time it is asked, and with prices, each time.
_UNPRICED, _STEPS = 10, 20


class PricedBlock:
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


def priced_blocks(chain: Chain, use: Floats, counted: range) -> list[PricedBlock]:
    """The blocks of a chain; equal ones share their bounds.

    ``use``: n x D, what nodes use of devices in the blocks ``counted``.
    """
    learned: dict[int, Learned] = {}
    known: dict[tuple[int, bytes], PricedBlock] = {}
    out = []
    for k, block in enumerate(chain.blocks):
        ends = np.isin(block.nodes, [block.before, block.after])[:, None]
        inside = floats(np.where(ends | (k not in counted), 0.0, use[block.nodes]))
        priced = PricedBlock(chain, block, inside, learned)
        out.append(known.setdefault((id(block.lower_bound), inside.tobytes()), priced))
    return out
