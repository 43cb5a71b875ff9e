"""The cheapest set of units whose prices reach 1, where a device has few units: unions of connected sets.

It answers what :class:`CheapestSet` does.  The connected sets that load less than what is asked about are listed, if
they are not too many, and anew only where more is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.connected_sets_kernel import (
    Connected,
    Pieces,
    Walk,
    fill_table,
    sets_of_unit,
    some_of,
    walk_on,
    words_of,
    worth_of,
)
from placedsl.algorithms.partitions.bounds.set_annealing_kernel import Tensors
from placedsl.arrays import Booleans, Floats

#: Sets that are listed, units of all of them, nodes of a search for them, and for those of one least unit.
MOST_SETS, _MOST_UNITS, _MOST_NODES, _NODES_OF_UNIT = 5_000_000, 40_000_000, 150_000_000, 10_000_000
#: How much faster sets may come than they would evenly.
_AHEAD = 3
#: How much more than what is asked for is listed, and how much less than too much is tried.
_MORE, _LESS = 0.03, 0.02
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
        #: What the last search did: entries of sets and of tables, and pieces looked at.
        self.effort = 0
        #: Sets that load less than the one are known; those that load less than the other were too many.
        self._below, self._too_many = 0.0, np.inf

    def listed(self, most: float, top: float, over: Callable[[], bool] = lambda: False) -> bool:
        """Whether the sets that load less than ``most`` are known; they are listed where they are not too many.

        ``top``: what is never asked for more than;  ``over``: whether to stop, asked after those of each unit.
        """
        if most <= self._below:
            return True
        for limit in (min(most * (1.0 + _MORE), top), most):
            if limit < self._too_many * (1.0 - _LESS) and self._list(limit, over):
                return True
        return False

    def _list(self, most: float, over: Callable[[], bool]) -> bool:
        """List the sets that load less than ``most``; whether they were not too many."""
        room = Connected(
            np.zeros(MOST_SETS + 1, dtype=np.int64), np.empty(_MOST_UNITS, dtype=np.uint16), np.empty(MOST_SETS)
        )
        made, looked, units = 0, 0, len(self._tensors.work)
        for root in range(units):
            made, nodes = map(int, sets_of_unit(self._tensors, root, most, room, made, _NODES_OF_UNIT))
            looked += _NODES_OF_UNIT - nodes
            if over():
                return False
            # The first units have the most sets; where many times as much is to come, none of it is waited for.
            share = min(1.0, _AHEAD * (root + 1) / units) if looked > _NODES_OF_UNIT else 1.0
            if made < 0 or nodes <= 0 or looked > share * _MOST_NODES or made > share * MOST_SETS:
                self._too_many = most
                return False
        first = room.first[: made + 1].copy()
        self.sets, self._below = Connected(first, room.unit[: first[-1]].copy(), room.load[:made].copy()), most
        return True

    def least(
        self, price: Floats, most: float, over: Callable[[float, float], bool]
    ) -> tuple[float, list[Booleans], bool]:
        """The least load of sets whose prices (u) reach 1, as far as it is proven and no more than ``most``, for which
        sets are :meth:`listed`; some sets found below that, the cheapest first; and whether the search is through.

        ``over(least, found)``, asked now and then, says whether to stop.
        """
        pieces, table = self._pieces(price, most)
        units, steps, words = len(price), table.shape[1] - 1, pieces.word.shape[1]
        bound = min(float(table[0, steps]), most)
        walk = Walk(
            np.zeros(units, dtype=np.int64), np.zeros(units), np.ones(units), np.zeros((units, words), np.uint64),
            np.zeros(3, dtype=np.int64), np.full(1, most),
        )  # fmt: skip
        rows = np.zeros((_FOUND, words), dtype=np.uint64)
        through = False
        while not through:
            through = bool(walk_on(pieces, table, walk, _LOOKS, rows))
            if over(bound, float(walk.least[0])):
                break
        self.effort += int(walk.state[2])
        number = int(walk.state[1])
        newest_first = rows[np.arange(number - 1, max(number - _FOUND, 0) - 1, -1) % _FOUND]
        flags = np.unpackbits(newest_first.view(np.uint8), axis=1, bitorder="little")[:, :units].astype(np.bool_)
        return float(walk.least[0]) if through else bound, list(flags), through

    def _pieces(self, price: Floats, most: float) -> tuple[Pieces, Floats]:
        """The sets that may be part of one worth 1 that loads less than ``most``, and the table of what they load."""
        sets, units = self.sets, len(price)
        assert sets is not None, "sets are listed first"
        worth, kept = np.empty(len(sets.load)), np.empty(len(sets.load), dtype=np.int64)
        least = min(float(worth_of(sets, price, most, worth)), 1e300) * (1.0 - 1e-9)
        kept = kept[: int(some_of(sets, worth, most, least, kept))]
        word = np.empty((len(kept), -(-units // 64)), dtype=np.uint64)
        words_of(sets, kept, word)
        pieces = Pieces(sets.unit[sets.first[kept]].astype(np.int64), sets.load[kept], worth[kept], word)
        steps = int(np.clip(_TABLE // max(1, len(kept)), _FEWEST_STEPS, _STEPS))
        table = np.empty((units + 1, steps + 1))
        fill_table(pieces, table)
        self.effort = len(sets.unit) + len(kept) * steps
        needed = np.clip(np.ceil((1.0 - pieces.worth) * steps - 1e-9), 0, steps).astype(np.int64)
        left = np.flatnonzero(pieces.load + table[0, needed] < most)
        return Pieces(pieces.unit[left], pieces.load[left], pieces.worth[left], pieces.word[left]), table
