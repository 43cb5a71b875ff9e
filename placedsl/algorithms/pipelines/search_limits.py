"""When a search for pipelines stops by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from placedsl.records import dataclass

#: The most ideals that are stored.
MOST_IDEALS = 2_000_000


@dataclass
class SearchLimits:
    """When a run stops by itself: a ``time.monotonic()`` value, what is asked now and then, ideals stored.

    ``told`` hears of what is known of plans so far: one (or None), and a load that none is below.
    """

    deadline: float | None = None
    stop: Callable[[], bool] | None = None
    most: int = MOST_IDEALS
    told: Callable[[Any, float], None] | None = None

    @property
    def passed(self) -> bool:
        """It is time to stop."""
        return (self.deadline is not None and time.monotonic() > self.deadline) or bool(self.stop and self.stop())
