"""The baseline "heft": nodes by upward rank, each where it ends first, in idle gaps too.   Topcuoglu et al. 2002.

The rank is the longest way to the end in mean times.  It does not heed memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from placedsl.algorithms.dataflow.arrays import Flow, flow_of
from placedsl.algorithms.dataflow.kernel import Order, mean_times, ranks
from placedsl.algorithms.dataflow.list_kernel import by_rank
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
from placedsl.graph.graph import Floats, Integers
from placedsl.problem import Problem


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """Its schedule."""
    flow = flow_of(problem)
    return answer(flow, best(flow, without_limit(flow))[1], progress, NO_ROOM)


def best(flow: Flow, room: Floats) -> tuple[float, Order | None]:
    """Its latency and order, with so much room on each device."""
    sequence = by_upward_rank(flow)
    return best_order(
        flow,
        [partial(by_rank, flow, sequence, options(flow), sizes(flow), room, queued) for queued in queues(flow)],
    )


def by_upward_rank(flow: Flow) -> Integers:
    """The nodes by the longest way to the end; of like ones, what is read before what reads it."""
    place = np.empty(flow.nodes, dtype=np.int64)
    place[flow.topological] = np.arange(flow.nodes)
    return np.lexsort((place, -ranks(flow, *mean_times(flow)))).astype(np.int64)


__all__ = ["best", "by_upward_rank", "fits", "solve"]
