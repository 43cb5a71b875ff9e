"""Clusters of devices as a pipeline search sees them: what leaving one costs, and which are alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel, StageCosts
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which devices form a cluster, and what is paid for an edge that leaves it, on top.

    ``cluster``  D a number a device, in the order of the devices' positions
    ``read``     m x c x e where a device reads the edge and its maker is in another cluster
    ``make``     m x c x e where a device makes the edge and some reader is in another cluster
    """

    cluster: Integers
    read: Floats
    make: Floats

    def load(self, costs: StageCostModel, own: Integers, near: Integers, kind: int) -> float:
        """The largest load of a stage on one device; ``near``: all units of its cluster."""
        reading = costs.components(own, kind)
        mine, there = _held(costs, own), _held(costs, near)
        makes = (mine & 1 != 0) & (there >> 1 < costs.readers)
        reads = (mine >> 1 > 0) & (there & 1 == 0)
        reading += self.make[:, kind][:, makes].sum(axis=1) + self.read[:, kind][:, reads].sum(axis=1)
        return float(reading[: costs.loads].max())


def _held(costs: StageCostModel, units: Integers) -> Integers:
    """e: how much of each edge a set has, 1 for what makes it + 2 for each reader."""
    chosen = np.zeros(costs.units, dtype=bool)
    chosen[units] = True
    touching = np.repeat(chosen, np.diff(costs.touch_start))
    role = costs.role[touching].astype(float)
    return np.bincount(costs.touched[touching], weights=role, minlength=len(costs.readers)).astype(np.int64)


def merged(quotient: Quotient, values: Floats) -> Floats:
    """c x t: times of a quotient's tensors, from those of the graph's (c x tensors), as its transfers are."""
    out = np.zeros((len(values), len(quotient.tensor_producer)))
    some = np.flatnonzero(quotient.tensor_of >= 0)
    np.add.at(out.T, quotient.tensor_of[some], values.T[some])
    return out


def in_clusters(
    stage_costs: StageCosts,
    quotient: Quotient,
    classes: DeviceClasses,
    cluster: Integers,
    surcharge: Floats,
) -> tuple[StageCostModel, Clusters]:
    """The costs of stages, and clusters whose edges cost ``surcharge`` (c x t) more where they leave them.

    t are the tensors of the quotient: :func:`merged` makes their surcharges from those of the graph's tensors.
    """
    number = len(classes.counts)
    # Twice the classes, so that edges are kept that cost something in either way; transfers count where theirs do.
    twice = replace(
        quotient, work=np.tile(quotient.work, (2, 1)), transfer=np.concatenate((quotient.transfer, surcharge))
    )
    both = stage_costs(twice, DeviceClasses(classes.counts * 2, classes.memory * 2, classes.devices * 2))
    costs = replace(
        both, classes=classes, work=both.work[:number], unit_cost=both.unit_cost[:, :number],
        input_cost=both.input_cost[:, :number].copy(), output_cost=both.output_cost[:, :number].copy(),
        limit=both.limit[:, :number],
    )  # fmt: skip
    return costs, Clusters(cluster, both.input_cost[:, number:].copy(), both.output_cost[:, number:].copy())


@dataclass(frozen=True, eq=False)
class ClusterKind:
    """Clusters with the same devices: how many of each class one has, and per cluster and class which."""

    devices: Integers
    members: list[list[Integers]]


def cluster_kinds(costs: StageCostModel, clusters: Clusters) -> list[ClusterKind]:
    """The clusters by what they have."""
    known: dict[bytes, ClusterKind] = {}
    for number in np.unique(np.concatenate([clusters.cluster[d] for d in costs.classes.devices])):
        own = [d[clusters.cluster[d] == number] for d in costs.classes.devices]
        devices = np.array([len(d) for d in own])
        known.setdefault(devices.tobytes(), ClusterKind(devices, [])).members.append(own)
    return list(known.values())
