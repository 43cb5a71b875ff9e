"""Running times from operations and bytes: the roofline (Williams, Waterman and Patterson 2009)."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Device

_RATES = (("compute", "flops"), ("memory_bandwidth", "bytes"))


def seconds(graph: Graph, device: Device) -> Floats:
    """n running times: the longer of operations / ``compute`` and bytes / ``memory_bandwidth``, and the device's
    ``launch_overhead`` where there is any work."""
    flops, moved = _work(graph, "flops"), _work(graph, "bytes")
    # A rate that is missing is not needed: nothing is divided by it.
    computing = flops / (device.attributes.get("compute") or np.inf)
    moving = moved / (device.attributes.get("memory_bandwidth") or np.inf)
    started = (flops > 0) | (moved > 0)
    overhead = np.where(started, device.attributes.get("launch_overhead", 0.0), 0.0)
    return np.asarray(np.maximum(computing, moving) + overhead)


def missing_rates(graph: Graph, device: Device, nodes: Booleans) -> list[str]:
    """The attributes that a device would need to estimate these nodes, and does not have."""
    return [rate for rate, work in _RATES if (_work(graph, work)[nodes] > 0).any() and not device.attributes.get(rate)]


def _work(graph: Graph, attribute: str) -> Floats:
    """A column of operations or bytes; 0 where the graph gives none."""
    column = graph.attributes.get(attribute)
    if column is None or column.dtype.kind != "f":
        return np.zeros(graph.nodes)
    return np.asarray(np.nan_to_num(column.astype(float), nan=0.0))
