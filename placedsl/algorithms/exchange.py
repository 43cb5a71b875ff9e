"""What processes that work on one problem tell one another: numbers that only rise, by keys that say what they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

#: Texts, whole numbers and bytes.
Key = tuple[Hashable, ...]


class Exchange(Protocol):
    """The line to the others.  Whatever the way and the order, the highest number of a key is what counts."""

    def tell(self, found: Mapping[Key, float]) -> None:
        """Tell the others of numbers."""

    def heard(self) -> Mapping[Key, float]:
        """What the others have told since the last call, as far as it is news."""


class Alone:
    """Nobody else works on the problem."""

    def tell(self, found: Mapping[Key, float]) -> None:
        """Nobody hears of it."""

    def heard(self) -> Mapping[Key, float]:
        """Nothing."""
        return {}


ALONE = Alone()
