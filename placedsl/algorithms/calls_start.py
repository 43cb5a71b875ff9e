"""Where the search for schedules of calls begins: everything on a host, or accelerators filled in topological order."""

from __future__ import annotations

import heapq

import numpy as np

from placedsl.algorithms.calls_kernel import Calls
from placedsl.graph.graph import Integers


def on_hosts(calls: Calls) -> Integers | None:
    """All nodes on the host that takes the least time in all (None: no host runs them all)."""
    hosts = np.flatnonzero(calls.host & (calls.memory.sum() <= calls.capacity))
    total = calls.time[hosts].sum(axis=1)
    if not len(hosts) or not np.isfinite(total.min()):
        return None
    return np.full(len(calls.unit), hosts[int(np.argmin(total))] * calls.pieces, dtype=np.int64)


def filled(calls: Calls, rng: np.random.Generator | None) -> Integers | None:
    """Units in topological order, one accelerator filled after the other, the rest on hosts (None: no room).

    With ``rng`` order and devices are random, and an accelerator is left early now and then.  Pieces are 1.
    """
    place = np.full(len(calls.unit), -1, dtype=np.int64)
    accelerators, hosts = np.flatnonzero(~calls.host), np.flatnonzero(calls.host)
    leave = 0.0
    if rng is not None:
        accelerators = rng.permutation(accelerators)
        leave = float(rng.choice([0.0, 0.01, 0.05]))
    waiting = accelerators.tolist()
    held = np.zeros(len(calls.capacity))
    current = waiting.pop(0) if waiting else -1
    for u in _order(calls, rng):
        nodes = calls.unit_node[calls.unit_start[u] : calls.unit_start[u + 1]]
        memory = calls.memory[nodes].sum()
        supported = np.isfinite(calls.time[:, nodes]).all(axis=1) & (held + memory <= calls.capacity)
        if supported[accelerators].any() or not len(hosts):
            if rng is not None and rng.random() < leave and waiting:
                current = waiting.pop(0)
            while current >= 0 and not supported[current]:
                current = waiting.pop(0) if waiting else -1
        chosen = current
        if chosen < 0 or not supported[chosen]:
            able = hosts[supported[hosts]]
            if not len(able):
                return None
            chosen = int(able[np.argmin(calls.time[able][:, nodes].sum(axis=1))])
        held[chosen] += memory
        place[nodes] = chosen * calls.pieces
    return place


def _order(calls: Calls, rng: np.random.Generator | None) -> list[int]:
    """Units in the order of their first node in a topological order of the nodes, random or that of the graph."""
    if rng is None:
        nodes = calls.order.tolist()
    else:
        nodes, count = [], len(calls.unit)
        waits = np.diff(calls.taken_start).tolist()
        chance, along = rng.random(count), rng.random() < 0.7
        ready = [(chance[v], v) for v in range(count) if not waits[v]]
        heapq.heapify(ready)
        while ready:
            _, v = heapq.heappop(ready)
            nodes.append(v)
            for t in calls.made[calls.made_start[v] : calls.made_start[v + 1]].tolist():
                for r in calls.reader[calls.read_start[t] : calls.read_start[t + 1]].tolist():
                    waits[r] -= 1
                    if not waits[r]:
                        heapq.heappush(ready, (chance[r] - len(nodes) if along else chance[r], r))
    return list(dict.fromkeys(calls.unit[nodes].tolist()))
