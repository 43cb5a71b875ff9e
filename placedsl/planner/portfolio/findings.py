"""What members tell one another: numbers by key that only rise, such as what a block of a chain is proven to take.

However often, in whatever order and by whichever way they come, the highest counts: what two members know together is
the same on all machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.exchange import Key

#: More keys of a kind are not kept: members that tell of so many go on with their own.
MOST_KEYS = 50_000


@dataclass(frozen=True)
class Told:
    """Numbers that a member has told of, to or from its process."""

    numbers: Mapping[Key, float]


class Findings:
    """The highest number that was told for each key; the first of a key is its kind."""

    def __init__(self) -> None:
        self.numbers: dict[Key, float] = {}
        self._kept: Counter[Hashable] = Counter()

    def raised(self, told: Mapping[Key, float]) -> dict[Key, float]:
        """Take numbers; those of them that are higher than what was known."""
        known, new = self.numbers, dict[Key, float]()
        for key, number in told.items():
            if number > known.get(key, -np.inf) and (key in known or self._kept[key[0]] < MOST_KEYS):
                self._kept[key[0]] += key not in known
                known[key] = new[key] = number
        return new
