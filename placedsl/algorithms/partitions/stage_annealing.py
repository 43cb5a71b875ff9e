"""Annealing over the numbers of stages: contiguous pipelines of graphs whose ideals are beyond counting.

A run cools from a temperature at which tensors move freely to one at which none does; runs become longer, and begin at
the best pipeline, or at an even division of a random order.  Work is counted in steps, so that a seed determines the
sequence of pipelines; how far it gets within a time limit depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule, anneal_slices, slices
from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of
from placedsl.algorithms.partitions.cluster_costs import cluster_costs, line_of, paid, pipeline_line, random_line
from placedsl.algorithms.partitions.cluster_costs_kernel import ClusterCosts
from placedsl.algorithms.partitions.instance import BestPartition, PartitionUnits, partition_units, state_of, value_of
from placedsl.algorithms.partitions.load_kernel import PartitionInstance, PartitionState
from placedsl.algorithms.partitions.min_cut_order import min_cut_order
from placedsl.algorithms.partitions.slicing import SlicedOrder, Slicer
from placedsl.algorithms.partitions.slicing_kernel import order_by_priority
from placedsl.algorithms.partitions.stage_annealing_kernel import Precedence, Stages, anneal_stages
from placedsl.algorithms.supports import PLACING, Supports
from placedsl.arrays import Integers
from placedsl.graph.order import csr
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem

#: Steps of the first runs, per unit, and of a slice, after which progress is reported, at most.
FIRST_STEPS, MOST_STEPS = 5_000, 2_000_000
#: So many runs are of a length; then runs have twice the steps, up to so many slices.
_ALIKE, _LONGEST = 6, 16
#: The first and the last temperature, as multiples of a tensor's mean transfer time.
_HOT, _COLD = 2.0, 0.01
#: How near to the least the largest load of the first division is, relatively.
_ROUGHLY = 1e-4
#: How far below the best value the target of the loads lies, as a share of it.
_MARGINS = (0.003, 0.01)
#: With so many units an order by minimum cuts is better than others, and takes little time.
_LONG, _MOST_CUT = 200, 10_000
#: More entries than this are not kept of which units each device has, and of what it pays on each level of clusters.
_MOST_ENTRIES = 50_000_000

SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=(Execution(),), requires=("contiguous",),
    constraints=PLACING | {"contiguous", "convex"}, peaks=True,
)  # fmt: skip


def fits(problem: Problem) -> bool:
    """Whether there is room for it."""
    return problem.graph.nodes * len(problem.machine.devices) * (1 + problem.machine.levels) <= _MOST_ENTRIES


@dataclass
class StageSearch(BestPartition):
    """A search in progress; ``units``: what pipelines of the instance are pipelines of; ``clusters``: what leaving them
    costs; ``given``: it began elsewhere than at a division of its own."""

    units: PartitionUnits = field(kw_only=True)
    clusters: ClusterCosts = field(kw_only=True)
    given: bool = field(kw_only=True)
    precedence: Precedence = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        count, before, after = len(self.instance.memory), self.units.before, self.units.after
        self.precedence = Precedence(*csr(after, before, count), *csr(before, after, count))

    @property
    def placement(self) -> Integers:
        """The best pipeline, a device a node."""
        return self.units.placement(self.best)

    def value_of(self, device: Integers) -> float:
        """The largest load of a pipeline, with what leaving clusters costs; inf if it is not allowed."""
        return _value_of(self.instance, self.clusters, device)


def _value_of(instance: PartitionInstance, clusters: ClusterCosts, device: Integers) -> float:
    value = value_of(instance, device)
    if not len(clusters.cluster) or not np.isfinite(value):
        return value
    return float((state_of(instance, device).load + paid(clusters, device, len(instance.capacity))).max())


def begin(problem: Problem, start: Integers | None, seed: int) -> StageSearch:
    """A search from a pipeline, or from an even division of an order, or of one by minimum cuts where that is better.
    Its value is inf until one is feasible.

    Where that division has units on devices that do not run them, there is no search without a start.
    """
    units, clusters = partition_units(problem, contiguous=True), cluster_costs(problem)
    device = _first_stages(units, clusters) if start is None else units.device_of(start)
    value, given = _value_of(units.instance, clusters, device), start is not None
    divided = _divided_by_cuts(problem, units, value)
    if divided is not None:
        stages = line_of(clusters, len(units.instance.capacity))[divided.stage]
        if (cut := _value_of(units.instance, clusters, stages)) < value:
            device, value = stages, cut
    return StageSearch(units.instance, device, value, seed, units=units, clusters=clusters, given=given)


def _divided_by_cuts(problem: Problem, units: PartitionUnits, below: float) -> SlicedOrder | None:
    """The best division of an order by minimum cuts; None: graphs are small, devices unlike, or it is no better."""
    if not _LONG <= len(units.instance.memory) <= _MOST_CUT:
        return None
    pipeline = pipeline_of(problem)
    order = None if pipeline is None else min_cut_order(pipeline)
    if order is None or len(order) != len(units.instance.memory):
        return None
    found = Slicer(units.instance, 0, len(units.instance.capacity)).slice(order, below)
    return found if found is not None and value_of(units.instance, found.stage) < below else None


def _first_stages(units: PartitionUnits, clusters: ClusterCosts) -> Integers:
    """The best division of the units' order, where devices are alike; else an even one."""
    instance = units.instance
    line = line_of(clusters, len(instance.capacity))
    if not _unlike(instance) and np.isfinite(instance.work).all():
        found = Slicer(instance, 0, len(instance.capacity)).slice(instance.order, near=_ROUGHLY)
        if found is not None:
            return line[found.stage]
    return even_stages(instance, instance.order, line)


