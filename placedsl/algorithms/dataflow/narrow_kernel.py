"""Compiled: which devices and which moves a limit on the latency leaves."""

from __future__ import annotations

import numpy as np
from numba import njit

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.graph.graph import Booleans, Floats, Integers


@njit(cache=True)
def single(flow: Flow) -> Integers:
    """n: the one device that a node may be on, -1 where there are several."""
    nodes, devices = flow.time.shape
    out = np.full(nodes, -1, np.int64)
    for v in range(nodes):
        count = 0
        for d in range(devices):
            if flow.time[v, d] < np.inf:
                count += 1
                out[v] = d
        if count != 1:
            out[v] = -1
    return out


@njit(cache=True)
def _work(flow: Flow, only: Integers, kin: Integers, low: int, high: int, v: int, d: int, key: Floats) -> float:
    """The most that some nodes of ``kin`` on the device d of v take one after the other: least key plus their times.

    Of ``kin`` those count that are on d if v is: of its unit, or with no other device.  ``key`` n: how early they
    begin, or how much follows them.
    """
    keys, times = np.empty(high - low), np.empty(high - low)
    count = 0
    for i in range(low, high):
        w = kin[i]
        if flow.time[w, d] > 0.0 and (flow.unit[w] == flow.unit[v] or only[w] == d) and flow.time[w, d] < np.inf:
            keys[count], times[count] = key[w], flow.time[w, d]
            count += 1
    most, total = 0.0, 0.0
    for k in np.argsort(-keys[:count]):
        total += times[k]
        most = max(most, keys[k] + total)
    return float(most)


@njit(cache=True)
def earliest(flow: Flow, only: Integers, before_start: Integers, before: Integers) -> Floats:
    """n x D: when nodes begin at least, inf where they cannot be: paths, and the work before them on their device.

    ``before`` the nodes that come before each, from ``before_start`` (none at all: only paths count).
    """
    nodes, devices = flow.time.shape
    out = np.full((nodes, devices), np.inf)
    for v in flow.topological:
        for d in range(devices):
            if flow.time[v, d] == np.inf:
                continue
            ready = 0.0
            for i in range(flow.input_start[v], flow.input_start[v + 1]):
                tensor = flow.input[i]
                u = flow.producer[tensor]
                first = np.inf
                for a in range(devices):
                    if flow.time[u, a] < np.inf and (a == d or flow.unit[u] != flow.unit[v]):
                        moving = 0.0 if a == d else flow.given[tensor, a, d]
                        first = min(first, out[u, a] + flow.time[u, a] + moving)
                ready = max(ready, first)
            if flow.sequential and len(before) > 0 and ready < np.inf:
                low, high = before_start[v], before_start[v + 1]
                ready = max(ready, _work(flow, only, before, low, high, v, d, out[:, d]))
            out[v, d] = ready
    return out


@njit(cache=True)
def following(flow: Flow, only: Integers, after_start: Integers, after: Integers) -> Floats:
    """n x D: how much follows a node's end at least, inf where it cannot be; ``after`` the nodes that come after
    each."""
    nodes, devices = flow.time.shape
    out = np.full((nodes, devices), np.inf)
    for k in range(nodes - 1, -1, -1):
        v = flow.topological[k]
        for d in range(devices):
            if flow.time[v, d] == np.inf:
                continue
            left = 0.0
            for i in range(flow.output_start[v], flow.output_start[v + 1]):
                tensor = flow.output[i]
                for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                    w = flow.reader[j]
                    least = np.inf
                    for b in range(devices):
                        if flow.time[w, b] < np.inf and (b == d or flow.unit[w] != flow.unit[v]):
                            moving = 0.0 if b == d else flow.given[tensor, d, b]
                            least = min(least, moving + flow.time[w, b] + out[w, b])
                    left = max(left, least)
            if flow.sequential and len(after) > 0 and left < np.inf:
                low, high = after_start[v], after_start[v + 1]
                left = max(left, _work(flow, only, after, low, high, v, d, out[:, d]))
            out[v, d] = left
    return out


