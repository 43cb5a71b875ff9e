"""Initial placements for the search: all nodes on a host, or accelerators filled in topological order."""

from __future__ import annotations

import heapq

import numpy as np

from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance
from placedsl.arrays import Integers


def all_on_host(instance: CallInstance) -> Integers | None:
    """Places (n) with all nodes on the host that takes the least time in total (None: no host supports them all)."""
    hosts = np.flatnonzero(instance.host & (instance.memory.sum() <= instance.capacity))
    total = instance.time[hosts].sum(axis=1)
    if not len(hosts) or not np.isfinite(total.min()):
        return None
    return np.full(len(instance.unit), hosts[int(np.argmin(total))] * instance.slots, dtype=np.int64)


def fill_accelerators(instance: CallInstance, rng: np.random.Generator | None) -> Integers | None:
    """Places (n) with units in topological order on one accelerator after the other, the rest on hosts (None: no room).

    With ``rng`` order and devices are random, and an accelerator is sometimes left early.  All slots are 1.
    """
    place = np.full(len(instance.unit), -1, dtype=np.int64)
    accelerators, hosts = np.flatnonzero(~instance.host), np.flatnonzero(instance.host)
    leave = 0.0
    if rng is not None:
        accelerators = rng.permutation(accelerators)
        leave = float(rng.choice([0.0, 0.01, 0.05]))
    waiting = accelerators.tolist()
    held = np.zeros(len(instance.capacity))
    current = waiting.pop(0) if waiting else -1
    for u in _unit_order(instance, rng):
        nodes = instance.unit_node[instance.unit_start[u] : instance.unit_start[u + 1]]
        memory = instance.memory[nodes].sum()
        supported = np.isfinite(instance.time[:, nodes]).all(axis=1) & (held + memory <= instance.capacity)
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
            chosen = int(able[np.argmin(instance.time[able][:, nodes].sum(axis=1))])
        held[chosen] += memory
        place[nodes] = chosen * instance.slots
    return place


def _unit_order(instance: CallInstance, rng: np.random.Generator | None) -> list[int]:
    """The units by their first node in a topological order of the nodes: the graph's, or a random one."""
    if rng is None:
        nodes = instance.order.tolist()
    else:
        nodes, count = [], len(instance.unit)
        waits = np.diff(instance.taken_start).tolist()
        chance, along = rng.random(count), rng.random() < 0.7
        ready = [(chance[v], v) for v in range(count) if not waits[v]]
        heapq.heapify(ready)
        while ready:
            _, v = heapq.heappop(ready)
            nodes.append(v)
            for t in instance.made[instance.made_start[v] : instance.made_start[v + 1]].tolist():
                for r in instance.reader[instance.read_start[t] : instance.read_start[t + 1]].tolist():
                    waits[r] -= 1
                    if not waits[r]:
                        heapq.heappush(ready, (chance[r] - len(nodes) if along else chance[r], r))
    return list(dict.fromkeys(instance.unit[nodes].tolist()))
