"""Instances with fewer units: runs of units along an order of the pipeline taken together.

A plan of the coarse instance is a plan of the instance itself, and its value is seldom far from the best.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.instance import PlanInstance
from placedsl.arrays import Integers
from placedsl.graph.order import topological


def coarse(instance: PlanInstance, groups: int) -> PlanInstance:
    """At most so many groups of units, of about the same work under their quickest options."""
    work = np.array(instance.degrees)[:, None] * instance.least(instance.options.time)
    work = np.where(np.isfinite(work), work, np.inf).min(axis=0)
    order = topological(instance.units, instance.before, instance.after)
    assert order is not None, "units follow one another"
    share = np.where(np.isfinite(work), work, 0.0)[order] + 1e-9 * float(work[np.isfinite(work)].max(initial=1.0))
    group = np.empty(instance.units, dtype=np.int64)
    group[order] = np.minimum(groups - 1, np.cumsum(share) / share.sum() * groups).astype(np.int64)
    group = np.unique(group, return_inverse=True)[1].astype(np.int64)
    tensor, reader = instance.reads
    before, after = _distinct(group[instance.before], group[instance.after])
    own = before != after
    return replace(
        instance, unit=group[instance.unit], producer=group[instance.producer],
        reads=_distinct(tensor, group[reader]), before=before[own], after=after[own],
    )  # fmt: skip


def _distinct(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """Pairs, each once."""
    pairs = np.unique(np.stack((first, second), axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]
