"""What the baselines share: which problems they know, and how what they chose becomes an answer.

A baseline chooses devices and an order by its own account of time; the schedule is then that of the kernel, under
all rules
of the spec.  Methods that know no congestion are run twice, once without it and once with transfers that queue as
the spec
says, and the better schedule counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from placedsl.algorithms.baseline import undecided
from placedsl.algorithms.dataflow.arrays import Flow, options, unit_memory
from placedsl.algorithms.dataflow.kernel import Order, mean_times, order_of, ranks, schedule, values_of
from placedsl.algorithms.dataflow.list_kernel import earliest_first
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.expressions import Provided
from placedsl.graph.graph import Booleans, Floats, Integers
from placedsl.problem import Problem

#: The rules that the arrays hold.
KNOWN = ("memory", "sequential", "congestion", "colocated")
Values = dict[str, dict[tuple[int, ...], float]]
#: Whether all nodes found a device; the device and the start of each.
Choice = tuple[bool, Integers, Floats]


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    goal = problem.objectives[0]
    against = undecided(problem)
    if problem.schedule != "dataflow" or problem.moves is None:
        against.append(f"it knows schedule dataflow, not {problem.schedule}")
    if not (isinstance(goal.body, Provided) and goal.body.name == "latency"):
        against.append(f"it minimises latency, not {goal.name}")
    against += [f"it does not look at {rule.name}" for rule in problem.rules if rule.built_in not in KNOWN]
    return against


def without_limit(flow: Flow) -> Floats:
    """Room for the methods that do not heed memory."""
    return np.full(flow.devices, np.inf)


def best_order(flow: Flow, choices: Sequence[Callable[[], Choice]]) -> tuple[float, Order | None]:
    """The latency and the order of the best of several choices; inf and None where none placed all nodes."""
    best: tuple[float, Order | None] = (np.inf, None)
    for choose in choices:
        found, device, begun = choose()
        if not found:
            continue
        order = order_of(flow, device, begun)
        latency, _ = schedule(flow, order)
        if latency < best[0]:
            best = (latency, order)
    return best


def by_earliest_start(
    flow: Flow, allowed: Booleans, room: Floats, favourite: Integers | None = None, reach: float = 0.0
) -> tuple[float, Order | None]:  # fmt: skip
    """The latency and order of ETF among the ``allowed`` devices of each node (n x D); see :func:`earliest_first`."""
    rank = ranks(flow, *mean_times(flow))
    kept = np.full(flow.nodes, -1) if favourite is None else favourite
    size = unit_memory(flow)
    return best_order(
        flow, [partial(earliest_first, flow, allowed, size, room, rank, kept, reach, queued) for queued in queues(flow)]
    )


def queues(flow: Flow) -> tuple[bool, ...]:
    """With which accounts of congestion a method is run."""
    return (False, True) if flow.resources else (False,)


def answer(flow: Flow, order: Order | None, progress: Progress, why: str) -> tuple[Sequence[int], float, Values]:
    """What ``solve`` returns for an order; NothingFoundError with ``why`` where there is none."""
    if order is None:
        raise NothingFoundError(why)
    _, times = schedule(flow, order)
    placement, values = order.device.tolist(), values_of(times)
    progress(placement, -np.inf, values)
    return placement, -np.inf, values


NO_ROOM = "a list schedule does not take back what it has placed, and some node found no device with room for it"


def sizes(flow: Flow) -> Floats:
    """What each unit occupies."""
    return unit_memory(flow)


__all__ = [
    "KNOWN",
    "NO_ROOM",
    "answer",
    "best_order",
    "by_earliest_start",
    "fits",
    "options",
    "queues",
    "sizes",
    "without_limit",
]
