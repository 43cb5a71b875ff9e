"""The most that the units on one device can be worth, at given prices of the units: bounds on it, and sets.

The value of a set is the sum of its prices; its load must not exceed ``largest``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.bounds.frontier import SLACK, Frontier
from placedsl.algorithms.bounds.set_kernel import hulls, labels, mixture
from placedsl.graph.graph import Booleans, Floats, Integers

#: Labels that a search may hold.
SPACE = 6_000_000


@dataclass(eq=False)
class Pricing:
    """The searches over one layered graph, and the memory that they work in.  ``effort`` counts labels."""

    frontier: Frontier
    effort: int = 0
    _hull: tuple[Floats, Floats, Integers, Integers, Integers, Integers, Floats] = field(init=False)
    _bounds: tuple[Integers, Integers] = field(init=False)
    _labels: tuple[Floats, Floats, Integers, Booleans, Integers] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        states = len(self.frontier.before)
        self._space(64 * states + 1000)
        self._bounds = (np.zeros(states, dtype=np.int64), np.zeros(states, dtype=np.int64))

    def _space(self, vertices: int) -> None:
        def integers() -> Integers:
            return np.zeros(vertices, dtype=np.int64)

        self._hull = (
            np.zeros(vertices), np.zeros(vertices), integers(), integers(), integers(), integers(), np.zeros(vertices)
        )  # fmt: skip

    def relaxed(self, price: Floats, largest: float) -> tuple[float, Floats]:
        """An upper bound on the value, and the mixture of sets (u shares) that reaches it."""
        f = self.frontier
        while not hulls(
            len(f.order), f.state_start, f.move_start, f.source, f.target, f.taken, f.cost, f.by_source, f.before,
            f.work, price[f.order], largest * (1 + SLACK), *self._hull, *self._bounds,
        ):  # fmt: skip
            self._space(2 * len(self._hull[0]))
        begin, end = self._bounds
        self.effort += int(end[0])
        value, pointers = self._hull[1], self._hull[2:]
        out = np.empty(len(f.order))
        out[f.order] = mixture(len(f.order), f.state_start, f.taken, begin, end, *pointers)
        return float(value[end[0] - 1]), out

    def dearest(
        self, price: Floats, largest: float, threshold: float, keep: int, most: int
    ) -> tuple[float, list[tuple[Booleans, float]], bool]:
        """An upper bound on the value; up to ``most`` sets worth more than ``threshold`` with their loads; and whether
        no better bound is to be had by following more labels.

        No more than ``keep`` labels a state are followed.
        """
        bound, _ = self.relaxed(price, largest)
        if bound <= threshold:
            return bound, [], True
        if self._labels is None:
            states = len(self.frontier.before)
            self._labels = (
                np.empty(SPACE), np.empty(SPACE), np.empty(SPACE, dtype=np.int64), np.empty(SPACE, dtype=np.bool_),
                np.zeros(states + 2, dtype=np.int64),
            )  # fmt: skip
        f = self.frontier
        load, value, parent, chosen, start = self._labels
        count, lost = -1, 0.0
        while count < 0:
            count, lost = labels(
                len(f.order), f.state_start, f.move_start, f.source, f.target, f.taken, f.cost, f.rival_start, f.rival,
                f.rival_cost, f.work, price[f.order], largest * (1 + SLACK), threshold, keep, *self._hull[:2],
                *self._bounds, load, value, parent, chosen, start,
            )  # fmt: skip
            self.effort += count if count >= 0 else SPACE
            keep = max(1, keep // 3)
        last = len(f.before) - 1
        found = []
        for label in range(int(start[last + 1]) - 1, max(int(start[last]), int(start[last + 1]) - most) - 1, -1):
            members = np.zeros(len(f.order), dtype=np.bool_)
            at = label
            for layer in range(len(f.order) - 1, -1, -1):
                members[f.order[layer]] = chosen[at]
                at = int(parent[at])
            found.append((members, float(load[label])))
        best = float(value[start[last + 1] - 1]) if found else threshold
        return max(best, threshold, lost), found, lost <= max(best, threshold)
