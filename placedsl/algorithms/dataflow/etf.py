"""The baseline "etf": of all ready nodes and devices, always the pair that starts first.   Hwang et al. 1989.

Equal starts: the node with the longest way to the end.  It does not heed memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from placedsl.algorithms.dataflow.arrays import Flow, flow_of
from placedsl.algorithms.dataflow.kernel import Order, mean_times, ranks
from placedsl.algorithms.dataflow.list_kernel import earliest_first
from placedsl.algorithms.dataflow.listing import (
    NO_ROOM,
    Values,
    answer,
    best_order,
    fits,
    options,
    queues,
    sizes,
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
    work, moving = mean_times(flow)
    rank = ranks(flow, work, moving)
    alone = np.full(flow.nodes, -1)
    return best_order(
        flow,
        [
            partial(earliest_first, flow, options(flow), sizes(flow), room, rank, alone, 0.0, queued, False)
            for queued in queues(flow)
        ],
    )


__all__ = ["best", "fits", "solve"]
