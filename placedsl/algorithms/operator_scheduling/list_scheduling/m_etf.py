"""The baseline "m-etf": ETF on the devices that still have room.   Jeon et al. 2020 (Baechi)."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.interface import Progress
from placedsl.algorithms.operator_scheduling.instance import scheduling_instance
from placedsl.algorithms.operator_scheduling.list_scheduling import etf
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import NO_ROOM, answer, fits
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """The ETF schedule within the memory limits."""
    instance = scheduling_instance(problem)
    return answer(instance, etf.best(instance, instance.memory_limit)[1], progress, NO_ROOM)


__all__ = ["fits", "solve"]
