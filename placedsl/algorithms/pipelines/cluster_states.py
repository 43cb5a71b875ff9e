"""Machines with clusters, and how much of its members each cluster can have used: the states of the search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from placedsl.algorithms.pipelines.cluster_arrays import KindStates
from placedsl.algorithms.pipelines.clusters import ClusterKind, Clusters, DeviceTree, device_tree
from placedsl.algorithms.pipelines.replicated import Replication
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.arrays import Integers


class ClusteredMachine:
    """What the search is about: costs, clusters and their kinds, and how stages are shared.

    ``largest``: c the most devices of a class that are in one cluster, and in none within.
    """

    def __init__(self, costs: StageCostModel, clusters: Clusters, replication: Replication) -> None:
        self.costs, self.clusters = costs, clusters
        self.kinds, self.tree = device_tree(costs, clusters)
        # The machine itself is the last kind.
        inner = [kind.devices for kind in self.kinds[:-1]]
        self.largest = np.max([np.zeros(len(costs.classes.counts), dtype=np.int64), *inner], axis=0)
        self.replication = replace(
            replication,
            allowed=tuple(
                tuple(r for r in a if r == 1 or r <= n)
                for a, n in zip(replication.allowed, self.largest.tolist(), strict=True)
            ),
        )


def _all_by_state(kinds: Sequence[ClusterKind], x: int) -> bool:
    """Whether the states of a kind count all its members: that of the machine, which is last, and of what has clusters
    within."""
    return bool(kinds[x].parts) or x == len(kinds) - 1


def counted_members(kinds: Sequence[ClusterKind], x: int, main: int) -> Integers:
    """How many there are of each member that the states of a kind count."""
    devices = kinds[x].devices.copy()
    if not _all_by_state(kinds, x):
        devices[main] = 0
    return np.array([*devices, *(count for _, count in kinds[x].parts)], dtype=np.int64)


def kind_states(kinds: Sequence[ClusterKind], replication: Replication, main: int) -> KindStates:
    """The states of clusters; ``main`` is the main class of those that have no clusters within."""
    classes, parts = len(kinds[0].devices), max(len(kind.parts) for kind in kinds)
    number = np.zeros((len(kinds), classes + parts), dtype=np.int64)
    stride, part = np.zeros_like(number), np.full((len(kinds), parts), -1, dtype=np.int64)
    digits, used, first, mains = [], [], [0], []
    widest = max(int(kind.devices.max(initial=0)) for kind in kinds)
    allowed = np.zeros((len(kinds), classes, widest + 1), dtype=np.int64)
    for x, kind in enumerate(kinds):
        number[x, :classes] = kind.devices
        for k, (within, count) in enumerate(kind.parts):
            part[x, k], number[x, classes + k] = within, count
        mains.append(-1 if _all_by_state(kinds, x) else main)
        counted = np.zeros(classes + parts, dtype=np.int64)
        counted[: classes + len(kind.parts)] = counted_members(kinds, x, main)
        own = np.array(list(product(*(range(n + 1) for n in counted[::-1]))), dtype=np.int64)[:, ::-1]
        stride[x] = np.where(counted < number[x], 0, np.concatenate(([1], np.cumprod(counted + 1)[:-1])))
        table = replication.table(kind.devices.tolist())
        if x == len(kinds) - 1:  # devices that are in no cluster share no stage
            table[:, 2:] = 0
        allowed[x, :, : table.shape[1]] = table
        totals = [np.eye(classes, dtype=np.int64), *(kinds[within].total[None] for within, _ in kind.parts)]
        totals.append(np.zeros((parts - len(kind.parts), classes), dtype=np.int64))
        digits.append(own)
        used.append(own @ np.concatenate(totals))
        first.append(first[-1] + len(own))
    rows, devices = (np.ascontiguousarray(np.concatenate(parts)) for parts in (digits, used))
    return KindStates(
        np.array(first), rows, rows[:, :classes].sum(axis=1), devices, stride, number, np.array(mains),
        allowed, part,
    )  # fmt: skip


def depths(cluster: DeviceTree, depth: int = 0) -> Iterator[tuple[int, int]]:
    """All clusters within one, itself first, as (depth, kind)."""
    yield depth, cluster.kind
    for one in (one for part in cluster.parts for one in part):
        yield from depths(one, depth + 1)
