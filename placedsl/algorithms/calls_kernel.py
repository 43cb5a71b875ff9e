"""The exact latency of calls, compiled and cached: what a place's call takes, and the longest chain of calls and nodes.

An evaluation reads each node and each reading of a tensor twice.  On one core of a usual machine that takes from 5 ns
(the caches hold all) to 10 ns for each of them: 2 to 15 microseconds for graphs of 200 to 1,600 nodes and edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.graph.graph import Booleans, Floats, Integers


class Calls(NamedTuple):
    """n nodes in u units that share a device each, t tensors, D devices.

    ``time``        D x n running times (inf: not supported); ``transfer``: D x t between the device and RAM
    ``memory``      n sizes; ``capacity``: D limits (inf: none), the tolerance included; ``host``: D flags
    ``pieces``      how many calls an accelerator has at most; node v is at place ``device * pieces + piece - 1``
    ``unit``        n units; the nodes of unit i are ``unit_node[unit_start[i]:unit_start[i + 1]]``
    ``producer``    t nodes; ``reader[read_start[t]:read_start[t + 1]]``: who reads tensor t, each once
    ``made``        the tensors that node v makes, between ``made_start[v]`` and ``made_start[v + 1]``
    ``taken``       the tensors that node v reads, between ``taken_start[v]`` and ``taken_start[v + 1]``
    ``order``       a topological order of the nodes; ``rank``: where each is in it
    """

    time: Floats
    transfer: Floats
    memory: Floats
    capacity: Floats
    host: Booleans
    pieces: int
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
    """Room for one evaluation.  The first P entries are of places (calls), the n that follow of nodes (on hosts)."""

    length: Floats
    ready: Floats
    waits: Integers
    follows: Integers
    first: Integers
    later: Integers
    stamp: Integers
    queue: Integers


def scratch(calls: Calls) -> Scratch:
    """Room for evaluations of one problem."""
    nodes, places = len(calls.unit), len(calls.capacity) * calls.pieces
    return Scratch(
        np.empty(places), np.empty(places + nodes), np.empty(places + nodes, dtype=np.int64),
        np.empty(places, dtype=np.int64), np.empty(places, dtype=np.int64), np.empty(nodes, dtype=np.int64),
        np.empty(places, dtype=np.int64), np.empty(places + nodes, dtype=np.int64),
    )  # fmt: skip


@njit(cache=True)
def evaluate(calls, place, room):  # type: ignore[no-untyped-def]
    """The latency of places that are supported (memory is not looked at); inf where calls wait in a circle."""
    vertices = _gather(calls, place, room)
    _count(calls, place, room)
    return _longest(calls, place, room, vertices)


@njit(cache=True)
def _gather(calls, place, room):  # type: ignore[no-untyped-def]
    """Members and computing time of each call; how many calls and host nodes there are."""
    q, nodes, places = calls.pieces, len(place), len(room.length)
    room.length[:] = 0.0
    room.first[:] = -1
    room.follows[:] = -1
    room.stamp[:] = -1
    room.waits[:] = 0
    room.ready[:] = 0.0
    vertices = 0
    for v in range(nodes):
        p = place[v]
        if calls.host[p // q]:
            vertices += 1
        else:
            if room.first[p] < 0:
                vertices += 1
            room.length[p] += calls.time[p // q, v]
            room.later[v] = room.first[p]
            room.first[p] = v
    if q > 1:
        for d in range(places // q):
            last = -1
            for p in range(d * q, d * q + q):
                if room.first[p] >= 0:
                    if last >= 0:
                        room.follows[last] = p
                        room.waits[p] += 1
                    last = p
    return vertices


@njit(cache=True)
def _count(calls, place, room):  # type: ignore[no-untyped-def]
    """Add the transfers to the calls' lengths, and count what each call and each host node waits for."""
    q, places = calls.pieces, len(room.length)
    for t in range(len(calls.producer)):
        p = place[calls.producer[t]]
        outside = False
        for j in range(calls.read_start[t], calls.read_start[t + 1]):
            r = calls.reader[j]
            b = place[r]
            if calls.host[b // q]:
                room.waits[places + r] += 1
                outside = True
            elif b != p:
                outside = True
                if room.stamp[b] != t:
                    room.stamp[b] = t
                    room.length[b] += calls.transfer[b // q, t]
                    room.waits[b] += 1
        if outside and not calls.host[p // q]:
            room.length[p] += calls.transfer[p // q, t]


@njit(cache=True)
def _longest(calls, place, room, vertices):  # type: ignore[no-untyped-def]
    """The latest finish, in the order in which calls and host nodes can start."""
    q, places, tensors = calls.pieces, len(room.length), len(calls.producer)
    head = tail = 0
    for p in range(places):
        if room.first[p] >= 0 and room.waits[p] == 0:
            room.queue[tail] = p
            tail += 1
    for v in range(len(place)):
        if calls.host[place[v] // q] and room.waits[places + v] == 0:
            room.queue[tail] = places + v
            tail += 1
    latency = 0.0
    while head < tail:
        x = room.queue[head]
        head += 1
        call = x < places
        v = room.first[x] if call else x - places
        finish = room.ready[x] + (room.length[x] if call else calls.time[place[v] // q, v])
        latency = max(latency, finish)
        here = x if call else -1
        if call and room.follows[x] >= 0:
            b = room.follows[x]
            room.ready[b] = max(room.ready[b], finish)
            room.waits[b] -= 1
            if room.waits[b] == 0:
                room.queue[tail] = b
                tail += 1
        while v >= 0:
            for i in range(calls.made_start[v], calls.made_start[v + 1]):
                t = calls.made[i]
                for j in range(calls.read_start[t], calls.read_start[t + 1]):
                    r = calls.reader[j]
                    y = place[r]
                    if calls.host[y // q]:
                        y = places + r
                    elif y == here or room.stamp[y] == tensors + t:
                        continue
                    else:
                        room.stamp[y] = tensors + t
                    room.ready[y] = max(room.ready[y], finish)
                    room.waits[y] -= 1
                    if room.waits[y] == 0:
                        room.queue[tail] = y
                        tail += 1
            v = room.later[v] if call else -1
    return latency if head == vertices else np.inf
