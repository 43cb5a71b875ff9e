"""The partition problem of a specification as arrays, and starting partitions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.annealing import improves
from placedsl.algorithms.partitions.load_kernel import PartitionInstance, PartitionState, recompute
from placedsl.algorithms.units import hyperedges, placement_units, with_rounding
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.graph.order import csr, topological
from placedsl.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class PartitionUnits:
    """A problem's units (nodes that share a device) as arrays, and the unit of each of its n nodes.

    ``before``, ``after``   pairs of units along which a pipeline goes forward (none where it is no pipeline)
    """

    instance: PartitionInstance
    unit_of_node: Integers
    before: Integers
    after: Integers

    def device_of(self, placement: Integers) -> Integers:
        """The device of each unit (u), from that of each node (n)."""
        device = np.empty(len(self.instance.memory), dtype=np.int64)
        device[self.unit_of_node] = placement
        return device

    def placement(self, device: Integers) -> Integers:
        """The device of each node (n), from that of each unit (u)."""
        return device[self.unit_of_node]


def partition_units(problem: Problem, *, contiguous: bool = False) -> PartitionUnits:
    """Contract the nodes that must share a device to units, and merge the tensors that touch the same units.

    ``contiguous``: stages of a pipeline are what is wanted, so that nodes on a cycle of its pairs are one unit.

    Which unit writes a tensor makes no difference to its cost: a device pays if it holds some but not all of its
    units.  So all tensors of one set of units, forward and backward, become one hyperedge.
    """
    quotient = placement_units(problem, contiguous=contiguous)
    edges = hyperedges(quotient)
    lengths = np.array([len(pins) for pins in edges.pins], dtype=np.int64)
    pin_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
    pin = np.array([u for pins in edges.pins for u in pins], dtype=np.int64)
    touch_start, touched = csr(pin, np.repeat(np.arange(len(edges.pins)), lengths), quotient.units)
    order = topological(quotient.units, quotient.before, quotient.after) if contiguous else _order(problem, quotient)
    assert order is not None, "what is on a cycle is one unit"
    rank = np.empty(quotient.units, dtype=np.int64)
    rank[order] = np.arange(quotient.units)
    instance = PartitionInstance(
        work=np.ascontiguousarray(quotient.work), memory=quotient.memory,
        capacity=problem.memory_limits,
        touch_start=touch_start, touched=touched,
        pin_start=pin_start, pin=pin, transfer=edges.cost, order=order, rank=rank,
        per_byte=problem.streaming.per_byte, room=problem.streaming.room,
    )  # fmt: skip
    return PartitionUnits(instance, quotient.unit_of_node, quotient.before, quotient.after)


def _order(problem: Problem, quotient: Quotient) -> Integers:
    """The units by the mean position of their forward nodes in the graph (of all their nodes if none is forward)."""
    graph = problem.graph
    known = topological(graph.nodes, graph.edge_source, graph.edge_target)
    # A graph is acyclic once it is read.
    places = np.arange(graph.nodes) if known is None else known
    place = np.empty(graph.nodes)
    place[places] = np.arange(graph.nodes)
    forward = ~graph.backward
    has = np.bincount(quotient.unit_of_node, weights=forward, minlength=quotient.units) > 0
    weight = (forward | ~has[quotient.unit_of_node]).astype(float)
    total = np.bincount(quotient.unit_of_node, weights=place * weight, minlength=quotient.units)
    count = np.bincount(quotient.unit_of_node, weights=weight, minlength=quotient.units)
    return np.argsort(total / count, kind="stable")


@dataclass
class BestPartition:
    """What a search has so far: the best partition (u devices), its largest load in seconds (inf: not feasible)."""

    instance: PartitionInstance
    best: Integers
    value: float
    seed: int
    rng: np.random.Generator = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def value_of(self, device: Integers) -> float:
        """The largest load of a partition (u devices), computed from scratch; inf if it is not allowed."""
        return value_of(self.instance, device)

    def take(self, device: Integers) -> bool:
        """Keep a partition (u devices) if it is better; its value is computed from scratch."""
        value = self.value_of(device)
        if not improves(value, self.value):
            return False
        self.best, self.value = device.copy(), value
        return True


def blank_state(device: Integers, edges: int, devices: int) -> PartitionState:
    """A state with room for what follows from a partition (``device``: u)."""
    inside = np.zeros((edges, devices), dtype=np.int64)
    held = np.zeros(devices, dtype=np.int64)
    return PartitionState(np.array(device, dtype=np.int64), inside, np.zeros(devices), np.zeros(devices), held)


def state_of(instance: PartitionInstance, device: Integers) -> PartitionState:
    """The state of a partition (``device``: u), computed from scratch."""
    state = blank_state(device, len(instance.pin_start) - 1, len(instance.capacity))
    recompute(instance, state)
    return state


def value_of(instance: PartitionInstance, device: Integers) -> float:
    """The largest load of a partition in seconds; inf if a memory limit is exceeded or a unit is not supported."""
    state = state_of(instance, device)
    if (state.memory_used > with_rounding(instance.capacity, instance.memory)).any():
        return float("inf")
    return float(state.load.max(initial=0.0))


def even_segments(instance: PartitionInstance, rng: np.random.Generator | None = None) -> Integers:
    """A starting partition: consecutive segments of the order, one per device, with about even work.

    Units that the device of their segment does not support go to the supporting device with the least time.  With
    ``rng`` the devices are in random order and the segments have random sizes.
    """
    units, devices = len(instance.memory), len(instance.capacity)
    least = instance.work.min(axis=0)
    share = np.cumsum(least[instance.order]) / max(float(least.sum()), 1e-300)
    ends = np.arange(1, devices + 1) / devices
    sequence = np.arange(devices)
    # A device much slower than the others is reserved for units that no other device supports.
    slow = np.array([_sum(instance.work[d]) > 3.0 * float(least.sum()) for d in range(devices)])
    sequence = np.concatenate((sequence[~slow], sequence[slow]))
    if (~slow).any():
        ends = np.minimum(1.0, np.arange(1, devices + 1) / int((~slow).sum()))
    if rng is not None:
        fast = int((~slow).sum())
        sequence[:fast] = rng.permutation(sequence[:fast])
        ends = np.sort(np.concatenate((np.clip(ends[:-1] + rng.normal(0.0, 0.05, devices - 1), 0.0, 1.0), [1.0])))
    device = np.empty(units, dtype=np.int64)
    device[instance.order] = sequence[np.minimum(np.searchsorted(ends, share - 1e-12), devices - 1)]
    wrong = ~np.isfinite(instance.work[device, np.arange(units)])
    device[wrong] = np.argmin(instance.work[:, wrong], axis=0)
    return device


def _sum(times: Floats) -> float:
    """The total time of all units on a device; unsupported ones count as the mean of the others."""
    finite = np.isfinite(times)
    return float(times[finite].sum()) * len(times) / max(1, int(finite.sum()))
