"""Annealing of a walk, as the search calls it."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.dataflow.anneal_kernel import Change, Cooling, anneal
from placedsl.algorithms.dataflow.arrays import Flow, supported, unit_memory
from placedsl.algorithms.dataflow.kernel import Order, mean_times
from placedsl.algorithms.dataflow.walk_kernel import Walk


def annealed(flow: Flow, walk: Walk, latency: float, best: float, cooling: Cooling) -> tuple[float, Order | None]:
    """Steps of a walk; its latency, and the best order if that is below ``best``."""
    size, units = unit_memory(flow), len(flow.member_start) - 1
    change = Change(
        np.zeros(units + 1, dtype=np.int64), np.zeros(units + 1, dtype=np.int64), np.zeros(units, dtype=np.int64)
    )
    found = Order(
        walk.device.copy(), walk.sequence.copy(), walk.caller.copy(), walk.first.copy(), walk.following.copy()
    )
    latency, value = anneal(
        flow, walk, supported(flow), size, mean_times(flow)[1], latency, cooling, change, found, best
    )
    return latency, found if value < best else None
