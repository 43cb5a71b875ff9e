"""Compiled: list scheduling, which takes one ready node after the other and chooses a device for it.

Two methods: the earliest start of all pairs of a ready node and a device (ETF), or nodes by rank, each on the device
where it ends first, idle gaps included (HEFT).
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import departure, move_time, occupy
from placedsl.arrays import Booleans, Floats, Integers


@kernel(no_cpython_wrapper=True)
def ready_time(
    instance: SchedulingInstance, device: Integers, ended: Floats, arrived: Floats, free: Floats, v: int, d: int,
    queued: bool, send: bool = False,
) -> float:  # fmt: skip
    """When all inputs of ``v`` can be on device ``d``; if ``queued``, each transfer waits for its resources.

    With ``send`` the transfers are made, so that later ones wait for them.
    """
    ready = 0.0
    for i in range(instance.input_start[v], instance.input_start[v + 1]):
        tensor = instance.input[i]
        u = instance.producer[tensor]
        if device[u] == d:
            ready = max(ready, ended[u])
            continue
        there = arrived[tensor, d]
        if there == np.inf:
            duration = move_time(instance, tensor, device[u], d)
            leaves = ended[u]
            if queued:
                leaves = departure(instance, free, device[u], d, leaves, duration)
            there = leaves + duration
            if send:
                arrived[tensor, d] = there
                if queued and duration > 0.0:
                    occupy(instance, free, device[u], d, there)
        ready = max(ready, there)
    return ready


# Longer than 80 lines: one loop over the nodes whose parts share most of its variables.
@kernel(allocates=True)
def earliest_first(
    instance: SchedulingInstance,
    allowed: Booleans,
    size: Floats,
    memory_limit: Floats,
    rank: Floats,
    favourite: Integers,
    reach: float,
    queued: bool,
) -> tuple[bool, Integers, Floats]:
    """ETF: of all pairs of a ready node and a device, always the one that starts first.

    Ties go to the node of largest ``rank``, then to the earliest end.  ``allowed`` n x D; ``size`` u bytes within
    ``memory_limit`` (D).  ``favourite`` n: a node's favourite child (-1: none); for ``reach`` seconds after the node
    has ended, its device is reserved for that child and for nodes that could start anywhere.  Returns whether all nodes
    found room, and the device and the start of each node.
    """
    nodes, devices = instance.time.shape
    tensors = len(instance.producer)
    device = np.full(nodes, -1, np.int64)
    begun, ended = np.zeros(nodes), np.zeros(nodes)
    arrived = np.full((tensors, devices), np.inf)
    free = np.zeros(devices + instance.resources)
    held = np.zeros(devices)
    unit_device = np.full(len(instance.member_start) - 1, -1, np.int64)
    last = np.full(devices, -1, np.int64)
    waiting = np.zeros(nodes, np.int64)
    ready = np.empty(nodes, np.int64)
    count = 0
    for v in range(nodes):
        waiting[v] = instance.input_start[v + 1] - instance.input_start[v]
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
            unit = instance.unit[v]
            anywhere = 0.0
            if queued:
                for d in range(devices):
                    data[v, d] = ready_time(instance, device, ended, arrived, free, v, d, True)
            for d in range(devices):
                if allowed[v, d]:
                    anywhere = max(anywhere, data[v, d])
            for d in range(devices):
                if not allowed[v, d] or data[v, d] == np.inf:
                    continue
                if unit_device[unit] >= 0 and unit_device[unit] != d:
                    continue
                if unit_device[unit] < 0 and held[d] + size[unit] > memory_limit[d]:
                    continue
                start = data[v, d]
                if instance.sequential and instance.time[v, d] > 0.0:
                    start = max(start, free[d])
                if last[d] >= 0 and favourite[last[d]] >= 0:
                    child = favourite[last[d]]
                    kept = ended[last[d]] + reach
                    if child != v and device[child] < 0 and start < kept and start < anywhere:
                        start = kept
                end = start + instance.time[v, d]
                if best < 0 or start < best_start or (
                    start == best_start
                    and (rank[v] > rank[best] or (rank[v] == rank[best] and end < best_end))
                ):  # fmt: skip
                    best, best_start, best_end, best_device = v, start, end, d
        if best < 0:
            return False, device, begun
        v, d = best, best_device
        start = ready_time(instance, device, ended, arrived, free, v, d, queued, True)
        if instance.sequential and instance.time[v, d] > 0.0:
            start = max(start, free[d])
            free[d] = start + instance.time[v, d]
        if unit_device[instance.unit[v]] < 0:
            unit_device[instance.unit[v]] = d
            held[d] += size[instance.unit[v]]
        device[v], begun[v], ended[v], last[d] = d, start, start + instance.time[v, d], v
        for k in range(count):
            if ready[k] == v:
                count -= 1
                ready[k] = ready[count]
                break
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                w = instance.reader[j]
                waiting[w] -= 1
                if waiting[w] == 0:
                    ready[count] = w
                    count += 1
                    for e in range(devices):
                        data[w, e] = ready_time(instance, device, ended, arrived, free, w, e, False)
    return True, device, begun


@kernel(allocates=True)
def by_rank(
    instance: SchedulingInstance, order: Integers, allowed: Booleans, size: Floats, memory_limit: Floats, queued: bool
) -> tuple[bool, Integers, Floats]:
    """HEFT: nodes in the given ``order``, each on the device where it ends first, in the first gap that is long
    enough.

    Returns whether all nodes found a device, and the device and the start of each node.
    """
    nodes, devices = instance.time.shape
    device = np.full(nodes, -1, np.int64)
    begun, ended = np.zeros(nodes), np.zeros(nodes)
    arrived = np.full((len(instance.producer), devices), np.inf)
    free = np.zeros(devices + instance.resources)
    held = np.zeros(devices)
    unit_device = np.full(len(instance.member_start) - 1, -1, np.int64)
    # Busy intervals of each device, adjacent ones merged: from, until.
    busy = np.empty((devices, nodes + 1, 2))
    intervals = np.zeros(devices, np.int64)
    for v in order:
        unit = instance.unit[v]
        best, best_end, best_start = -1, np.inf, np.inf
        for d in range(devices):
            if not allowed[v, d] or (unit_device[unit] >= 0 and unit_device[unit] != d):
                continue
            if unit_device[unit] < 0 and held[d] + size[unit] > memory_limit[d]:
                continue
            start = ready_time(instance, device, ended, arrived, free, v, d, queued)
            if instance.sequential and instance.time[v, d] > 0.0:
                start = _gap(busy[d], intervals[d], start, instance.time[v, d])
            if start + instance.time[v, d] < best_end:
                best, best_end, best_start = d, start + instance.time[v, d], start
        if best < 0:
            return False, device, begun
        d = best
        ready_time(instance, device, ended, arrived, free, v, d, queued, True)
        if instance.sequential and instance.time[v, d] > 0.0:
            intervals[d] = _insert(busy[d], intervals[d], best_start, best_end)
        if unit_device[unit] < 0:
            unit_device[unit] = d
            held[d] += size[unit]
        device[v], begun[v], ended[v] = d, best_start, best_end
    return True, device, begun


@kernel()
def _gap(busy: Floats, count: int, ready: float, duration: float) -> float:
    """The first time from ``ready`` on at which a device is idle for ``duration`` seconds."""
    low, high = 0, count
    while low < high:  # the first interval that ends after ready
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


@kernel(no_cpython_wrapper=True, allocates=True)
def _insert(busy: Floats, count: int, start: float, end: float) -> int:
    """Add a busy interval; returns the new number of intervals."""
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
