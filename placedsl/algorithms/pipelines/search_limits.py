"""When a search for pipelines stops by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from placedsl.records import dataclass

#: The most ideals that are stored.
MOST_IDEALS = 2_000_000
#: Seconds that a table takes for an ideal, where none has been made yet, and ideals below which that is not measured.
_SECONDS_AN_IDEAL = 1.5e-6
_TOO_FEW_TO_TELL = 50_000


@dataclass
class SearchLimits:
    """When a run stops by itself: a ``time.monotonic()`` value, what is asked now and then, ideals stored.

    ``told`` hears of what is known of plans so far: one (or None), and a load that none is below.
    """

    deadline: float | None = None
    stop: Callable[[], bool] | None = None
    most: int = MOST_IDEALS
    told: Callable[[Any, float], None] | None = None
    seconds_an_ideal: float = _SECONDS_AN_IDEAL

    @property
    def passed(self) -> bool:
        """It is time to stop."""
        return (self.deadline is not None and time.monotonic() > self.deadline) or bool(self.stop and self.stop())

    def time_for(self, ideals: int) -> bool:
        """Whether a table of so many ideals can be made before the deadline, going by those that were made."""
        return self.deadline is None or time.monotonic() + ideals * self.seconds_an_ideal <= self.deadline

    def made(self, ideals: int, began: float) -> None:
        """A table of so many ideals, begun at a ``time.monotonic()`` value, is ready."""
        if ideals >= _TOO_FEW_TO_TELL:
            self.seconds_an_ideal = (time.monotonic() - began) / ideals
