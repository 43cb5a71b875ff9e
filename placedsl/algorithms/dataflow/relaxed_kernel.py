"""Compiled: how early nodes can end and how much follows them at least, when nothing waits for devices or links."""

from __future__ import annotations

import numpy as np
from numba import njit

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.kernel import move_time
from placedsl.graph.graph import Booleans, Floats


@njit(cache=True)
def heads(flow: Flow) -> Floats:
    """n x D: no schedule ends a node on a device before (inf: not supported).

    What a node reads may each be on the device from which it comes first.
    """
    devices = flow.time.shape[1]
    out = flow.time.copy()
    for v in flow.topological:
        for d in range(devices):
            if out[v, d] == np.inf:
                continue
            ready = 0.0
            for i in range(flow.input_start[v], flow.input_start[v + 1]):
                tensor = flow.input[i]
                u = flow.producer[tensor]
                first = np.inf
                for a in range(devices):
                    if out[u, a] < np.inf and (a == d or flow.unit[u] != flow.unit[v]):
                        first = min(first, out[u, a] + (0.0 if a == d else move_time(flow, tensor, a, d)))
                ready = max(ready, first)
            out[v, d] += ready
    return out


@njit(cache=True)
def tails(flow: Flow, delivery: Floats) -> Floats:
    """n x D: how much longer it takes at least from a node's end on a device to the end of all.

    ``delivery`` n x D: how much follows it in any case.
    """
    nodes, devices = flow.time.shape
    out = delivery.copy()
    for k in range(nodes - 1, -1, -1):
        v = flow.topological[k]
        for i in range(flow.output_start[v], flow.output_start[v + 1]):
            tensor = flow.output[i]
            for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                w = flow.reader[j]
                for d in range(devices):
                    least = np.inf
                    for b in range(devices):
                        if flow.time[w, b] < np.inf and (b == d or flow.unit[w] != flow.unit[v]):
                            moving = 0.0 if b == d else move_time(flow, tensor, d, b)
                            least = min(least, moving + flow.time[w, b] + out[w, b])
                    out[v, d] = max(out[v, d], least)
    return out


@njit(cache=True)
def reaches(flow: Flow, v: int, forward: bool) -> Booleans:
    """n flags: which nodes come after v (``forward``), or before it."""
    nodes = flow.time.shape[0]
    out = np.zeros(nodes, np.bool_)
    stack = np.empty(nodes, np.int64)
    stack[0] = v
    count = 1
    while count > 0:
        count -= 1
        u = stack[count]
        if forward:
            for i in range(flow.output_start[u], flow.output_start[u + 1]):
                tensor = flow.output[i]
                for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                    w = flow.reader[j]
                    if not out[w]:
                        out[w] = True
                        stack[count] = w
                        count += 1
        else:
            for i in range(flow.input_start[u], flow.input_start[u + 1]):
                w = flow.producer[flow.input[i]]
                if not out[w]:
                    out[w] = True
                    stack[count] = w
                    count += 1
    return out
