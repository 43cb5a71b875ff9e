"""The baseline "etf": of all ready nodes and devices, always the pair that starts first.   Hwang et al. 1989.

Equal starts: the node with the longest way to the end.  It does not heed memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.algorithms.dataflow.arrays import Flow, flow_of
from placedsl.algorithms.dataflow.kernel import Order
from placedsl.algorithms.dataflow.listing import (
    NO_ROOM,
    Values,
    answer,
    by_earliest_start,
    fits,
    options,
    without_limit,
)
from placedsl.algorithms.interface import Budget, Progress
from placedsl.graph.graph import Floats
from placedsl.problem import Problem


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """Its schedule."""
    flow = flow_of(problem)
    return answer(flow, best(flow, without_limit(flow))[1], progress, NO_ROOM)


def best(flow: Flow, room: Floats) -> tuple[float, Order | None]:
    """Its latency and order, with so much room on each device."""
    return by_earliest_start(flow, options(flow), room)


__all__ = ["best", "fits", "solve"]
