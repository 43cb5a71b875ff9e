"""Compiled: list scheduling, which takes one ready node after the other and a device for it.

Two manners: the earliest start of all pairs of a ready node and a device (ETF), or nodes by rank and for each the
device on
which it ends first, in gaps too (HEFT).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.kernel import departure, move_time, occupy
from placedsl.graph.graph import Booleans, Floats, Integers


@njit(cache=True)
def ready_time(
    flow: Flow, device: Integers, ended: Floats, arrived: Floats, free: Floats, v: int, d: int, queued: bool,
    send: bool = False,
) -> float:  # fmt: skip
    """When all that v reads can be on d; with ``queued`` each transfer waits for its resources as they are.

    With ``send`` the transfers are made, so that later ones wait for them.
    """
    ready = 0.0
    for i in range(flow.input_start[v], flow.input_start[v + 1]):
        tensor = flow.input[i]
        u = flow.producer[tensor]
        if device[u] == d:
            ready = max(ready, ended[u])
            continue
        there = arrived[tensor, d]
        if there == np.inf:
            duration = move_time(flow, tensor, device[u], d)
            leaves = ended[u]
            if queued:
                leaves = departure(flow, free, device[u], d, leaves, duration)
            there = leaves + duration
            if send:
                arrived[tensor, d] = there
                if queued and duration > 0.0:
                    occupy(flow, free, device[u], d, there)
        ready = max(ready, there)
    return ready


@njit(cache=True)
def earliest_first(
    flow: Flow,
    allowed: Booleans,
    size: Floats,
    room: Floats,
    rank: Floats,
    favourite: Integers,
    reach: float,
    queued: bool,
) -> tuple[bool, Integers, Floats]:
    """ETF: of all pairs of a ready node and a device, always the one that starts first; of like ones, the
    node of largest ``rank``, then the earliest end.

    ``allowed`` n x D; ``size`` a unit, within ``room``.  ``favourite`` a node's favourite child (-1: none): for
    ``reach`` after the node has ended, its device is kept for that child and for what could start anywhere.  Whether
    all found room; device and start of each node.
    """  # fmt: skip
    nodes, devices = flow.time.shape
    tensors = len(flow.producer)
    device = np.full(nodes, -1, np.int64)
    begun, ended = np.zeros(nodes), np.zeros(nodes)
    arrived = np.full((tensors, devices), np.inf)
    free = np.zeros(devices + flow.resources)
    held = np.zeros(devices)
    unit_device = np.full(len(flow.member_start) - 1, -1, np.int64)
    last = np.full(devices, -1, np.int64)
    waiting = np.zeros(nodes, np.int64)
    ready = np.empty(nodes, np.int64)
    count = 0
    for v in range(nodes):
        waiting[v] = flow.input_start[v + 1] - flow.input_start[v]
        if waiting[v] == 0:
            ready[count] = v
            count += 1
    data = np.empty((nodes, devices))
    for k in range(count):
        data[ready[k]] = 0.0
    for _ in range(nodes):
        best, best_start, best_end, best_device = -1, np.inf, np.inf, -1
        for k in range(count):
            v = ready[k]
            unit = flow.unit[v]
            anywhere = 0.0
            if queued:
                for d in range(devices):
                    data[v, d] = ready_time(flow, device, ended, arrived, free, v, d, True)
            for d in range(devices):
                if allowed[v, d]:
                    anywhere = max(anywhere, data[v, d])
            for d in range(devices):
                if not allowed[v, d] or data[v, d] == np.inf:
                    continue
                if unit_device[unit] >= 0 and unit_device[unit] != d:
                    continue
                if unit_device[unit] < 0 and held[d] + size[unit] > room[d]:
                    continue
                start = data[v, d]
                if flow.sequential and flow.time[v, d] > 0.0:
                    start = max(start, free[d])
                if last[d] >= 0 and favourite[last[d]] >= 0:
                    child = favourite[last[d]]
                    kept = ended[last[d]] + reach
                    if child != v and device[child] < 0 and start < kept and start < anywhere:
                        start = kept
                end = start + flow.time[v, d]
                if best < 0 or start < best_start or (
                    start == best_start
                    and (rank[v] > rank[best] or (rank[v] == rank[best] and end < best_end))
                ):  # fmt: skip
                    best, best_start, best_end, best_device = v, start, end, d
        if best < 0:
            return False, device, begun
        v, d = best, best_device
        start = ready_time(flow, device, ended, arrived, free, v, d, queued, True)
        if flow.sequential and flow.time[v, d] > 0.0:
            start = max(start, free[d])
            free[d] = start + flow.time[v, d]
        if unit_device[flow.unit[v]] < 0:
            unit_device[flow.unit[v]] = d
            held[d] += size[flow.unit[v]]
        device[v], begun[v], ended[v], last[d] = d, start, start + flow.time[v, d], v
        for k in range(count):
            if ready[k] == v:
                count -= 1
                ready[k] = ready[count]
                break
        for i in range(flow.output_start[v], flow.output_start[v + 1]):
            tensor = flow.output[i]
            for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                w = flow.reader[j]
                waiting[w] -= 1
                if waiting[w] == 0:
                    ready[count] = w
                    count += 1
                    for e in range(devices):
                        data[w, e] = ready_time(flow, device, ended, arrived, free, w, e, False)
    return True, device, begun


@njit(cache=True)
def by_rank(
    flow: Flow, sequence: Integers, allowed: Booleans, size: Floats, room: Floats, queued: bool
) -> tuple[bool, Integers, Floats]:
    """HEFT: nodes in ``sequence``, each to the device on which it ends first, in the first gap that is long enough.

    Whether all found a device; device and start of each node.
    """
    nodes, devices = flow.time.shape
    device = np.full(nodes, -1, np.int64)
    begun, ended = np.zeros(nodes), np.zeros(nodes)
    arrived = np.full((len(flow.producer), devices), np.inf)
    free = np.zeros(devices + flow.resources)
    held = np.zeros(devices)
    unit_device = np.full(len(flow.member_start) - 1, -1, np.int64)
    # Busy stretches of each device, those that touch as one: from, until.
    busy = np.empty((devices, nodes + 1, 2))
    stretches = np.zeros(devices, np.int64)
    for v in sequence:
        unit = flow.unit[v]
        best, best_end, best_start = -1, np.inf, np.inf
        for d in range(devices):
            if not allowed[v, d] or (unit_device[unit] >= 0 and unit_device[unit] != d):
                continue
            if unit_device[unit] < 0 and held[d] + size[unit] > room[d]:
                continue
            start = ready_time(flow, device, ended, arrived, free, v, d, queued)
            if flow.sequential and flow.time[v, d] > 0.0:
                start = _gap(busy[d], stretches[d], start, flow.time[v, d])
            if start + flow.time[v, d] < best_end:
                best, best_end, best_start = d, start + flow.time[v, d], start
        if best < 0:
            return False, device, begun
        d = best
        ready_time(flow, device, ended, arrived, free, v, d, queued, True)
        if flow.sequential and flow.time[v, d] > 0.0:
            stretches[d] = _insert(busy[d], stretches[d], best_start, best_end)
        if unit_device[unit] < 0:
            unit_device[unit] = d
            held[d] += size[unit]
        device[v], begun[v], ended[v] = d, best_start, best_end
    return True, device, begun


@njit(cache=True)
def _gap(busy: Floats, count: int, ready: float, duration: float) -> float:
    """The first time from ``ready`` on at which a device is idle for so long."""
    low, high = 0, count
    while low < high:  # the first stretch that ends after ready
        middle = (low + high) // 2
        if busy[middle, 1] > ready:
            high = middle
        else:
            low = middle + 1
    for k in range(low, count):
        if ready + duration <= busy[k, 0]:
            return ready
        ready = max(ready, busy[k, 1])
    return ready


@njit(cache=True)
def _insert(busy: Floats, count: int, start: float, end: float) -> int:
    """Add a stretch; how many there are then."""
    k = count
    while k > 0 and busy[k - 1, 0] > start:
        k -= 1
    before, after = k > 0 and busy[k - 1, 1] == start, k < count and busy[k, 0] == end
    if before and after:
        busy[k - 1, 1] = busy[k, 1]
        for j in range(k, count - 1):
            busy[j] = busy[j + 1]
        return count - 1
    if before:
        busy[k - 1, 1] = end
        return count
    if after:
        busy[k, 0] = start
        return count
    for j in range(count, k, -1):
        busy[j] = busy[j - 1]
    busy[k, 0], busy[k, 1] = start, end
    return count + 1
