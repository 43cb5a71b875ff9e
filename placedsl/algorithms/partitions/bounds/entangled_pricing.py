"""The most valuable set where tensors are too entangled for a layered graph: annealing finds sets, and branch and bound
over minimum cuts proves that there is none; where a device has few units, connected sets are put together.

Order is left out, for any set is allowed.  It is asked for a set worth more than what a proof allows, and has nothing
to say once there is none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.cheapest_set import CheapestSet
from placedsl.algorithms.partitions.bounds.connected_sets import ConnectedSets
from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.partitions.bounds.set_annealing_kernel import Tensors, anneal_set, load_of
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr
from placedsl.tolerances import LIMIT_SLACK

#: Runs of annealing in one question, and steps of each per unit at first and where those find nothing; and how dear
#: load beyond the limit is, in terms of what a second within it is worth.
_RUNS, _STEPS, _DEAR = 6, (150, 600), (1.15, 3.0, 1.3, 1.8)
#: Nodes of branch and bound at first, by the effort that is asked for, and what one counts as effort.
_NODES, _EFFORT_A_NODE = 200_000, 20
#: What a search over connected sets counts as effort.
_EFFORT_OF_SETS = 10_000


class EntangledPricing:
    """The pricing problem of one device class; ``effort`` counts what was done, for the caller to read and reset."""

    def __init__(self, device: DeviceClass, over: Callable[[], bool]) -> None:
        self.device, self.over = device, over
        self.effort = 0
        pins = [np.array(own, dtype=np.int64) for own in device.edges.pins]
        lengths = np.array([len(own) for own in pins], dtype=np.int64)
        self.pin: Integers = np.concatenate([*pins, np.zeros(0, dtype=np.int64)])
        self.edge = np.repeat(np.arange(len(lengths)), lengths)
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        touch_start, touched = csr(self.pin, self.edge, len(device.work))
        self.tensors = Tensors(device.work, device.edges.cost, touch_start, touched, start, self.pin)
        self.cheapest, self.connected = CheapestSet(device), ConnectedSets(self.tensors)
        self._rng = np.random.default_rng(0)
        self._known: list[Booleans] = []

    def relaxed(self, price: Floats, largest: float) -> tuple[float, Floats]:
        """An upper bound on the value, and shares of units that attain it; here of units without tensors."""
        order = np.argsort(-np.where(self.device.work > 0.0, price / np.maximum(self.device.work, 1e-300), np.inf))
        shares, left = np.zeros(len(price)), largest * (1.0 + LIMIT_SLACK)
        for u in order.tolist():
            if price[u] <= 0.0 or not np.isfinite(self.device.work[u]):
                continue
            shares[u] = 1.0 if self.device.work[u] <= left else left / self.device.work[u]
            left -= shares[u] * self.device.work[u]
            if left <= 0.0:
                break
        return float((price * shares).sum()), shares

    def best_priced_set(
        self, price: Floats, largest: float, threshold: float, keep: int, most: int
    ) -> tuple[float, list[tuple[Booleans, float]], bool]:
        """As of :class:`~placedsl.algorithms.partitions.bounds.pricing.Pricing`; ``keep`` is the effort of a proof."""
        bound, _ = self.relaxed(price, largest)
        if bound <= threshold:
            return bound, [], True
        limit = largest * (1.0 + LIMIT_SLACK)
        if self.connected.listed(limit, np.inf, self.over):
            least, sets, through = self.connected.least(price / max(threshold, 1e-300), limit, lambda *_: self.over())
            self.effort += _EFFORT_OF_SETS
            if sets:
                return bound, [(own, float(load_of(self.tensors, own))) for own in sets[:most]], True
            return (threshold if least >= limit else bound), [], through
        if found := self.annealed(price, largest, threshold, most):
            return bound, found, True
        nodes = _NODES * max(1, keep // 30)
        self.cheapest.nodes = 0
        least, members, through = self.cheapest.least(
            price / threshold, lambda: limit,
            lambda _, found: found < limit or self.cheapest.nodes > nodes or self.over(),
        )  # fmt: skip
        self.effort += _EFFORT_A_NODE * self.cheapest.nodes
        if members is not None:
            self._known.append(members)
            return bound, [(members, float(load_of(self.tensors, members)))], True
        return (threshold if least >= limit else bound), [], through

    def annealed(self, price: Floats, largest: float, threshold: float, most: int) -> list[tuple[Booleans, float]]:
        """Sets worth more than ``threshold``, the best first."""
        for steps in _STEPS:
            if found := self._annealed(price, largest, threshold, most, steps * len(price)):
                return found
        return []

    def _annealed(
        self, price: Floats, largest: float, threshold: float, most: int, steps: int
    ) -> list[tuple[Booleans, float]]:
        """The same, by runs of so many steps."""
        units, limit = len(price), largest * (1.0 - 1e-9)
        worth = max(threshold, 1e-300) / limit
        found: dict[bytes, tuple[float, Booleans]] = {}
        for run in range(_RUNS):
            inside = np.zeros(units, dtype=np.bool_)
            if self._known and run % 2:
                inside = self._known[int(self._rng.integers(len(self._known)))].copy()
            best = np.zeros(units, dtype=np.bool_)
            seed = int(self._rng.integers(2**31))
            dear = _DEAR[run // 2 % len(_DEAR)] * worth
            value = anneal_set(self.tensors, price, limit, dear, steps, seed, inside, best)
            self.effort += steps // 10
            if value > threshold:
                found[best.tobytes()] = (value, best)
        best_first = sorted(found.values(), key=lambda one: -one[0])[:most]
        sets = [(own, float(load_of(self.tensors, own))) for _, own in best_first]
        sets = [(own, load) for own, load in sets if load <= largest]
        self._known = [*self._known, *(own for own, _ in sets)][-50:]
        return sets
