"""The best pipeline under GPipe's schedule: the longest forward pass plus the longest backward pass.

A pass takes as long as the largest of its loads, of which the communication model has one or several.
Tarnawski et al. 2020, section 5.3.  The two maxima may sit on different devices, so that no single load is minimised.
Instead the dynamic program over ideals finds the least forward pass among pipelines whose backward passes stay below a
cap, then the least backward pass with that forward pass; the cap falls to just below it, until no sum can be less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.state_dp import SearchLimits, StateDPResult, best_pipeline, sliced
from placedsl.algorithms.stages.stage_costs import DeviceClasses, Edges, StageCostModel, loads_under, stage_costs
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

_FORWARD, _BACKWARD = range(2)


@dataclass(frozen=True, eq=False)
class Passes:
    """The costs of stages, with as many components for the forward pass, as many for the backward pass, and memory."""

    costs: StageCostModel

    @classmethod
    def of(cls, problem: Problem, quotient: Quotient, classes: DeviceClasses) -> Passes:
        """A tensor is paid in each pass that reads it elsewhere, and once where it leaves, in its own pass."""
        graph, unit = problem.graph, quotient.unit_of_node
        sample = [members[0] for members in classes.devices]
        work = np.zeros((2, len(sample), quotient.units))
        time = np.where(np.isfinite(problem.time[:, sample]), problem.time[:, sample], 0.0)
        for which, own in ((_FORWARD, ~graph.backward), (_BACKWARD, graph.backward)):
            np.add.at(work[which].T, unit[own], time[own])
        later = graph.backward[graph.edge_target]
        tensors = len(graph.tensor_producer)
        # Three edges a tensor: read in the forward pass, read in the backward pass, made.
        read_edge = np.concatenate(
            (graph.edge_tensor[~later], tensors + graph.edge_tensor[later], 2 * tensors + graph.edge_tensor)
        )
        reader = np.concatenate((graph.edge_target[~later], graph.edge_target[later], graph.edge_target))
        edges, kept = Edges.made(
            quotient.units, np.tile(unit[graph.tensor_producer], 3), read_edge, unit[reader],
            np.tile(problem.transfer.T[sample], 3),
        )  # fmt: skip
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
        memory = np.broadcast_to(quotient.memory, quotient.work.shape)
        none = [[np.inf] * len(sample)] * (2 * len(loads))
        return cls(
            StageCostModel(
                classes=classes, before=quotient.before, after=quotient.after, work=quotient.work,
                memory=quotient.memory, touch_start=edges.touch_start, touched=edges.touched, role=edges.role,
                readers=edges.readers,
                unit_cost=np.stack([*(one.computation * own for own in work for one in loads), memory]),
                input_cost=_with_memory([one.inputs * own for own in read for one in loads]),
                output_cost=_with_memory([one.outputs * own for own in make for one in loads]),
                limit=np.array([*none, classes.memory]), loads=len(loads),
            )
        )  # fmt: skip

    def components(self, which: int) -> Integers:
        """The components of a pass."""
        return which * self.costs.loads + np.arange(self.costs.loads)

    def least(self, which: int) -> float:
        """What the longest pass of a kind cannot undercut: a load that has computation has all of it."""
        own = self.costs.unit_cost[self.components(which)].max(axis=0).min(axis=0)
        return float(max(own.max(initial=0.0), own.sum() / max(1, self.costs.classes.total)))

    def towards(self, which: int, cap: float) -> StageCostModel:
        """One pass as the load, the other no longer than a cap."""
        costs = self.costs
        order = np.concatenate((self.components(which), self.components(1 - which), [2 * costs.loads]))
        limit = costs.limit[order].copy()
        limit[costs.loads : -1] = cap
        return replace(
            costs, unit_cost=costs.unit_cost[order], input_cost=costs.input_cost[order],
            output_cost=costs.output_cost[order], limit=limit, beyond=cap,
        )  # fmt: skip

    def longest(self, device: Integers) -> Floats:
        """The longest forward and the longest backward pass of a pipeline."""
        out = np.zeros(2)
        for kind, members in enumerate(self.costs.classes.devices):
            for d in members:
                own = np.flatnonzero(device == d)
                if len(own):
                    loads = self.costs.components(own, kind)[:-1].reshape(2, -1)
                    out = np.maximum(out, loads.max(axis=1))
        return out


def _with_memory(costs: list[Floats]) -> Floats:
    """Costs of edges with one more component, that of memory, in which they cost nothing."""
    return np.stack([*costs, np.zeros_like(costs[0])])


def best_sum(
    problem: Problem,
    quotient: Quotient,
    classes: DeviceClasses,
    limits: SearchLimits,
    progress: Callable[[Integers, float], None],
) -> StateDPResult:
    """The pipeline with the least sum of longest passes; ``progress`` hears of the first and of its sum."""
    passes = Passes.of(problem, quotient, classes)
    value, cap = np.inf, np.inf
    device = sliced(stage_costs(problem.execution.communication)(quotient, classes), limits).device
    if device is not None:
        value = float(passes.longest(device).sum())
        cap = value - passes.least(_FORWARD)
        progress(device, value)
    short = passes.least(_BACKWARD)
    met = stored = 0
    while True:
        ahead = best_pipeline(
            passes.towards(_FORWARD, cap), limits, at_most=(value - short) * (1.0 - EQUAL_COSTS), fewest=False
        )
        met, stored = max(met, ahead.met), max(stored, ahead.stored)
        first = np.full(2, np.inf) if ahead.device is None else passes.longest(ahead.device)
        # No sum is less; one that is only as good may be found where all times are 0.
        if ahead.device is None or first[_FORWARD] + short >= value:
            return StateDPResult(value, device, ahead.complete, 0.0, False, ahead.too_many, met, stored)
        back = best_pipeline(
            passes.towards(_BACKWARD, first[_FORWARD] * (1.0 + IMPROVEMENT)), limits,
            at_most=first[_BACKWARD] * (1.0 - EQUAL_COSTS), fewest=False,
        )  # fmt: skip
        for found in (ahead.device, back.device):
            if found is not None and (reached := float(passes.longest(found).sum())) < value:
                value, device = reached, found
        if not (ahead.complete and back.complete):
            return StateDPResult(value, device, False, 0.0, False, ahead.too_many or back.too_many, met, stored)
        last = passes.longest(back.device if back.device is not None else ahead.device)[_BACKWARD]
        if last <= 0.0:  # no backward pass is shorter
            return StateDPResult(value, device, True, 0.0, False, False, met, stored)
        cap = min(cap, float(last)) * (1.0 - EQUAL_COSTS)
