"""What a search for pipelines gives, in terms of the nodes of the problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from placedsl.arrays import Integers
from placedsl.problem.values import Values
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class PlacementResult:
    """What a run gave: device of each node (None: nothing fits), its value, a proven bound of the problem that was
    solved, whether the search was complete, and whether no placement that good has fewer devices.  ``copies``: how many
    devices share what is on each device, where several may."""

    placement: Integers | None
    value: float
    bound: float
    complete: bool
    fewest: bool = False
    message: str = ""
    copies: Mapping[int, int] = field(default_factory=dict)

    @property
    def values(self) -> Values:
        """The spec's variables: how many devices share what is on each, where several may."""
        return {"copies": {(d,): float(number) for d, number in self.copies.items()}} if self.copies else {}

    @property
    def devices(self) -> int:
        """How many devices take part; none without a placement."""
        if self.placement is None:
            return 0
        used = np.unique(self.placement).tolist()
        return sum(self.copies.get(d, 1) for d in used)
