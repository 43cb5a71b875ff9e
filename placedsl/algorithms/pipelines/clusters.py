"""Clusters of devices as a pipeline search sees them: what leaving one costs, and which are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel, StageCosts
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which devices form clusters on each of L levels, the outermost first, and what is paid for an edge that leaves
    one, on top.

    ``cluster``  L x D a number a device, in the order of the devices' positions; -1: in no cluster of this level, nor
                 of any further in
    ``read``     L x m x c x e where a device reads the edge and its maker is in another cluster
    ``make``     L x m x c x e where a device makes the edge and some reader is in another cluster
    """

    cluster: Integers
    read: Floats
    make: Floats

    @property
    def levels(self) -> int:
        """How deep clusters lie within one another."""
        return len(self.cluster)

    def load(self, costs: StageCostModel, own: Integers, near: Sequence[Integers], kind: int) -> float:
        """The largest load of a stage on one device; ``near``: all units of each of its clusters, outermost first."""
        return float(self.components(costs, own, near, kind)[: costs.loads].max())

    def components(self, costs: StageCostModel, own: Integers, near: Sequence[Integers], kind: int) -> Floats:
        """m: the cost components of a stage on one device, as ``load``."""
        reading = costs.components(own, kind)
        mine = _held(costs, own)
        for units, read, make in zip(near, self.read, self.make, strict=False):
            there = _held(costs, units)
            makes = (mine & 1 != 0) & (there >> 1 < costs.readers)
            reads = (mine >> 1 > 0) & (there & 1 == 0)
            reading += make[:, kind][:, makes].sum(axis=1) + read[:, kind][:, reads].sum(axis=1)
        return reading

    def around(self, device: Integers, d: int) -> list[Integers]:
        """The units in each cluster of a device, outermost first; ``device``: that of each unit."""
        own = [row[d] for row in self.cluster]
        return [np.flatnonzero(row[device] == c) for row, c in zip(self.cluster, own, strict=True) if c >= 0]

    def reordered(self, order: Integers) -> Clusters:
        """The same for cost components in another order."""
        return replace(self, read=self.read[:, order], make=self.make[:, order])


def _held(costs: StageCostModel, units: Integers) -> Integers:
    """e: how much of each edge a set has, 1 for what makes it + 2 for each reader."""
    chosen = np.zeros(costs.units, dtype=bool)
    chosen[units] = True
    touching = np.repeat(chosen, np.diff(costs.touch_start))
    role = costs.role[touching].astype(float)
    return np.bincount(costs.touched[touching], weights=role, minlength=len(costs.readers)).astype(np.int64)


def in_clusters(
    stage_costs: StageCosts,
    quotient: Quotient,
    classes: DeviceClasses,
    cluster: Integers,
    surcharge: Floats,
) -> tuple[StageCostModel, Clusters]:
    """The costs of stages, and clusters whose edges cost ``surcharge`` (L x c x t) more where they leave them.

    ``cluster`` is that of :class:`Clusters`.  t are the tensors of the quotient; ``cluster_surcharges.merged`` makes
    their surcharges from those of the graph's tensors.
    """
    copies = len(surcharge) + 1
    repeated = replace(
        quotient, work=np.tile(quotient.work, (copies, 1)), transfer=np.concatenate((quotient.transfer, *surcharge))
    )
    return by_level(stage_costs(repeated, every_level(classes, len(surcharge))), classes, cluster)


def every_level(classes: DeviceClasses, levels: int) -> DeviceClasses:
    """All classes, and once more a level, so that edges are kept that cost something anywhere."""
    copies = levels + 1
    return DeviceClasses(
        classes.counts * copies, classes.memory * copies, classes.devices * copies, classes.per_byte * copies,
        classes.room * copies,
    )  # fmt: skip


def by_level(every: StageCostModel, classes: DeviceClasses, cluster: Integers) -> tuple[StageCostModel, Clusters]:
    """The costs of stages, and those of clusters, from those for the classes of :func:`every_level`."""
    number, copies = len(classes.counts), len(cluster) + 1
    costs = replace(
        every, classes=classes, work=every.work[:number], unit_cost=every.unit_cost[:, :number],
        input_cost=every.input_cost[:, :number].copy(), output_cost=every.output_cost[:, :number].copy(),
        limit=every.limit[:, :number], per_byte=every.per_byte[:number], room=every.room[:number],
    )  # fmt: skip
    read, make = (
        np.stack([side[:, number * k : number * (k + 1)] for k in range(1, copies)])
        for side in (every.input_cost, every.output_cost)
    )
    return costs, Clusters(cluster, read, make)


@dataclass(frozen=True, eq=False)
class ClusterKind:
    """What clusters of one kind have.

    ``devices``  c how many devices of each class are in none of the clusters within
    ``parts``    the clusters within: pairs of a kind and how many of it
    ``total``    c all devices
    """

    devices: Integers
    parts: tuple[tuple[int, int], ...]
    total: Integers


@dataclass(frozen=True, eq=False)
class DeviceTree:
    """A cluster, or the whole machine: its kind, the devices that are in no cluster within, by class, and the clusters
    within, by the ``parts`` of the kind."""

    kind: int
    devices: list[Integers]
    parts: list[list[DeviceTree]]


def device_tree(costs: StageCostModel, clusters: Clusters) -> tuple[list[ClusterKind], DeviceTree]:
    """The kinds of clusters, each after those within it and the machine last; and the clusters of the machine."""
    kinds: list[ClusterKind] = []
    known: dict[tuple[bytes, tuple[tuple[int, int], ...]], int] = {}

    def made(devices: list[Integers], level: int) -> DeviceTree:
        # Further in than all levels, devices are in no cluster.
        inner = [clusters.cluster[level, d] if level < clusters.levels else np.full(len(d), -1) for d in devices]
        within: dict[int, list[DeviceTree]] = {}
        for number in np.unique(np.concatenate(inner)).tolist():
            if number >= 0:
                one = made([d[i == number] for d, i in zip(devices, inner, strict=True)], level + 1)
                within.setdefault(one.kind, []).append(one)
        direct = [d[i < 0] for d, i in zip(devices, inner, strict=True)]
        count = np.array([len(d) for d in direct])
        parts = tuple((kind, len(within[kind])) for kind in sorted(within))
        number = known.setdefault((count.tobytes(), parts), len(kinds))
        if number == len(kinds):
            kinds.append(ClusterKind(count, parts, np.array([len(d) for d in devices])))
        return DeviceTree(number, direct, [within[kind] for kind, _ in parts])

    machine = made(list(costs.classes.devices), 0)
    return kinds, machine
