"""Orders of a directed graph given by its edges: topological order, components, cycles."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from placedsl.arrays import Integers


def topological(nodes: int, source: Integers, target: Integers) -> Integers | None:
    """A topological order (node positions), or None when there is a cycle.  Ties by position."""
    if (source < target).all():
        return np.arange(nodes)  # the order that they have, as in most files; nothing need be imported
    start, later = (side.tolist() for side in csr(source, target, nodes))
    waiting = np.bincount(target, minlength=nodes).tolist()
    ready = [u for u in range(nodes) if waiting[u] == 0]
    for u in ready:  # grows on the way
        for v in later[start[u] : start[u + 1]]:
            waiting[v] -= 1
            if waiting[v] == 0:
                ready.append(v)
    return np.array(ready, dtype=np.int64) if len(ready) == nodes else None


def turns(nodes: int, source: Integers, target: Integers) -> Integers:
    """When each node of an acyclic graph has its turn: always the first, by position, with nothing left before it."""
    start, later = (side.tolist() for side in csr(source, target, nodes))
    waiting = np.bincount(target, minlength=nodes).tolist()
    ready = [u for u in range(nodes) if waiting[u] == 0]
    out = np.zeros(nodes, dtype=np.int64)
    for number in range(nodes):
        u = heapq.heappop(ready)
        out[u] = number
        for v in later[start[u] : start[u + 1]]:
            waiting[v] -= 1
            if waiting[v] == 0:
                heapq.heappush(ready, v)
    return out


def cycle(nodes: int, source: Integers, target: Integers) -> list[int]:
    """The nodes of one cycle in its order, or nothing.  Loops and edges of -1 must have been removed."""
    if topological(nodes, source, target) is not None:
        return []
    import networkx as nx

    graph = nx.DiGraph(list(zip(source.tolist(), target.tolist(), strict=True)))
    return [u for u, _ in nx.find_cycle(graph)]


def components(nodes: int, source: Integers, target: Integers) -> Integers:
    """The strongly connected component of each node, numbered by first member.   Tarjan 1972."""
    start, later = (side.tolist() for side in csr(source, target, nodes))
    label, met, low = [-1] * nodes, [-1] * nodes, [0] * nodes
    at = start[:-1]
    waiting: list[int] = []
    count = 0
    for root in range(nodes):
        path = [root] if met[root] < 0 else []
        while path:
            u = path[-1]
            if met[u] < 0:
                met[u] = low[u] = count
                count += 1
                waiting.append(u)
            if at[u] < start[u + 1]:
                v = later[at[u]]
                at[u] += 1
                if met[v] < 0:
                    path.append(v)
                elif label[v] < 0:
                    low[u] = min(low[u], met[v])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[u])
            if low[u] == met[u]:
                while label[u] < 0:
                    label[waiting.pop()] = u
    return renumbered(np.array(label, dtype=np.int64))


def csr(key: Integers, value: np.ndarray, keys: int) -> tuple[Integers, np.ndarray]:
    """The values by key 0..keys-1, in their order: those of key k are ``values[start[k]:start[k + 1]]``."""
    order = np.argsort(key, kind="stable")
    return np.searchsorted(key[order], np.arange(keys + 1)), value[order]


def rows_of(start: Integers, keys: Integers) -> tuple[Integers, Integers]:
    """The rows ``keys`` of a :func:`csr` list, one after another: the position in ``keys`` and that in the values."""
    count = np.diff(start)[keys]
    position = np.repeat(np.arange(len(keys)), count)
    return position, np.arange(len(position)) + np.repeat(start[keys] - (np.cumsum(count) - count), count)


def joined_partitions(nodes: int, partitions: Sequence[Integers]) -> Integers:
    """Nodes that have a label in common in any of the partitions are one; numbered by first member."""
    part, numbered = np.arange(nodes), [np.unique(labels, return_inverse=True)[1] for labels in partitions]
    while True:
        known = part
        for labels in numbered:
            first = np.full(int(labels.max(initial=-1)) + 1, nodes, dtype=np.int64)
            np.minimum.at(first, labels, part)
            part = first[labels]
        if len(partitions) < 2 or (part == known).all():
            return renumbered(part)


def renumbered(labels: np.ndarray) -> Integers:
    """The same partition with labels 0.. in order of first occurrence."""
    _, first, back = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[back.ravel()]


def ranks(nodes: int, source: Integers, target: Integers) -> list[int]:
    """Where each node of an acyclic graph stands in a topological order, from 0."""
    order = topological(nodes, source, target)
    assert order is not None, "graphs are acyclic"
    out = [0] * nodes
    for place, v in enumerate(order.tolist()):
        out[v] = place
    return out
