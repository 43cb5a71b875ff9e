"""Compiled: heads and tails of nodes: how early each can start, and how much must follow its end.

Both come from longest paths with every predecessor or successor on its best device; where it is asked for, also from
the work that must run before or after a node on its own device.  Nothing waits for another device or a link.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import move_time
from placedsl.arrays import Booleans, Floats, Integers


class Reachability(NamedTuple):
    """The predecessors and the successors of each node, from ``…_start[v]`` to ``…_start[v + 1]`` (none: only paths
    count)."""

    before_start: Integers
    before: Integers
    after_start: Integers
    after: Integers


def paths_only(instance: SchedulingInstance) -> Reachability:
    """No predecessors or successors: heads and tails without the work term."""
    none = np.zeros(instance.nodes + 1, dtype=np.int64)
    return Reachability(none, none[:0], none, none[:0])


def earliest_end(instance: SchedulingInstance) -> Floats:
    """n: no schedule ends a node earlier, in seconds, by longest paths."""
    only = np.full(instance.nodes, -1, dtype=np.int64)
    return np.asarray((heads(instance, only, paths_only(instance)) + instance.time).min(axis=1))


@kernel(allocates=True)
def single_device(instance: SchedulingInstance) -> Integers:
    """n: the only device that a node may be on, -1 where there are several."""
    nodes, devices = instance.time.shape
    out = np.full(nodes, -1, np.int64)
    for v in range(nodes):
        count = 0
        for d in range(devices):
            if instance.time[v, d] < np.inf:
                count += 1
                out[v] = d
        if count != 1:
            out[v] = -1
    return out


@kernel(allocates=True)
def _work(
    instance: SchedulingInstance, only: Integers, others: Integers, low: int, high: int, v: int, d: int, key: Floats
) -> float:
    """The longest time that nodes of ``others[low:high]`` take one after the other on device ``d`` of node ``v``.

    Nodes count if they are on d whenever v is: in its unit, or without another device (``only``).  ``key`` n: how early
    they can start, or how much follows them; the result is the largest sum of a least key and the times.
    """
    keys, times = np.empty(high - low), np.empty(high - low)
    count = 0
    for i in range(low, high):
        w = others[i]
        shared = instance.unit[w] == instance.unit[v] or only[w] == d
        if instance.time[w, d] > 0.0 and shared and instance.time[w, d] < np.inf:
            keys[count], times[count] = key[w], instance.time[w, d]
            count += 1
    most, total = 0.0, 0.0
    for k in np.argsort(-keys[:count]):
        total += times[k]
        most = max(most, keys[k] + total)
    return float(most)


@kernel(allocates=True)
def heads(instance: SchedulingInstance, only: Integers, reach: Reachability) -> Floats:
    """n x D seconds: no schedule starts a node earlier on a device (inf: it cannot be there).

    ``only``: n, see :func:`single_device`.
    """
    nodes, devices = instance.time.shape
    out = np.full((nodes, devices), np.inf)
    for v in instance.topological:
        for d in range(devices):
            if instance.time[v, d] == np.inf:
                continue
            ready = 0.0
            for i in range(instance.input_start[v], instance.input_start[v + 1]):
                tensor = instance.input[i]
                u = instance.producer[tensor]
                first = np.inf
                for a in range(devices):
                    if instance.time[u, a] < np.inf and (a == d or instance.unit[u] != instance.unit[v]):
                        moving = 0.0 if a == d else move_time(instance, tensor, a, d)
                        first = min(first, out[u, a] + instance.time[u, a] + moving)
                ready = max(ready, first)
            if instance.sequential and len(reach.before) > 0 and ready < np.inf:
                low, high = reach.before_start[v], reach.before_start[v + 1]
                ready = max(ready, _work(instance, only, reach.before, low, high, v, d, out[:, d]))
            out[v, d] = ready
    return out


@kernel(allocates=True)
def tails(instance: SchedulingInstance, only: Integers, reach: Reachability, delivery: Floats) -> Floats:
    """n x D seconds: no schedule completes sooner after a node's end on a device (inf: it cannot be there).

    ``delivery``: n x D, what follows a node outside of the instance (zeros where there is nothing).
    """
    nodes, devices = instance.time.shape
    out = np.full((nodes, devices), np.inf)
    for k in range(nodes - 1, -1, -1):
        v = instance.topological[k]
        for d in range(devices):
            if instance.time[v, d] == np.inf:
                continue
            left = delivery[v, d]
            for i in range(instance.output_start[v], instance.output_start[v + 1]):
                tensor = instance.output[i]
                for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                    w = instance.reader[j]
                    least = np.inf
                    for b in range(devices):
                        if instance.time[w, b] < np.inf and (b == d or instance.unit[w] != instance.unit[v]):
                            moving = 0.0 if b == d else move_time(instance, tensor, d, b)
                            least = min(least, moving + instance.time[w, b] + out[w, b])
                    left = max(left, least)
            if instance.sequential and len(reach.after) > 0 and left < np.inf:
                low, high = reach.after_start[v], reach.after_start[v + 1]
                left = max(left, _work(instance, only, reach.after, low, high, v, d, out[:, d]))
            out[v, d] = left
    return out


@kernel(allocates=True)
def reachable(instance: SchedulingInstance, v: int, forward: bool) -> Booleans:
    """n flags: the successors of a node (``forward``), or its predecessors."""
    nodes = instance.time.shape[0]
    out = np.zeros(nodes, np.bool_)
    stack = np.empty(nodes, np.int64)
    stack[0] = v
    count = 1
    while count > 0:
        count -= 1
        u = stack[count]
        if forward:
            for i in range(instance.output_start[u], instance.output_start[u + 1]):
                tensor = instance.output[i]
                for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                    w = instance.reader[j]
                    if not out[w]:
                        out[w] = True
                        stack[count] = w
                        count += 1
        else:
            for i in range(instance.input_start[u], instance.input_start[u + 1]):
                w = instance.producer[instance.input[i]]
                if not out[w]:
                    out[w] = True
                    stack[count] = w
                    count += 1
    return out


@kernel(allocates=True)
def all_predecessors(instance: SchedulingInstance) -> Booleans:
    """n x n flags: [v, w] is true if w is a predecessor of v."""
    nodes = instance.time.shape[0]
    out = np.zeros((nodes, nodes), np.bool_)
    for v in instance.topological:
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            u = instance.producer[instance.input[i]]
            out[v, u] = True
            for w in range(nodes):
                if out[u, w]:
                    out[v, w] = True
    return out
