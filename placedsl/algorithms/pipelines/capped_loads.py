"""Loads of which some stay below the one that is asked for and others below a cap, as loads below one number.

A search for pipelines within a load compares the loads of a stage with one bound.  Where some have a cap of their own,
each is divided by what it must not exceed, and the bound is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.stages.cut_edges_kernel import StagePairs
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class ComparedLoads:
    """What the kernels compare.

    ``bound``    no load exceeds it
    ``order``    the components that are loads; those in which devices that share a stage exchange weights come first
    ``factor``   what each is multiplied by;  ``sync``  the same of the time to exchange weights
    ``alone``    how many of them, the last ones, no weights are exchanged in
    """

    bound: float
    order: Integers
    factor: Floats
    sync: float
    alone: int

    def of_components(self, values: Floats) -> Floats:
        """The rows of ``values``, a row a component, that are loads."""
        rows = values[self.order]
        return np.ascontiguousarray(rows * self.factor.reshape(-1, *[1] * (rows.ndim - 1)) if self.alone else rows)

    def of_pairs(self, pairs: StagePairs) -> StagePairs:
        """The stages with these loads, and after them what else is limited."""
        if not self.alone:
            return pairs

        def rows(values: Floats) -> Floats:
            return np.concatenate((self.of_components(values), values[len(self.order) :]))

        read, make = rows(pairs.input_cost), rows(pairs.output_cost)
        component, kind = map(np.ascontiguousarray, np.nonzero(((read + make) > 0.0).any(axis=2)))
        limit, even = pairs.limit.copy(), pairs.even.copy()
        limit[: len(self.order)], even[: len(self.order)] = np.inf, pairs.even[self.order]
        return pairs._replace(
            unit_sum=rows(pairs.unit_sum), own=rows(pairs.own), rest=rows(pairs.rest), component=component, kind=kind,
            even=even, input_cost=read, output_cost=make, limit=limit, loads=len(self.order) - self.alone,
        )  # fmt: skip


def compared_loads(costs: StageCostModel, load: float, sync: Floats, further: Iterable[Floats] = ()) -> ComparedLoads:
    """The loads of stages within ``load``.

    ``sync``: times to exchange the weights of units;  ``further``: costs besides, a row a component.
    """
    order = np.arange(costs.every_load)
    if not costs.capped:
        return ComparedLoads(load, order, np.ones(len(order)), 1.0, 0)
    loads, capped = order[: costs.loads], order[costs.loads :]
    every = (costs.unit_cost, costs.input_cost, costs.output_cost, *further)

    def factor(own: Integers, bound: float, *, exchanges: bool) -> float:
        if bound > 0.0:
            return 1.0 / bound
        # Whatever takes any time takes too long.
        values = np.concatenate([one[own].ravel() for one in every] + [sync.ravel()] * exchanges)
        return 2.0 / float(values[values > 0.0].min(initial=1.0))

    own = factor(loads, load, exchanges=costs.exchanges)
    other = factor(capped, float(costs.limit[costs.loads, 0]), exchanges=not costs.exchanges)
    scale = np.repeat([own, other], (len(loads), len(capped)))
    if costs.exchanges:
        return ComparedLoads(1.0, order, scale, own, len(capped))
    order = np.concatenate((capped, loads))
    return ComparedLoads(1.0, order, scale[order], other, len(loads))
