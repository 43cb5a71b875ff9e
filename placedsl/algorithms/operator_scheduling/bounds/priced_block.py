"""A block of a chain whose nodes cost something for what they use of devices, beside their latency."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast import Cases, Learned
from placedsl.algorithms.operator_scheduling.bounds.counted_reads import occupied
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, Chain, tensors_among
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import renamings
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats, moves
from placedsl.arrays import Booleans, Floats
from placedsl.tolerances import LIMIT_SLACK

#: Steps of the weights of a block without prices, the first time it is asked, and with prices, each time.
_UNPRICED, _STEPS = 10, 20


class PricedBlock:
    """A block, and what it costs at least with prices of what it uses, for each pair of devices of its ends.

    ``use``     its nodes x D: what they use of devices, none of its ends; ``counted``: whether any does
    ``paid``    flags of its tensors: their transfers use ports and links, which have prices (None: these have none)
    ``cost``    D x D seconds of latency and use, at those of the ``prices`` so far that ``at``, D x D, says
    ``used``    D x D x prices: what the placement behind that cost uses of each device, port and link
    ``turn``    D x D: when a pair was evaluated last
    """

    def __init__(
        self, chain: Chain, block: Block, use: Floats, paid: Booleans | None, learned: dict[int, Learned]
    ) -> None:  # fmt: skip
        instance, devices = chain.instance, chain.instance.devices
        self.chain, self.block, self.use, self.paid = chain, block, use, paid
        self.counted = bool(use.any())
        self._able = np.isfinite(instance.time[block.nodes])
        self._most_sent = np.zeros(0) if paid is None else _most_sent(instance, block, paid)
        prices = devices + len(self._most_sent)
        self.cost, self.used = block.lower_bound.copy(), np.zeros((devices, devices, prices))
        self.turn, self.at = np.zeros((2, devices, devices), dtype=np.int64)
        self.prices = [np.zeros(prices)]
        self._cases: dict[tuple[int, int], Cases] = {}
        self._learned = learned.setdefault(len(block.nodes), Learned())

    def costs(self, price: Floats) -> Floats:
        """D x D seconds that the block costs at least at a price (of devices, and of ports and links where they have
        prices), from what is known at others.
        """
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
        """The least that all nodes and transfers cost for what they use, at a price that may be negative."""
        devices = self.use.shape[1]
        sent = float(np.minimum(price[devices:], 0.0) @ self._most_sent)
        return float(np.where(self._able, self.use * price[:devices], np.inf).min(axis=1).sum()) + sent

    def evaluate(self, a: int, b: int, price: Floats, turn: int, divide: bool) -> None:
        """Raise the cost of a pair, and of all like it, to that at a price (seconds per use)."""
        block, alike, instance, devices = self.block, self.chain.alike, self.chain.instance, self.use.shape[1]
        cases = self._cases.get((a, b))
        if cases is None:
            known = float(block.lower_bound[a, b])
            inner = block.with_fixed_ends(instance, a, b)
            cases = self._cases[a, b] = Cases(inner, known, learned=self._learned, among=alike, paid=self.paid)
            cases.improve(known, _UNPRICED, divide)
            block.lower_bound[a, b] = max(known, cases.bound * (1.0 - LIMIT_SLACK))
            block.spread(alike, a, b)
        latency = float(block.lower_bound[a, b])
        if (self.prices[-1] != price).any():
            self.prices.append(price)
        if self.at[a, b] != len(self.prices) - 1:
            ways = None
            if self.paid is not None:
                ways = floats(np.einsum("r,rab->ab", price[devices:], cases.reads.uses))
            cases.price(floats(self.use * price[:devices]), latency, ways)
        cases.improve(latency, _STEPS, divide)
        self.cost[a, b], self.at[a, b], self.turn[a, b] = cases.bound * (1.0 - LIMIT_SLACK), len(self.prices) - 1, turn
        if cases.bound < np.inf:
            use = self.use[np.arange(len(cases.device)), cases.device]
            self.used[a, b, :devices] = np.bincount(cases.device, weights=use, minlength=devices)
            if self.paid is not None:
                self.used[a, b, devices:] = cases.sent
        for new in renamings(alike, a, b, (block.before >= 0, block.after >= 0)):
            x, y = int(new[a]) if block.before >= 0 else a, int(new[b]) if block.after >= 0 else b
            self.cost[x, y], self.at[x, y], self.turn[x, y] = self.cost[a, b], self.at[a, b], turn
            self.used[x, y, new] = self.used[a, b, :devices]
            self.used[x, y, devices:] = self.used[a, b, devices:]


def priced_blocks(chain: Chain, use: Floats, counted: range, *, ports: bool) -> list[PricedBlock]:
    """The blocks of a chain; equal ones share their bounds.

    ``use``: n x D, what nodes use of devices in the blocks ``counted``; ``ports``: transfers there have prices.
    """
    learned: dict[int, Learned] = {}
    known: dict[tuple[int, bytes, bytes], PricedBlock] = {}
    out = []
    for k, block in enumerate(chain.blocks):
        ends = np.isin(block.nodes, [block.before, block.after])[:, None]
        inside = floats(np.where(ends | (k not in counted), 0.0, use[block.nodes]))
        paid = _within(chain.instance, block) & (k in counted) if ports else None
        priced = PricedBlock(chain, block, inside, paid, learned)
        sends = b"" if paid is None else paid.tobytes()
        out.append(known.setdefault((id(block.lower_bound), inside.tobytes(), sends), priced))
    return out


def _within(instance: SchedulingInstance, block: Block) -> Booleans:
    """Flags of the tensors of a block: whether all that reads one is in the block."""
    inside = np.zeros(instance.nodes, dtype=bool)
    inside[block.nodes] = True
    tensors = tensors_among(instance, block.nodes)
    return np.array([inside[instance.reader[instance.reader_start[t] : instance.reader_start[t + 1]]].all()
                     for t in tensors.tolist()], dtype=np.bool_)  # fmt: skip


def _most_sent(instance: SchedulingInstance, block: Block, paid: Booleans) -> Floats:
    """The most seconds that the tensors ``paid`` of a block may occupy each resource."""
    move = moves(instance)[tensors_among(instance, block.nodes)[paid]]
    sent = np.einsum("tab,rab->tra", np.where(np.isfinite(move), move, 0.0), occupied(instance))
    return floats(sent.max(axis=2, initial=0.0).sum(axis=0))