def _unlike(instance: PartitionInstance) -> bool:
    """Whether devices differ in anything."""
    differs = (instance.work != instance.work[0]).any() or (instance.transfer != instance.transfer[0]).any()
    for one in (instance.capacity, instance.per_byte, instance.room):
        differs = differs or (one != one[0]).any()
    return bool(differs)


def _supported(instance: PartitionInstance, device: Integers) -> bool:
    """Whether every unit is on a device that runs it."""
    return bool(np.isfinite(instance.work[device, np.arange(len(device))]).all())


def even_stages(instance: PartitionInstance, order: Integers, devices: Integers | None = None) -> Integers:
    """u devices: consecutive parts of an order with about even work; units may be on devices that do not run them."""
    least = instance.work.min(axis=0)
    share = np.cumsum(np.where(np.isfinite(least), least, 0.0)[order])
    count = len(instance.capacity)
    place = np.minimum((share / max(float(share[-1]), 1e-300) * count - 1e-9).astype(np.int64), count - 1)
    out = np.empty(len(order), dtype=np.int64)
    out[order] = (np.arange(count) if devices is None else devices)[np.maximum(place, 0)]
    return out


def run(search: StageSearch) -> Iterator[bool]:
    """Search without end; yields after each slice of work whether the best pipeline has improved."""
    devices = len(search.instance.capacity)
    if search.value <= 0.0 or devices < 2 or not _supported(search.instance, search.best):
        return
    while search.value > 0.0:
        yield from _anneal_run(search)


def _anneal_run(search: StageSearch) -> Iterator[bool]:
    """One run: from the best pipeline, or from a random one; where units are many, once from the division of its own
    that a given start took the place of, as few runs leave the pipelines near a start."""
    instance, number = search.instance, search.runs
    search.runs += 1
    large = FIRST_STEPS * len(search.best) > 2 * MOST_STEPS
    fresh = (number % 3 == 2 and not large) or not np.isfinite(search.value)
    own = large and number == 1 and search.given
    device = _first_stages(search.units, search.clusters) if own else _random_stages(search) if fresh else search.best
    device = device if _supported(instance, device) else search.best
    state = state_of(instance, device)
    first = min(FIRST_STEPS * len(device), MOST_STEPS)
    steps = min(_LONGEST * MOST_STEPS, first << min(number // _ALIKE, 30))
    count = -(-steps // MOST_STEPS)
    target = search.value if np.isfinite(search.value) else float(state.load.max())
    scale = _scale(instance) / max(target, 1e-300)
    cooler = [10.0, 30.0] if large else [1.0, 3.0, 10.0]
    hot = _HOT * scale / (1.0 if fresh else float(search.rng.choice(cooler)))
    margin = _MARGINS[int(search.rng.integers(len(_MARGINS)))]
    seed = int(search.rng.integers(2**31))
    schedules = slices(steps // count, hot, _COLD * scale, count, ((seed + i) % 2**31 for i in range(count)))
    yield from anneal_slices(search, schedules, partial(_anneal_from, search, state, margin))


def _anneal_from(
    search: StageSearch, state: PartitionState, margin: float, schedule: CoolingSchedule
) -> Integers | None:
    """Anneal ``state`` in place by one schedule; the pipeline found (None: none beats the search's best)."""
    instance, found = search.instance, search.best.copy()
    undercut = search.value if np.isfinite(search.value) else 4.0 * float(state.load.max())
    units, devices = instance.work.shape[1], len(instance.capacity)
    order = _order_of(search, state.device)
    stage = np.empty(devices, dtype=np.int64)
    stage[order] = np.arange(devices)
    stages = Stages(
        stage, order, np.empty((devices, units), dtype=np.int32), np.zeros(devices, dtype=np.int64),
        np.empty(units, dtype=np.int32),
    )  # fmt: skip
    unlike = _unlike(instance) or len(search.clusters.cluster) > 0
    value = anneal_stages(
        instance, search.clusters, search.precedence, state, stages, found, undercut, margin, unlike, schedule
    )
    return found if value < undercut else None


def _order_of(search: StageSearch, device: Integers) -> Integers:
    """The devices in their order in the pipeline; those that hold nothing, where they come."""
    first, second = device[search.units.before], device[search.units.after]
    apart = first != second
    return pipeline_line(search.clusters, len(search.instance.capacity), first[apart], second[apart])


def _random_stages(search: StageSearch) -> Integers:
    """An even division of a random order over devices in a random order."""
    rng, instance, precedence = search.rng, search.instance, search.precedence
    order, count = random_order(precedence, rng), len(instance.capacity)
    clustered = len(search.clusters.cluster) > 0
    devices = random_line(search.clusters, rng, count) if clustered else rng.permutation(count)
    return even_stages(instance, order, devices)


def random_order(precedence: Precedence, rng: np.random.Generator) -> Integers:
    """Units in a random order that keeps to precedence: any, or one that goes along branches."""
    order: Integers = order_by_priority(
        precedence.later_start, precedence.later, precedence.earlier_start,
        rng.random(len(precedence.later_start) - 1), bool(rng.random() < 0.5),
    )  # fmt: skip
    return order


def _scale(instance: PartitionInstance) -> float:
    """Seconds that a move changes loads by."""
    costs = instance.transfer[instance.transfer > 0.0]
    if len(costs):
        return float(costs.mean())
    work = instance.work[np.isfinite(instance.work) & (instance.work > 0.0)]
    return float(work.mean()) if len(work) else 1.0


__all__ = ["SUPPORTS", "StageSearch", "begin", "even_stages", "fits", "random_order", "run"]
