"""Compiled: what is around a stretch of a schedule, so that it can be searched as a problem of its own."""

from __future__ import annotations

import numpy as np
from numba import njit

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.kernel import Order, Times, move_time
from placedsl.graph.graph import Floats, Integers


@njit(cache=True)
def remaining(flow: Flow, order: Order) -> Floats:
    """n: how much follows a node's end in the schedule: along tensors, and along the sequence of its device."""
    nodes, devices = flow.time.shape
    out = np.zeros(nodes)
    after = np.zeros(devices)
    for k in range(nodes - 1, -1, -1):
        v = order.sequence[k]
        d = order.device[v]
        out[v] = after[d] if flow.sequential else 0.0
        for i in range(flow.output_start[v], flow.output_start[v + 1]):
            tensor = flow.output[i]
            for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                w = flow.reader[j]
                e = order.device[w]
                follows = flow.time[w, e] + out[w]
                if e != d:
                    follows += move_time(flow, tensor, d, e)
                out[v] = max(out[v], follows)
        if flow.time[v, d] > 0.0:
            after[d] = out[v] + flow.time[v, d]
    return out


@njit(cache=True)
def surroundings(
    flow: Flow, order: Order, times: Times, follows: Floats, low: int, high: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """The frame of the nodes at the places from ``low`` to ``high`` - 1: release and delivery a node there and a
    device,
    when devices and resources become free, and how much follows on each device."""
    nodes, devices = flow.time.shape
    count = high - low
    inside = np.zeros(nodes, np.bool_)
    for k in range(low, high):
        inside[order.sequence[k]] = True
    release, delivery = np.zeros((count, devices)), np.zeros((count, devices))
    for k in range(count):
        v = order.sequence[low + k]
        for i in range(flow.input_start[v], flow.input_start[v + 1]):
            tensor = flow.input[i]
            u = flow.producer[tensor]
            if inside[u]:
                continue
            a = order.device[u]
            for d in range(devices):
                there = times.ended[u]
                if a != d:
                    there += move_time(flow, tensor, a, d)
                    sent_before = False
                    if times.arrived[tensor, d] < np.inf:
                        # Somebody who is not in the stretch has had it sent.
                        for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                            w = flow.reader[j]
                            sent_before = sent_before or (not inside[w] and order.device[w] == d)
                    if sent_before or order.device[v] == d:
                        there = times.arrived[tensor, d]
                release[k, d] = max(release[k, d], there)
        for i in range(flow.output_start[v], flow.output_start[v + 1]):
            tensor = flow.output[i]
            for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                w = flow.reader[j]
                if inside[w]:
                    continue
                e = order.device[w]
                left = flow.time[w, e] + follows[w]
                for d in range(devices):
                    moving = 0.0 if d == e else move_time(flow, tensor, d, e)
                    delivery[k, d] = max(delivery[k, d], moving + left)
    free = np.zeros(devices + flow.resources)
    if flow.sequential:
        for k in range(low):
            v = order.sequence[k]
            if flow.time[v, order.device[v]] > 0.0:
                free[order.device[v]] = max(free[order.device[v]], times.ended[v])
    following = np.zeros(devices)
    if flow.sequential:
        for k in range(nodes - 1, high - 1, -1):
            v = order.sequence[k]
            d = order.device[v]
            if flow.time[v, d] > 0.0:
                following[d] = flow.time[v, d] + follows[v]
    return release, delivery, free, following


@njit(cache=True)
def held_without(flow: Flow, device: Integers, inside: np.ndarray) -> Floats:
    """Memory a device of the nodes that are not inside."""
    out = np.zeros(flow.time.shape[1])
    for v in range(len(device)):
        if not inside[v]:
            out[device[v]] += flow.memory[v]
    return out
