"""Contiguous pipelines on machines with clusters, and with stages that several devices share, of a whole problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from placedsl.algorithms.cluster_surcharges import cluster_numbers, merged, surcharges_of_devices
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel, StageCosts
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem

if TYPE_CHECKING:
    from placedsl.algorithms.pipelines.bottleneck_search import BottleneckResult, GroupedPipeline
    from placedsl.algorithms.pipelines.replicated import Replication


def uses_device_groups(problem: Problem) -> bool:
    """Whether the problem is one for this module."""
    return problem.execution.data_parallelism is not None or bool(problem.machine.clusters)


def classes_of(problem: Problem) -> Integers:
    """A class number a device: alike, and as far from what is outside of each of their clusters."""
    kinds, further = problem.interchangeable(clustered=False), surcharges_of_devices(problem)
    known: dict[tuple[int, bytes], int] = {}
    keys = [(int(kind), further[:, d].tobytes()) for d, kind in enumerate(kinds)]
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def best_with_device_groups(
    problem: Problem,
    quotient: Quotient,
    classes: DeviceClasses,
    stage_costs: StageCosts,
    limits: SearchLimits,
    at_least: float,
    progress: Callable[[GroupedPipeline], None],
    *,
    shared: bool,
    fewest: bool = True,
    at_most: float = np.inf,
) -> BottleneckResult:
    """The best pipeline; its groups say which devices share a stage.  ``shared``: whether that can lower a load.

    Only loads below ``at_most`` are of interest.
    """
    if not problem.machine.clusters:
        from placedsl.algorithms.pipelines.replicated import best_replicated

        costs = stage_costs(quotient, classes)
        replication = replication_of(problem, quotient, classes, costs, shared=shared)
        return best_replicated(
            costs, replication, limits, at_least=at_least, at_most=at_most, fewest=fewest, progress=progress
        )
    from placedsl.algorithms.pipelines.clusters import in_clusters
    from placedsl.algorithms.pipelines.hierarchical import best_hierarchical

    further = surcharges(problem, classes)
    surcharge = np.array([merged(quotient, level) for level in further])
    costs, clusters = in_clusters(stage_costs, quotient, classes, cluster_numbers(problem), surcharge)
    replication = replication_of(problem, quotient, classes, costs, shared=shared)
    return best_hierarchical(
        costs, clusters, replication, limits, at_least=at_least, at_most=at_most, fewest=fewest, progress=progress
    )


def replication_of(
    problem: Problem, quotient: Quotient, classes: DeviceClasses, costs: StageCostModel, *, shared: bool
) -> Replication:
    """How devices share stages; ``shared``: whether that can lower a load."""
    from placedsl.algorithms.pipelines.replicated import Replication, no_replication

    given = problem.execution.data_parallelism
    if given is None or not shared:
        return no_replication(costs)
    sync = np.zeros((len(classes.counts), quotient.units))
    for kind, members in enumerate(classes.devices):
        np.add.at(sync[kind], quotient.unit_of_node, given.synchronisation[:, int(members[0])])
    allowed = tuple(tuple(r for r in given.degrees if r <= count) for count in classes.counts)
    return Replication(allowed, sync, problem.execution.communication == "sequential")


def surcharges(problem: Problem, classes: DeviceClasses) -> Floats:
    """L x c x t: what a device of a class pays besides for a tensor of the graph that leaves its cluster of a level."""
    return surcharges_of_devices(problem)[:, [int(members[0]) for members in classes.devices]]
