"""Compiled: the exact latency of subgraph calls: the duration of each call, and the longest chain of calls and host
nodes.

An evaluation reads each node and each reading of a tensor twice.  On one core of a usual machine that takes from 5 ns
(all data in the caches) to 10 ns for each of them: 2 to 15 microseconds for graphs of 200 to 1,600 nodes and edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Floats, Integers


class CallInstance(NamedTuple):
    """n nodes in u units that share a device each, t tensors, D devices.

    ``time``        D x n seconds (inf: not supported); ``transfer``: D x t seconds between the device and RAM
    ``memory``      n bytes; ``capacity``: D bytes (inf: no limit), the tolerance included; ``host``: D flags
    ``slots``       how many calls an accelerator can make; node v is at place ``device * slots + slot - 1``
    ``unit``        n units; the nodes of unit i are ``unit_node[unit_start[i]:unit_start[i + 1]]``
    ``producer``    t nodes; ``reader[read_start[t]:read_start[t + 1]]``: the readers of tensor t, each once
    ``made``        the tensors that node v writes, from ``made_start[v]`` to ``made_start[v + 1]``
    ``taken``       the tensors that node v reads, from ``taken_start[v]`` to ``taken_start[v + 1]``
    ``order``       n: a topological order of the nodes; ``rank``: the position of each in it
    """

    time: Floats
    transfer: Floats
    memory: Floats
    capacity: Floats
    host: Booleans
    slots: int
    unit: Integers
    unit_start: Integers
    unit_node: Integers
    producer: Integers
    read_start: Integers
    reader: Integers
    made_start: Integers
    made: Integers
    taken_start: Integers
    taken: Integers
    order: Integers
    rank: Integers


class Scratch(NamedTuple):
    """Memory for one evaluation.  The first P entries are for places (calls), the n that follow for host nodes."""

    length: Floats
    ready: Floats
    waits: Integers
    follows: Integers
    first: Integers
    later: Integers
    stamp: Integers
    queue: Integers


def new_scratch(instance: CallInstance) -> Scratch:
    """Memory for evaluations of one instance."""
    nodes, places = len(instance.unit), len(instance.capacity) * instance.slots
    return Scratch(
        np.empty(places), np.empty(places + nodes), np.empty(places + nodes, dtype=np.int64),
        np.empty(places, dtype=np.int64), np.empty(places, dtype=np.int64), np.empty(nodes, dtype=np.int64),
        np.empty(places, dtype=np.int64), np.empty(places + nodes, dtype=np.int64),
    )  # fmt: skip


@kernel()
def evaluate(instance, place, scratch):  # type: ignore[no-untyped-def]
    """The latency in seconds of places (n) that are supported; inf if calls wait in a cycle.  Memory is not checked."""
    vertices = _gather(instance, place, scratch)
    _count(instance, place, scratch)
    return _longest(instance, place, scratch, vertices)


@kernel(no_cpython_wrapper=True)
def _gather(instance, place, scratch):  # type: ignore[no-untyped-def]
    """Collect the members and computing times of the calls; returns how many calls and host nodes there are."""
    q, nodes, places = instance.slots, len(place), len(scratch.length)
    scratch.length[:] = 0.0
    scratch.first[:] = -1
    scratch.follows[:] = -1
    scratch.stamp[:] = -1
    scratch.waits[:] = 0
    scratch.ready[:] = 0.0
    vertices = 0
    for v in range(nodes):
        p = place[v]
        if instance.host[p // q]:
            vertices += 1
        else:
            if scratch.first[p] < 0:
                vertices += 1
            scratch.length[p] += instance.time[p // q, v]
            scratch.later[v] = scratch.first[p]
            scratch.first[p] = v
    if q > 1:
        for d in range(places // q):
            last = -1
            for p in range(d * q, d * q + q):
                if scratch.first[p] >= 0:
                    if last >= 0:
                        scratch.follows[last] = p
                        scratch.waits[p] += 1
                    last = p
    return vertices


@kernel()
def _count(instance, place, scratch):  # type: ignore[no-untyped-def]
    """Add the transfers to the durations of the calls, and count what each call and each host node waits for."""
    q, places = instance.slots, len(scratch.length)
    for t in range(len(instance.producer)):
        p = place[instance.producer[t]]
        outside = False
        for j in range(instance.read_start[t], instance.read_start[t + 1]):
            r = instance.reader[j]
            b = place[r]
            if instance.host[b // q]:
                scratch.waits[places + r] += 1
                outside = True
            elif b != p:
                outside = True
                if scratch.stamp[b] != t:
                    scratch.stamp[b] = t
                    scratch.length[b] += instance.transfer[b // q, t]
                    scratch.waits[b] += 1
        if outside and not instance.host[p // q]:
            scratch.length[p] += instance.transfer[p // q, t]


@kernel(no_cpython_wrapper=True)
def _longest(instance, place, scratch, vertices):  # type: ignore[no-untyped-def]
    """The latest finish, visiting calls and host nodes in the order in which they can start."""
    q, places, tensors = instance.slots, len(scratch.length), len(instance.producer)
    head = tail = 0
    for p in range(places):
        if scratch.first[p] >= 0 and scratch.waits[p] == 0:
            scratch.queue[tail] = p
            tail += 1
    for v in range(len(place)):
        if instance.host[place[v] // q] and scratch.waits[places + v] == 0:
            scratch.queue[tail] = places + v
            tail += 1
    latency = 0.0
    while head < tail:
        x = scratch.queue[head]
        head += 1
        call = x < places
        v = scratch.first[x] if call else x - places
        finish = scratch.ready[x] + (scratch.length[x] if call else instance.time[place[v] // q, v])
        latency = max(latency, finish)
        here = x if call else -1
        if call and scratch.follows[x] >= 0:
            b = scratch.follows[x]
            scratch.ready[b] = max(scratch.ready[b], finish)
            scratch.waits[b] -= 1
            if scratch.waits[b] == 0:
                scratch.queue[tail] = b
                tail += 1
        while v >= 0:
            for i in range(instance.made_start[v], instance.made_start[v + 1]):
                t = instance.made[i]
                for j in range(instance.read_start[t], instance.read_start[t + 1]):
                    r = instance.reader[j]
                    y = place[r]
                    if instance.host[y // q]:
                        y = places + r
                    elif y == here or scratch.stamp[y] == tensors + t:
                        continue
                    else:
                        scratch.stamp[y] = tensors + t
                    scratch.ready[y] = max(scratch.ready[y], finish)
                    scratch.waits[y] -= 1
                    if scratch.waits[y] == 0:
                        scratch.queue[tail] = y
                        tail += 1
            v = scratch.later[v] if call else -1
    return latency if head == vertices else np.inf
