"""Subproblems of neighbourhoods that several processes share out: none takes what another has begun, as long as there
are others.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Hashable
from typing import TypeVar

from placedsl.algorithms.exchange import Exchange, Key
from placedsl.arrays import Booleans, Integers

Free = TypeVar("Free")

#: What is known of a subproblem: somebody has begun, and somebody has solved it, or given it up.
_BEGUN, _DONE = 1.0, 2.0
#: So many neighbourhoods are drawn for one that nobody has begun.
_DRAWS = 8
#: Where more neighbourhoods of a placement are known than this, one is seldom drawn twice, and of others is not told.
MOST_TOLD = 250


class SharedNeighbourhoods:
    """The line to the others for neighbourhoods of the placements that all begin from.

    What one has begun and not done is taken where nothing else was drawn: its process may have gone.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange, self._known = exchange, dict[Key, float]()
        self._last: Key | None = None
        self._number: Counter[Hashable] = Counter()
        #: How many subproblems were begun, and how many others had begun before.
        self.begun, self.twice = 0, 0

    def draw(self, around: Integers, drawn: Callable[[], Free], free_in: Callable[[Free], Booleans]) -> Free:
        """The first of some draws that nobody has begun, else that nobody has done, else the last one.

        ``around``: the placement;  ``free_in``: flags of what a draw frees, whatever they stand for.
        """
        self._hear()
        base = zlib.crc32(around.tobytes())
        waiting: tuple[Key, Free] | None = None
        for _ in range(_DRAWS):
            free = drawn()
            key = ("neighbourhood", base, zlib.crc32(free_in(free).tobytes()))
            known = self._known.get(key, 0.0)
            if known < _BEGUN:
                return self._begin(key, free)
            if known < _DONE and waiting is None:
                waiting = key, free
        self.twice += 1
        return self._begin(*(waiting or (key, free)))

    def done(self) -> None:
        """The last one drawn is solved, or given up."""
        if self._last is not None:
            self._tell(self._last, _DONE)

    def _begin(self, key: Key, free: Free) -> Free:
        self.begun, self._last = self.begun + 1, key
        self._tell(key, _BEGUN)
        return free

    def _tell(self, key: Key, number: float) -> None:
        if self._raise(key, number) and self._number[key[1]] <= MOST_TOLD:
            self._exchange.tell({key: number})

    def _hear(self) -> None:
        for key, number in self._exchange.heard().items():
            match key:
                case ("neighbourhood", int(), int()):
                    self._raise(key, number)

    def _raise(self, key: Key, number: float) -> bool:
        """Take a number; whether it is higher than what was known."""
        known = self._known.get(key, 0.0)
        self._number[key[1]] += known == 0.0
        self._known[key] = max(known, number)
        return number > known
