"""The baseline "m-etf": ETF among the devices that still have room.   Jeon et al. 2020 (Baechi)."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.dataflow import etf
from placedsl.algorithms.dataflow.arrays import flow_of
from placedsl.algorithms.dataflow.listing import NO_ROOM, Values, answer, fits
from placedsl.algorithms.interface import Budget, Progress
from placedsl.problem import Problem


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """Its schedule."""
    flow = flow_of(problem)
    return answer(flow, etf.best(flow, flow.room)[1], progress, NO_ROOM)


__all__ = ["fits", "solve"]
