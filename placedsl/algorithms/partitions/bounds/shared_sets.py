"""Sets of units that processes which price them tell one another.

A set that is worth more than its share at the prices of one process often is at those of another.  A set too many makes
prices worse and cannot make a bound wrong: what sets are worth at most is proven anew by each process.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placedsl.algorithms.exchange import Exchange, Key
from placedsl.arrays import Booleans


class SharedSets:
    """The line to the others for sets of ``units`` units.

    ``full``: loads count every hyperedge.  Sets whose loads leave some out are told to those alone who leave them out
    as well: where all count they may load more than is told, and would leave no prices for what can be proven.
    """

    def __init__(self, exchange: Exchange, units: int, *, full: bool = True) -> None:
        self._exchange, self._units, self._full = exchange, units, full

    def tell(self, sets: Iterable[tuple[int, Booleans, float]]) -> None:
        """Tell of sets: the class of device, the members, the load in seconds."""
        found: dict[Key, float] = {
            ("set", self._units, self._full, kind, np.packbits(members).tobytes()): load for kind, members, load in sets
        }
        if found:
            self._exchange.tell(found)

    def heard(self) -> list[tuple[int, Booleans, float]]:
        """The sets that others have told of since the last call."""
        found = []
        for key, load in self._exchange.heard().items():
            match key:
                case ("set", self._units, self._full, int(kind), bytes(packed)):
                    members = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=self._units)
                    found.append((kind, members.astype(bool), load))
        return found