@njit(cache=True)
def _unit_takes(flow: Flow, unit: int, d: int, early: Floats, late: Floats) -> float:
    """What the nodes of a unit take one after the other with what comes before and after them."""
    low, high = flow.member_start[unit], flow.member_start[unit + 1]
    members = flow.member[low:high]
    most = 0.0
    keys = np.empty(len(members))
    for k in range(len(members)):
        keys[k] = early[members[k], d]
    total, last = 0.0, np.inf
    for k in np.argsort(-keys):
        if flow.time[members[k], d] > 0.0:
            total += flow.time[members[k], d]
            last = min(last, late[members[k], d])
            most = max(most, keys[k] + total + last)
    for k in range(len(members)):
        keys[k] = late[members[k], d]
    total, first = 0.0, np.inf
    for k in np.argsort(-keys):
        if flow.time[members[k], d] > 0.0:
            total += flow.time[members[k], d]
            first = min(first, early[members[k], d])
            most = max(most, keys[k] + total + first)
    return most


@njit(cache=True)
def _drop_devices(flow: Flow, early: Floats, late: Floats, limit: float) -> tuple[bool, bool]:
    """Devices on which a unit would be too late; whether there were any, and whether each has one left."""
    devices = flow.time.shape[1]
    changed = False
    for unit in range(len(flow.member_start) - 1):
        low, high = flow.member_start[unit], flow.member_start[unit + 1]
        left = 0
        for d in range(devices):
            fits, some = True, False
            for m in range(low, high):
                v = flow.member[m]
                some = some or flow.time[v, d] < np.inf
                fits = fits and early[v, d] + flow.time[v, d] + late[v, d] <= limit
            if fits and flow.sequential and high - low > 1:
                fits = _unit_takes(flow, unit, d, early, late) <= limit
            if fits:
                left += 1
            elif some:
                changed = True
                for m in range(low, high):
                    flow.time[flow.member[m], d] = np.inf
        if left == 0:
            return True, False
    return changed, True


@njit(cache=True)
def _drop_moves(flow: Flow, early: Floats, late: Floats, limit: float, apart: Booleans) -> bool:
    """Moves after which every reader would be too late; whether there were any.  ``apart`` is filled in."""
    devices = flow.time.shape[1]
    changed = False
    for tensor in range(len(flow.producer)):
        u = flow.producer[tensor]
        low, high = flow.reader_start[tensor], flow.reader_start[tensor + 1]
        for j in range(low, high):
            apart[j] = False
        for a in range(devices):
            for b in range(devices):
                if a == b or flow.given[tensor, a, b] == np.inf:
                    continue
                possible = False
                for j in range(low, high):
                    w = flow.reader[j]
                    if flow.time[u, a] == np.inf or flow.time[w, b] == np.inf or flow.unit[u] == flow.unit[w]:
                        continue
                    takes = early[u, a] + flow.time[u, a] + flow.given[tensor, a, b] + flow.time[w, b] + late[w, b]
                    if takes <= limit:
                        apart[j] = True
                        possible = True
                if not possible:
                    flow.given[tensor, a, b] = np.inf
                    changed = True
    return changed


@njit(cache=True)
def narrow(
    flow: Flow, limit: float, before_start: Integers, before: Integers, after_start: Integers, after: Integers,
    apart: Booleans,
) -> bool:  # fmt: skip
    """Set to inf what no schedule within the limit can have, in ``flow.time`` and ``flow.given``, until nothing
    changes; whether something is left.  ``apart`` a flag a reader: it can be on another device than the maker."""
    while True:
        only = single(flow)
        early = earliest(flow, only, before_start, before)
        late = following(flow, only, after_start, after)
        fewer, left = _drop_devices(flow, early, late, limit)
        if not left:
            return False
        if not _drop_moves(flow, early, late, limit, apart) and not fewer:
            return True


@njit(cache=True)
def all_reached(flow: Flow) -> Booleans:
    """n x n: which nodes come before which: [v, w] says that w comes before v."""
    nodes = flow.time.shape[0]
    out = np.zeros((nodes, nodes), np.bool_)
    for v in flow.topological:
        for i in range(flow.input_start[v], flow.input_start[v + 1]):
            u = flow.producer[flow.input[i]]
            out[v, u] = True
            for w in range(nodes):
                if out[u, w]:
                    out[v, w] = True
    return out
