"""The baseline "m-topo": nodes in topological order, one device filled after the other.   Jeon et al. 2020 (Baechi).

A device is full at an even share of the whole memory plus the largest node, or when its own memory is; the last is full
at its own.  What the device does not support goes to the next that does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.dataflow.arrays import Flow, flow_of, supported
from placedsl.algorithms.dataflow.kernel import Order, order_of, schedule
from placedsl.algorithms.dataflow.listing import NO_ROOM, Values, answer, fits, sizes
from placedsl.algorithms.interface import Budget, Progress
from placedsl.problem import Problem


def solve(problem: Problem, _budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """Its schedule."""
    flow = flow_of(problem)
    return answer(flow, best(flow)[1], progress, NO_ROOM)


def best(flow: Flow) -> tuple[float, Order | None]:
    """Its latency and order."""
    size, able = sizes(flow), supported(flow)
    devices = flow.devices
    share = float(size.sum()) / devices + float(size.max(initial=0.0))
    device_of = np.full(len(size), -1)
    held = np.zeros(devices)
    current = 0
    for v in flow.topological.tolist():
        u = int(flow.unit[v])
        if device_of[u] >= 0:
            continue
        fitting = able[u] & (held + size[u] <= flow.room)
        while current < devices - 1 and held[current] + size[u] > min(share, flow.room[current]):
            current += 1
        later = [d for d in (*range(current, devices), *range(current)) if fitting[d]]
        if not later:
            return np.inf, None
        device_of[u] = later[0]
        held[later[0]] += size[u]
    begun = np.empty(flow.nodes)
    begun[flow.topological] = np.arange(flow.nodes)
    order = order_of(flow, device_of[flow.unit], begun)
    return schedule(flow, order)[0], order


__all__ = ["best", "fits", "solve"]
