"""The best pipeline under GPipe's schedule: the longest forward pass plus the longest backward pass.

A pass takes as long as the largest of its loads, of which the communication model has one or several.
Tarnawski et al. 2020, section 5.3.  The two maxima may sit on different devices, so that no single load is minimised.
Instead a search finds the least forward pass among pipelines whose backward passes stay below a cap, then the least
backward pass with that forward pass; the cap falls to just below it, until no sum can be less.  The search is that over
ideals, over groups of devices that share stages, or over clusters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.cluster_surcharges import cluster_numbers
from placedsl.algorithms.pipelines.bottleneck_search import BottleneckResult
from placedsl.algorithms.pipelines.clusters import Clusters, by_level, every_level
from placedsl.algorithms.pipelines.device_groups import (
    best_with_device_groups,
    replication_of,
    surcharges,
    uses_device_groups,
)
from placedsl.algorithms.pipelines.hierarchical import best_hierarchical
from placedsl.algorithms.pipelines.replicated import Replication, best_replicated
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_dp import best_pipeline, sliced
from placedsl.algorithms.pipelines.state_table import StateDPResult
from placedsl.algorithms.stages.stage_costs import DeviceClasses, Edges, StageCostModel, loads_under, stage_costs
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

_FORWARD, _BACKWARD = range(2)
#: Seconds for a first pipeline of groups of devices.
_STARTING = 5.0


@dataclass(frozen=True, eq=False)
class Passes:
    """The costs of stages, with as many components for the forward pass, as many for the backward pass, and memory.

    ``clusters``, ``replication``: where the machine has clusters, and where devices may share stages.
    """

    costs: StageCostModel
    clusters: Clusters | None
    replication: Replication | None

    @classmethod
    def of(cls, problem: Problem, quotient: Quotient, classes: DeviceClasses) -> Passes:
        """A tensor is paid in each pass that reads it elsewhere, and once where it leaves, in its own pass."""
        if not problem.machine.clusters:
            costs, clusters = _pass_costs(problem, quotient, classes, None), None
        else:
            further = surcharges(problem, classes)
            every = _pass_costs(problem, quotient, every_level(classes, len(further)), further)
            costs, clusters = by_level(every, classes, cluster_numbers(problem))
        shared = uses_device_groups(problem)
        return cls(costs, clusters, replication_of(problem, quotient, classes, costs, shared=True) if shared else None)

    def components(self, which: int) -> Integers:
        """The components of a pass."""
        return which * self.costs.loads + np.arange(self.costs.loads)

    def least(self, which: int) -> float:
        """What the longest pass of a kind cannot undercut: a load that has computation has all of it."""
        own = self.costs.unit_cost[self.components(which)].max(axis=0).min(axis=0)
        alone = self.replication is None or all(numbers == (1,) for numbers in self.replication.allowed)
        return float(max(own.max(initial=0.0) if alone else 0.0, own.sum() / max(1, self.costs.classes.total)))

    def search(
        self, which: int, cap: float, limits: SearchLimits, at_most: float, *, fewest: bool = False
    ) -> BottleneckResult:
        """The pipeline with the least pass of one kind below ``at_most``, that of the other no longer than a cap."""
        costs, loads = self.costs, self.costs.loads
        order = np.concatenate((self.components(which), self.components(1 - which), [2 * loads]))
        limit = costs.limit[order].copy()
        limit[loads:-1] = cap
        costs = replace(
            costs, unit_cost=costs.unit_cost[order], input_cost=costs.input_cost[order],
            output_cost=costs.output_cost[order], limit=limit, capped=loads, exchanges=which == _BACKWARD, beyond=cap,
        )  # fmt: skip
        if self.replication is None:
            return _in_groups(best_pipeline(costs, limits, at_most=at_most, fewest=fewest))
        if self.clusters is None:
            return best_replicated(costs, self.replication, limits, at_most=at_most, fewest=fewest)
        clusters = self.clusters.reordered(order)
        return best_hierarchical(costs, clusters, self.replication, limits, at_most=at_most, fewest=fewest)

    def longest(self, found: BottleneckResult) -> Floats:
        """The longest forward and the longest backward pass of a pipeline; infinite where there is none."""
        device, out = found.device, np.zeros(2)
        if device is None:
            return np.full(2, np.inf)
        for kind, members in enumerate(self.costs.classes.devices):
            for d in members.tolist():
                own = np.flatnonzero(device == d)
                if not len(own):
                    continue
                parts = self._components(device, d, own, kind)[:-1].reshape(2, -1).max(axis=1)
                if self.replication is not None:
                    for which, part in enumerate(parts.tolist()):
                        costs = replace(self.costs, exchanges=which == _BACKWARD)
                        parts[which] = self.replication.share(costs, part, own, kind, len(found.groups[d]))
                out = np.maximum(out, parts)
        return out

    def _components(self, device: Integers, d: int, own: Integers, kind: int) -> Floats:
        if self.clusters is None:
            return self.costs.components(own, kind)
        return self.clusters.components(self.costs, own, self.clusters.around(device, d), kind)


def _pass_costs(problem: Problem, quotient: Quotient, classes: DeviceClasses, further: Floats | None) -> StageCostModel:
    """The costs of stages by pass; ``further``: of tensors that leave clusters, a level after the other."""
    graph, unit = problem.graph, quotient.unit_of_node
    sample = [int(members[0]) for members in classes.devices]
    copies = 1 if further is None else len(further) + 1
    transfer = problem.transfer.T[sample[: len(sample) // copies]]
    transfer = transfer if further is None else np.concatenate((transfer, *further))
    work = np.zeros((2, len(sample), quotient.units))
    duration = np.where(np.isfinite(problem.time[:, sample]), problem.time[:, sample], 0.0)
    for which, own in ((_FORWARD, ~graph.backward), (_BACKWARD, graph.backward)):
        np.add.at(work[which].T, unit[own], duration[own])
    later = graph.backward[graph.edge_target]
    tensors = len(graph.tensor_producer)
    # Three edges a tensor: read in the forward pass, read in the backward pass, made.
    read_edge = np.concatenate(
        (graph.edge_tensor[~later], tensors + graph.edge_tensor[later], 2 * tensors + graph.edge_tensor)
    )
    reader = np.concatenate((graph.edge_target[~later], graph.edge_target[later], graph.edge_target))
    edges, kept = Edges.made(
        quotient.units, np.tile(unit[graph.tensor_producer], 3), read_edge, unit[reader], np.tile(transfer, 3)
    )
    read, make = (np.zeros((2, len(sample), len(kept))) for _ in range(2))
    made_later = graph.backward[graph.tensor_producer][kept % tensors] if tensors else np.zeros(0, dtype=bool)
    for table, chosen, which in (
        (read, kept < tensors, _FORWARD),
        (read, (kept >= tensors) & (kept < 2 * tensors), _BACKWARD),
        (make, (kept >= 2 * tensors) & ~made_later, _FORWARD),
        (make, (kept >= 2 * tensors) & made_later, _BACKWARD),
    ):
        table[which][:, chosen] = edges.transfer[:, chosen]
    loads = loads_under(problem.execution.communication)
    alone = np.tile(quotient.work, (copies, 1))
    memory = np.broadcast_to(quotient.memory, alone.shape)
    none = [[np.inf] * len(sample)] * (2 * len(loads))
    return StageCostModel(
        classes=classes, before=quotient.before, after=quotient.after, work=alone, memory=quotient.memory,
        touch_start=edges.touch_start, touched=edges.touched, role=edges.role, readers=edges.readers,
        unit_cost=np.stack([*(one.computation * own for own in work for one in loads), memory]),
        input_cost=_with_memory([one.inputs * own for own in read for one in loads]),
        output_cost=_with_memory([one.outputs * own for own in make for one in loads]),
        limit=np.array([*none, classes.memory]), loads=len(loads),
    )  # fmt: skip


def _with_memory(costs: list[Floats]) -> Floats:
    """Costs of edges with one more component, that of memory, in which they cost nothing."""
    return np.stack([*costs, np.zeros_like(costs[0])])


def _in_groups(found: StateDPResult) -> BottleneckResult:
    """A pipeline without groups of devices as one with groups of one."""
    groups = {} if found.device is None else {d: (d,) for d in np.unique(found.device).tolist()}
    return BottleneckResult(
        found.value, found.device, found.complete, found.bound, found.fewest, found.too_many, found.met, found.stored,
        found.pairs, groups,
    )  # fmt: skip


def best_sum(
    problem: Problem,
    quotient: Quotient,
    classes: DeviceClasses,
    limits: SearchLimits,
    progress: Callable[[BottleneckResult], None],
    *,
    fewest: bool,
) -> BottleneckResult:
    """The pipeline with the least sum of longest passes; where ``fewest``, of these one with the fewest devices.

    ``progress`` hears of the first.
    """
    walk = _Walk(Passes.of(problem, quotient, classes), limits)
    sums = stage_costs(problem.execution.communication)
    if uses_device_groups(problem):
        soon = time.monotonic() + _STARTING
        sooner = replace(limits, deadline=soon if limits.deadline is None else min(soon, limits.deadline))
        start = best_with_device_groups(
            problem, quotient, classes, sums, sooner, 0.0, lambda _: None, shared=True, fewest=False
        )
    else:
        start = _in_groups(sliced(sums(quotient, classes), limits))
    walk.offer(start)
    if walk.best.device is not None:
        progress(walk.best)
    return walk.run(fewest=fewest)


class _Walk:
    """From one pair of longest passes to the next that is not longer in both, the forward pass ascending."""

    def __init__(self, passes: Passes, limits: SearchLimits) -> None:
        self.passes, self.limits = passes, limits
        self.best = BottleneckResult(np.inf, None, False)
        self.short = passes.least(_BACKWARD)
        #: Whether everything that was asked has been answered.
        self.complete = True

    def offer(self, found: BottleneckResult) -> Floats:
        """Keep a pipeline if its sum is less; its longest passes."""
        longest = self.passes.longest(found)
        value = float(longest.sum())
        if value < self.best.value:
            self.best = replace(self.best, value=value, device=found.device, groups=found.groups)
        return longest

    def ask(self, which: int, cap: float, at_most: float, *, fewest: bool = False) -> BottleneckResult:
        """Search, and add up what that took."""
        found = self.passes.search(which, cap, self.limits, at_most, fewest=fewest)
        self.complete = self.complete and found.complete
        best = self.best
        self.best = replace(
            best, too_many=best.too_many or found.too_many, met=max(best.met, found.met),
            stored=max(best.stored, found.stored),
        )  # fmt: skip
        return found

    def points(self, most: Callable[[], float]) -> Iterator[Floats]:
        """The longest passes of pipelines that no other undercuts in both, while their sum may be at ``most``."""
        cap = most() - self.passes.least(_FORWARD)
        while True:
            ahead = self.ask(_FORWARD, cap, most() - self.short)
            first = self.offer(ahead)
            if ahead.device is None or first[_FORWARD] + self.short > most():
                return
            back = self.ask(_BACKWARD, first[_FORWARD] * (1.0 + IMPROVEMENT), first[_BACKWARD] * (1.0 - EQUAL_COSTS))
            last = first if back.device is None else self.offer(back)
            if not self.complete:
                return
            yield last
            if last[_BACKWARD] <= 0.0:  # no backward pass is shorter
                return
            cap = min(cap, float(last[_BACKWARD])) * (1.0 - EQUAL_COSTS)

    def run(self, *, fewest: bool) -> BottleneckResult:
        """The least sum, and where asked for the fewest devices that reach it."""
        for _ in self.points(lambda: self.best.value * (1.0 - EQUAL_COSTS)):
            pass
        best = replace(self.best, complete=self.complete, bound=self.best.value if self.complete else 0.0)
        if not fewest or not self.complete or best.device is None:
            return replace(best, fewest=fewest and self.complete)
        most = best.value * (1.0 + EQUAL_COSTS)
        for forward, backward in self.points(lambda: most):
            if forward + backward > most:
                continue
            found = self.ask(_FORWARD, backward * (1.0 + IMPROVEMENT), forward * (1.0 + EQUAL_COSTS), fewest=True)
            if found.device is not None and found.devices < best.devices:
                best = replace(best, device=found.device, groups=found.groups)
            self.complete = self.complete and found.fewest
        return replace(best, fewest=self.complete)
