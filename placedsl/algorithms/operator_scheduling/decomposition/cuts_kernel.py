"""Compiled: how much lies beside each node, and the places of all nodes along a path."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.arrays import Floats, Integers

#: So many nodes at a time are followed to their successors.
_AT_A_TIME = 64


@kernel(allocates=True)
def weight_beside(instance: SchedulingInstance, weight: Floats) -> Floats:
    """n: the total ``weight`` of the nodes that come neither before nor after each node (it itself does not count).

    Takes time in proportion to nodes times tensors and readers at worst, a fraction of that where few nodes lie beside
    one another, and memory in proportion to nodes.
    """
    nodes = instance.time.shape[0]
    beside = np.zeros(nodes)
    total = 0.0
    place = np.zeros(nodes, np.int64)
    for k in range(nodes):
        total += weight[k]
        place[instance.topological[k]] = k
    for v in range(nodes):
        beside[v] = total - weight[v]
    some, every = 1, 2  # of the nodes that are followed
    comes_after = np.zeros(nodes, np.int8)
    follows = np.zeros(
        (nodes, _AT_A_TIME), np.bool_
    )  # [v, i]: v comes after the i-th of them, where it does after some
    for first in range(0, nodes, _AT_A_TIME):
        count = min(_AT_A_TIME, nodes - first)
        together, after_all = 0.0, 0.0
        for i in range(count):
            together += weight[instance.topological[first + i]]
        for k in range(nodes):
            comes_after[k] = 0
        for k in range(first + 1, nodes):
            v = instance.topological[k]
            now = _followed(instance, v, place, first, count, comes_after, follows)
            comes_after[v] = now
            if now == every:
                beside[v] -= together
                after_all += weight[v]
            elif now == some:
                for i in range(count):
                    if follows[v, i]:
                        u = instance.topological[first + i]
                        beside[v] -= weight[u]
                        beside[u] -= weight[v]
        for i in range(count):
            beside[instance.topological[first + i]] -= after_all
    return beside


@kernel(no_cpython_wrapper=True)
def _followed(
    instance: SchedulingInstance, v: int, place: Integers, first: int, count: int, comes_after: np.ndarray,
    follows: np.ndarray,
) -> int:  # fmt: skip
    """Whether a node comes after all of the ``count`` nodes at places from ``first`` (2), some (1) or none (0)."""
    for j in range(instance.input_start[v], instance.input_start[v + 1]):
        if comes_after[instance.producer[instance.input[j]]] == 2:
            return 2
    found = False
    for j in range(instance.input_start[v], instance.input_start[v + 1]):
        u = instance.producer[instance.input[j]]
        itself = first <= place[u] < first + count
        if comes_after[u] == 0 and not itself:
            continue
        if not found:
            for i in range(count):
                follows[v, i] = False
            found = True
        if comes_after[u] == 1:
            for i in range(count):
                follows[v, i] |= follows[u, i]
        if itself:
            follows[v, place[u] - first] = True
    if not found:
        return 0
    for i in range(count):
        if not follows[v, i]:
            return 1
    return 2


@kernel(allocates=True)
def widest_path(instance: SchedulingInstance, worth: Floats) -> Integers:
    """The nodes of the path with the largest sum of ``worth``, n numbers of at least 0, in its order."""
    nodes = instance.time.shape[0]
    most = np.zeros(nodes)
    came = np.full(nodes, -1, np.int64)
    end = -1
    for v in instance.topological:
        for j in range(instance.input_start[v], instance.input_start[v + 1]):
            u = instance.producer[instance.input[j]]
            if most[u] > most[v] or came[v] < 0:
                most[v], came[v] = most[u], u
        most[v] += worth[v]
        if end < 0 or most[v] > most[end]:
            end = v
    count = 0
    v = end
    while v >= 0:
        count += 1
        v = came[v]
    path = np.empty(count, np.int64)
    v = end
    while v >= 0:
        count -= 1
        path[count] = v
        v = came[v]
    return path


@kernel(allocates=True)
def places_along(instance: SchedulingInstance, path: Integers) -> tuple[Integers, Integers]:
    """n and n numbers: the last node of a path that comes before each node (-1: none), and the first that comes after
    (the length of the path: none), as places in the path.

    ``path``: nodes of which each comes after those before it, whether or not a tensor joins them.
    """
    nodes = instance.time.shape[0]
    place = np.full(nodes, -1, np.int64)
    for k in range(len(path)):
        place[path[k]] = k
    last = np.full(nodes, -1, np.int64)
    first = np.full(nodes, len(path), np.int64)
    for v in instance.topological:
        for j in range(instance.input_start[v], instance.input_start[v + 1]):
            u = instance.producer[instance.input[j]]
            last[v] = max(last[v], last[u], place[u])
    for k in range(nodes - 1, -1, -1):
        v = instance.topological[k]
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                w = instance.reader[j]
                first[v] = min(first[v], first[w])
                if place[w] >= 0:
                    first[v] = min(first[v], place[w])
    return last, first
