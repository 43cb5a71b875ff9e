"""The best pipeline under GPipe's schedule: the longest forward pass plus the longest backward pass.

Tarnawski et al. 2020, section 5.3.  The two maxima may sit on different devices, so that no single load is minimised.
Instead the dynamic program over ideals finds the least forward pass among pipelines whose backward passes stay below a
cap, then the least backward pass with that forward pass; the cap falls to just below it, until no sum can be less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.pipelines.state_dp import SearchLimits, StateDPResult, best_pipeline, sliced
from placedsl.algorithms.stages.stage_costs import DeviceClasses, Edges, StageCostModel, after_computation
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

_FORWARD, _BACKWARD, _MEMORY = range(3)


@dataclass(frozen=True, eq=False)
class Passes:
    """The costs of stages, with a component for each pass and one for memory."""

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
        read, make = (np.zeros((3, len(sample), len(kept))) for _ in range(2))
        made_later = graph.backward[graph.tensor_producer][kept % tensors] if tensors else np.zeros(0, dtype=bool)
        for table, chosen, which in (
            (read, kept < tensors, _FORWARD),
            (read, (kept >= tensors) & (kept < 2 * tensors), _BACKWARD),
            (make, (kept >= 2 * tensors) & ~made_later, _FORWARD),
            (make, (kept >= 2 * tensors) & made_later, _BACKWARD),
        ):
            table[which][:, chosen] = edges.transfer[:, chosen]
        memory = np.broadcast_to(quotient.memory, quotient.work.shape)
        none = [np.inf] * len(sample)
        return cls(
            StageCostModel(
                classes=classes, before=quotient.before, after=quotient.after, work=quotient.work,
                memory=quotient.memory, touch_start=edges.touch_start, touched=edges.touched, role=edges.role,
                readers=edges.readers, unit_cost=np.concatenate((work, memory[None])), input_cost=read,
                output_cost=make, limit=np.array([none, none, classes.memory]), loads=1,
            )
        )  # fmt: skip

    def least(self, which: int) -> float:
        """What the longest pass of a kind cannot undercut."""
        own = self.costs.unit_cost[which].min(axis=0)
        return float(max(own.max(initial=0.0), own.sum() / max(1, self.costs.classes.total)))

    def towards(self, which: int, cap: float) -> StageCostModel:
        """One pass as the load, the other no longer than a cap."""
        costs, order = self.costs, [which, 1 - which, _MEMORY]
        limit = costs.limit[order].copy()
        limit[1] = cap
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
                    out = np.maximum(out, self.costs.components(own, kind)[:2])
        return out


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
    device = sliced(after_computation(quotient, classes), limits).device
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
        if ahead.device is None:
            return StateDPResult(value, device, ahead.complete, 0.0, False, ahead.too_many, met, stored)
        first = passes.longest(ahead.device)
        back = best_pipeline(
            passes.towards(_BACKWARD, first[_FORWARD] * (1.0 + IMPROVEMENT)), limits,
            at_most=first[_BACKWARD] * (1.0 - EQUAL_COSTS), fewest=False,
        )  # fmt: skip
        for found in (ahead.device, back.device):
            if found is not None and (reached := float(passes.longest(found).sum())) < value:
                value, device = reached, found
        if not (ahead.complete and back.complete):
            return StateDPResult(value, device, False, 0.0, False, ahead.too_many or back.too_many, met, stored)
        longest = passes.longest(back.device if back.device is not None else ahead.device)
        cap = float(longest[_BACKWARD]) * (1.0 - EQUAL_COSTS)
