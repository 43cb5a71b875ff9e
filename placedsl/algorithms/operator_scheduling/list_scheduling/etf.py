"""The baseline "etf": of all ready nodes and devices, always the pair that starts first.   Hwang et al. 1989.

Ties go to the node with the longest path to the end.  Memory limits are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.interface import Progress
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, scheduling_instance
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import (
    NO_ROOM,
    answer,
    by_earliest_start,
    fits,
    options,
    without_limit,
)
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """The ETF schedule."""
    instance = scheduling_instance(problem)
    return answer(instance, best(instance, without_limit(instance))[1], progress, NO_ROOM)


def best(instance: SchedulingInstance, memory_limit: Floats) -> tuple[float, OperatorSequence | None]:
    """The latency and sequence of ETF within ``memory_limit`` bytes on each device (D)."""
    return by_earliest_start(instance, options(instance), memory_limit)


__all__ = ["best", "fits", "solve"]
