"""What leaving a cluster costs, over the units of a pipeline."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.cluster_surcharges import cluster_numbers, merged, surcharges_of_devices
from placedsl.algorithms.partitions.cluster_costs_kernel import ClusterCosts, pay_all
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr, topological
from placedsl.problem.problem import Problem


def cluster_costs(problem: Problem) -> ClusterCosts:
    """Those of the units of contiguous pipelines; no levels where there are no clusters."""
    if not problem.machine.clusters:
        none = np.zeros(0, dtype=np.int64)
        return ClusterCosts(none.reshape(0, 0), np.zeros((0, 0, 0)), none, none, none, none, none)
    quotient = placement_units(problem, contiguous=True)
    cost = np.array([merged(quotient, level) for level in surcharges_of_devices(problem)])
    kept = np.flatnonzero(cost.any(axis=(0, 1)))
    maker = np.asarray(quotient.tensor_producer)[kept]
    first, last = quotient.pin_start[:-1][kept], quotient.pin_start[1:][kept]
    readers = [quotient.pin_unit[a + 1 : b] for a, b in zip(first, last, strict=True)]  # after the maker
    counts = np.array([len(one) for one in readers], dtype=np.int64)
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    reader = np.concatenate([np.zeros(0, dtype=np.int64), *readers])
    units, tensors = np.concatenate((maker, reader)), np.arange(len(kept))
    touch_start, touched = csr(units, np.concatenate((tensors, np.repeat(tensors, counts))), quotient.units)
    cost = np.ascontiguousarray(cost[:, :, kept])
    return ClusterCosts(
        cluster_numbers(problem), cost, maker.astype(np.int64), start, reader, touch_start, touched
    )  # fmt: skip


def paid(clusters: ClusterCosts, device: Integers, devices: int) -> Floats:
    """D: what each device pays on top, where units are on these devices (u)."""
    further = np.zeros(devices)
    if len(clusters.cluster):
        pay_all(clusters, device, further, np.zeros(devices, dtype=np.int64))
    return further


def random_line(clusters: ClusterCosts, rng: np.random.Generator, devices: int) -> Integers:
    """The devices in a random order in which those of each cluster follow one another."""
    return _line(clusters, rng.random(devices))


def line_of(clusters: ClusterCosts, devices: int) -> Integers:
    """The devices by number, but for those of a cluster, which follow one another."""
    return _line(clusters, np.arange(devices, dtype=float))


def _line(clusters: ClusterCosts, key: Floats) -> Integers:
    """The devices by what they are in, from outside, and by their key: each cluster comes by its least one."""
    keys = [key]
    for row in clusters.cluster[::-1]:
        inside = row >= 0
        least = np.full(int(row.max(initial=0)) + 1, np.inf)
        np.minimum.at(least, row[inside], key[inside])
        keys.append(np.where(inside, least[row], key))
    order: Integers = np.lexsort(keys)
    return order


def pipeline_line(clusters: ClusterCosts, devices: int, before: Integers, after: Integers) -> Integers:
    """The devices in an order in which those of each cluster follow one another and no pair of devices (``before``,
    ``after``) goes backwards; there has to be one."""

    def ordered(members: Integers, level: int) -> list[int]:
        outside = np.arange(devices) + int(clusters.cluster.max(initial=-1)) + 1
        own = clusters.cluster[level] if level < len(clusters.cluster) else outside
        labels, place = np.unique(np.where(own >= 0, own, outside)[members], return_inverse=True)
        at = np.full(devices, -1)
        at[members] = place
        first, second = at[before], at[after]
        apart = (first >= 0) & (second >= 0) & (first != second)
        order = topological(len(labels), first[apart], second[apart])
        assert order is not None, "what is in clusters forms a pipeline"
        if level == len(clusters.cluster):
            return [int(d) for d in members[order]]
        return [d for one in order for d in ordered(members[place == one], level + 1)]

    return np.array(ordered(np.arange(devices), 0), dtype=np.int64)
