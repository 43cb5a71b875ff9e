"""The list schedulers' common part: which problems they support, and how a choice of devices becomes an answer.

A list scheduler chooses devices and an order by its own estimate of the times; the schedule is then that of the kernel,
under all constraints of the specification.  Methods that ignore congestion run twice, once without it and once with
transfers that queue for their resources, and the better schedule counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, options, unit_memory
from placedsl.algorithms.operator_scheduling.list_scheduling.list_kernel import earliest_first
from placedsl.algorithms.operator_scheduling.schedule_kernel import (
    OperatorSequence,
    mean_times,
    ranks,
    schedule_of,
    sequence_of,
    values_of,
)
from placedsl.algorithms.supports import PLACING, Supports, reasons_against
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

#: Whether all nodes found a device; the device and the start of each.
Choice = tuple[bool, Integers, Floats]


SUPPORTS = Supports(
    objectives=("latency",), executions=(Execution(run="operators"),),
    constraints=PLACING | {"sequential", "congestion"},
)  # fmt: skip


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply, in the user's words."""
    return reasons_against(problem, SUPPORTS)


def without_limit(instance: SchedulingInstance) -> Floats:
    """D: unlimited memory, for the methods that ignore it."""
    return np.full(instance.devices, np.inf)


def best_sequence(
    instance: SchedulingInstance, choices: Sequence[Callable[[], Choice]]
) -> tuple[float, OperatorSequence | None]:
    """The latency and the sequence of the best of several choices; inf and None if none of them placed all nodes."""
    best: tuple[float, OperatorSequence | None] = (np.inf, None)
    for choose in choices:
        found, device, begun = choose()
        if not found:
            continue
        sequence = sequence_of(instance, device, begun)
        latency, _ = schedule_of(instance, sequence)
        if latency < best[0]:
            best = (latency, sequence)
    return best


def by_earliest_start(
    instance: SchedulingInstance, allowed: Booleans, memory_limit: Floats, favourite: Integers | None = None,
    reach: float = 0.0,
) -> tuple[float, OperatorSequence | None]:  # fmt: skip
    """The latency and sequence of ETF on the ``allowed`` devices of each node (n x D); see :func:`earliest_first`."""
    rank = ranks(instance, *mean_times(instance))
    kept = np.full(instance.nodes, -1) if favourite is None else favourite
    size = unit_memory(instance)
    return best_sequence(
        instance,
        [
            partial(earliest_first, instance, allowed, size, memory_limit, rank, kept, reach, queued)
            for queued in queues(instance)
        ],
    )


def queues(instance: SchedulingInstance) -> tuple[bool, ...]:
    """The congestion models that a method runs with: whether transfers queue."""
    return (False, True) if instance.resources else (False,)


def answer(
    instance: SchedulingInstance, sequence: OperatorSequence | None, progress: Progress, why: str
) -> tuple[Sequence[int], float, Values]:
    """The result of ``solve`` for a sequence; NothingFoundError with ``why`` if there is none."""
    if sequence is None:
        raise NothingFoundError(why)
    _, times = schedule_of(instance, sequence)
    placement, values = sequence.device.tolist(), values_of(times)
    progress(placement, -np.inf, values)
    return placement, -np.inf, values


NO_ROOM = "a list schedule does not take back what it has placed, and some node found no device with room for it"


__all__ = [
    "NO_ROOM",
    "SUPPORTS",
    "answer",
    "best_sequence",
    "by_earliest_start",
    "fits",
    "options",
    "queues",
    "without_limit",
]
