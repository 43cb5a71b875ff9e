"""The baseline "m-topo": nodes in topological order, one device filled after the other.   Jeon et al. 2020 (Baechi).

A device is full at an even share of the total memory plus the largest node, or at its own limit; the last device is
full at its own limit.  Nodes that the device does not support go to the next one that does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.interface import Progress
from placedsl.algorithms.operator_scheduling.instance import (
    SchedulingInstance,
    scheduling_instance,
    supported,
    unit_memory,
)
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import NO_ROOM, answer, fits
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of, sequence_of
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """The m-topo schedule."""
    instance = scheduling_instance(problem)
    return answer(instance, best(instance)[1], progress, NO_ROOM)


def best(instance: SchedulingInstance) -> tuple[float, OperatorSequence | None]:
    """The latency and sequence of m-topo."""
    size, able = unit_memory(instance), supported(instance)
    devices = instance.devices
    share = float(size.sum()) / devices + float(size.max(initial=0.0))
    device_of = np.full(len(size), -1)
    held = np.zeros(devices)
    current = 0
    for v in instance.topological.tolist():
        u = int(instance.unit[v])
        if device_of[u] >= 0:
            continue
        fitting = able[u] & (held + size[u] <= instance.memory_limit)
        while current < devices - 1 and held[current] + size[u] > min(share, instance.memory_limit[current]):
            current += 1
        later = [d for d in (*range(current, devices), *range(current)) if fitting[d]]
        if not later:
            return np.inf, None
        device_of[u] = later[0]
        held[later[0]] += size[u]
    begun = np.empty(instance.nodes)
    begun[instance.topological] = np.arange(instance.nodes)
    sequence = sequence_of(instance, device_of[instance.unit], begun)
    return schedule_of(instance, sequence)[0], sequence


__all__ = ["best", "fits", "solve"]
