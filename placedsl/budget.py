"""What a run of a solver or an algorithm may take."""

from __future__ import annotations

from placedsl.records import dataclass
from placedsl.tolerances import SAME_VALUE

#: The largest numbers of threads and seeds that every solver takes.
MOST = {"workers": 10_000, "seed": 2**31 - 1}


@dataclass(frozen=True)
class Budget:
    """Seconds (None: no limit), the relative gap at which to stop, threads (0: all cores), the seed.

    ``patient``: a solver in a process of its own gives way to others where cores are short.
    """

    time_limit: float | None = None
    gap: float = SAME_VALUE
    workers: int = 0
    seed: int = 0
    patient: bool = False
