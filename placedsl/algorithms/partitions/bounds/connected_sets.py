"""The cheapest set of units whose prices reach 1, where a device has few units: unions of connected sets.

It asks and answers what :class:`CheapestSet` does.  The connected sets that load less than the best placement known are
listed once, if they are not too many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.connected_sets_kernel import (
    Connected,
    Walk,
    connected_sets,
    price_sets,
    walk_on,
)
from placedsl.algorithms.partitions.bounds.set_annealing_kernel import Tensors
from placedsl.arrays import Booleans, Floats, Integers

#: Sets that are listed, nodes of a search for them, and how much less than too much is tried.
_MOST_SETS, _MOST_NODES, _LESS = 400_000, 40_000_000, 0.01
#: Steps of the prices, at most and at least, and what a table may take; sets between two looks at the clock.
_STEPS, _FEWEST_STEPS, _TABLE, _LOOKS = 1024, 64, 10_000_000, 5_000_000
#: Sets that are given at once.
_FOUND = 8


class ConnectedSets:
    """The connected sets of one device class."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        #: Those that load less than ``_below``; None: none are known.
        self.sets: Connected | None = None
        #: Sets that load less than the one are known; those that load less than the other were too many.
        self._below, self._too_many = 0.0, np.inf

    def listed(self, most: float) -> bool:
        """Whether the sets that load less than ``most`` are known; they are listed where they are not too many."""
        if most <= self._below:
            return True
        if most < self._too_many * (1.0 - _LESS):
            words = -(-len(self._tensors.work) // 64)
            room = Connected(
                np.empty(_MOST_SETS, dtype=np.int64), np.empty(_MOST_SETS), np.empty((_MOST_SETS, words), np.uint64)
            )
            number = int(connected_sets(self._tensors, most, _MOST_NODES, room))
            if number >= 0:
                self.sets, self._below = _some(room, slice(number)), most
                return True
            self._too_many = most
        return False

    def least(
        self, price: Floats, most: float, over: Callable[[float, float], bool]
    ) -> tuple[float, list[Booleans], bool]:
        """The least load of sets whose prices (u) reach 1, as far as it is proven and no more than ``most``, for which
        sets are :meth:`listed`; some sets found below that, the cheapest first; and whether the search is through.

        ``over(least, found)``, asked now and then, says whether to stop.
        """
        sets, units = self.sets, len(price)
        assert sets is not None, "sets are listed first"
        steps = int(np.clip(_TABLE // max(1, len(sets.load)), _FEWEST_STEPS, _STEPS))
        worth, table = np.zeros(len(sets.load)), np.empty((units + 1, steps + 1))
        price_sets(sets, price, most, worth, table)
        bound, words = min(float(table[0, steps]), most), sets.word.shape[1]
        rest = np.clip(np.ceil((1.0 - worth) * steps - 1e-9), 0, steps).astype(np.int64)
        kept = np.flatnonzero((worth > 0.0) & (sets.load + table[0, rest] < most))
        sets, worth = _some(sets, kept), worth[kept]
        walk = Walk(
            np.zeros(units, dtype=np.int64), np.zeros(units), np.ones(units), np.zeros((units, words), np.uint64),
            np.zeros(2, dtype=np.int64), np.full(1, most),
        )  # fmt: skip
        rows = np.zeros((_FOUND, words), dtype=np.uint64)
        through = False
        while not through:
            through = bool(walk_on(sets, worth, table, walk, _LOOKS, rows))
            if over(bound, float(walk.least[0])):
                break
        number = int(walk.state[1])
        newest_first = rows[np.arange(number - 1, max(number - _FOUND, 0) - 1, -1) % _FOUND]
        flags = np.unpackbits(newest_first.view(np.uint8), axis=1, bitorder="little")[:, :units].astype(np.bool_)
        return float(walk.least[0]) if through else bound, list(flags), through


def _some(sets: Connected, which: Integers | slice) -> Connected:
    """Some of the sets."""
    return Connected(sets.unit[which].copy(), sets.load[which].copy(), sets.word[which].copy())
