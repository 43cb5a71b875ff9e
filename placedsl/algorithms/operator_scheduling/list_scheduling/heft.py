"""The baseline "heft": nodes by upward rank, each where it ends first, idle gaps included.   Topcuoglu et al. 2002.

The upward rank is the longest path to the end in mean times.  Memory limits are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from placedsl.algorithms.interface import Progress
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, scheduling_instance, unit_memory
from placedsl.algorithms.operator_scheduling.list_scheduling.list_kernel import by_rank
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import (
    NO_ROOM,
    answer,
    best_sequence,
    fits,
    options,
    queues,
    without_limit,
)
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, mean_times, ranks
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """The HEFT schedule."""
    instance = scheduling_instance(problem)
    return answer(instance, best(instance, without_limit(instance))[1], progress, NO_ROOM)


def best(instance: SchedulingInstance, memory_limit: Floats) -> tuple[float, OperatorSequence | None]:
    """The latency and sequence of HEFT within ``memory_limit`` bytes on each device (D)."""
    order = by_upward_rank(instance)
    return best_sequence(
        instance,
        [
            partial(by_rank, instance, order, options(instance), unit_memory(instance), memory_limit, queued)
            for queued in queues(instance)
        ],
    )


def by_upward_rank(instance: SchedulingInstance) -> Integers:
    """n: the nodes by decreasing upward rank; ties in topological order."""
    place = np.empty(instance.nodes, dtype=np.int64)
    place[instance.topological] = np.arange(instance.nodes)
    return np.lexsort((place, -ranks(instance, *mean_times(instance)))).astype(np.int64)


__all__ = ["best", "by_upward_rank", "fits", "solve"]
