"""A search for operator schedules in progress, and annealing of a part of a sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule, improves
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule

#: The first temperatures of a part of the order, and the last one of all annealing, as shares of the latency.
PART_HOT, COLD = (0.0005, 0.0002, 0.0001), 0.00001
#: Above so many nodes the whole is not annealed.
LARGE = 3000
#: Steps per node of a part or a window, and the share of them that move clusters joined by costly tensors.
STEPS, CLUSTER_MOVES = 250, 0.05


@dataclass(eq=False)
class ScheduleSearch:
    """A search in progress: the best sequence (None: none yet) and its latency in seconds.

    ``proven``: no better one exists; ``begun``: sequences to start from; ``runs`` of annealing and ``sweeps`` of
    windows so far; ``around``: after what share of the windows there are some around a layer, ``copied``: after what
    share of these, at least, it is copied to others.
    """

    instance: SchedulingInstance
    best: OperatorSequence | None
    value: float
    seed: int
    proven: bool = False
    begun: list[OperatorSequence] = field(default_factory=list)
    rng: np.random.Generator = field(init=False)
    runs: int = 0
    sweeps: int = 0
    around: float = 1.0
    copied: float = 1.0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def take(self, sequence: OperatorSequence) -> bool:
        """Keep a sequence if it is better; it is evaluated from scratch."""
        value, _ = schedule_of(self.instance, sequence)
        if not improves(value, self.value):
            return False
        self.best, self.value = sequence, value
        return True


def anneal_part(search: ScheduleSearch, sequence: OperatorSequence, among: range, hot: float) -> float:
    """Anneal a part of the order of a sequence; ``hot``: a share of the latency.  Returns the least latency met."""
    steps, seed = STEPS * len(among), int(search.rng.integers(2**31))
    cooling = CoolingSchedule(steps, hot * search.value, COLD * search.value, seed)
    schedule, latency = incremental_schedule(search.instance, sequence)
    _, found = run_annealing(
        search.instance, schedule, latency, latency, cooling, CLUSTER_MOVES, among
    )  # fmt: skip
    if found is None:
        return latency
    search.take(found)
    return schedule_of(search.instance, found)[0]
