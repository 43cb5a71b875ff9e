"""Domain reduction: what a limit on the latency leaves of an instance: fewer devices per node, fewer transfers, larger
units.

A node cannot be on a device if its head, its time and its tail together exceed the limit.  The head is the longest path
to it with each node on its best device, or the work of all predecessors that must be on the same device.  A tensor
cannot be transferred if its readers would be too late; a reader that cannot be on another device than the producer
joins its unit.  All this is repeated until nothing changes, for each reduction makes the others stronger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from placedsl.algorithms.operator_scheduling.bounds.domain_reduction_kernel import reduce
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import (
    Reachability,
    all_predecessors,
    heads,
    paths_only,
    single_device,
    tails,
)
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr
from placedsl.tolerances import LIMIT_SLACK

#: Up to so many nodes the work of predecessors and successors is considered.
_MOST_NODES = 700
#: Above so many transfers (tensors times pairs of devices) no limits are tried.
_MOST_MOVES = 2_000_000


@dataclass(frozen=True)
class ReducedDomains:
    """What is left: the instance (times and transfers inf where they are impossible, all transfers in ``given``), and
    heads and tails, n x D seconds (inf where a node cannot be).
    """

    instance: SchedulingInstance
    heads: Floats
    tails: Floats


def reachability(instance: SchedulingInstance) -> Reachability:
    """The predecessors and successors of each node; empty for large problems, whose heads and tails are paths alone."""
    if instance.nodes > _MOST_NODES or not instance.sequential:
        return paths_only(instance)
    v, w = np.nonzero(all_predecessors(instance))
    before_start, before = csr(v, w, instance.nodes)
    after_start, after = csr(w, v, instance.nodes)
    return Reachability(before_start, before, after_start, after)


def with_explicit_transfers(instance: SchedulingInstance) -> SchedulingInstance:
    """The instance with all transfer times in ``given``; its arrays of times are copies."""
    given = instance.given.copy()
    if not len(given):
        with np.errstate(invalid="ignore"):
            given = instance.fixed + instance.per_size * instance.size[:, None, None]
        given = np.where(np.isnan(given), np.inf, given)
        given[:, np.arange(instance.devices), np.arange(instance.devices)] = 0.0
    return instance._replace(time=instance.time.copy(), given=np.ascontiguousarray(given))


def reduce_domains(
    instance: SchedulingInstance, limit: float, reach: Reachability | None = None, rounding: float = LIMIT_SLACK
) -> ReducedDomains | None:
    """What schedules of at most ``limit`` seconds can use; None if there are none.

    Memory is not considered.  ``reach``: the reachability of the instance, where it is known; ``rounding``: the share
    by which the limit is enlarged.
    """
    out = with_explicit_transfers(instance)
    known = reachability(instance) if reach is None else reach
    allowed = limit * (1.0 + rounding)
    tensor = np.repeat(np.arange(len(out.producer)), np.diff(out.reader_start))
    while True:
        apart = np.zeros(len(out.reader), dtype=np.bool_)
        if not reduce(out, allowed, known, apart):
            return None
        one, other = out.unit[out.producer[tensor]], out.unit[out.reader]
        together = ~apart & (one != other)
        if not together.any():
            break
        out = _united(out, one[together], other[together])
    only = single_device(out)
    nothing = np.zeros(out.time.shape)
    return ReducedDomains(out, heads(out, only, known), tails(out, only, known, nothing))


def _united(instance: SchedulingInstance, one: Integers, other: Integers) -> SchedulingInstance:
    """Units merged, pair by pair."""
    units = len(instance.member_start) - 1
    _, label = connected_components(coo_array((np.ones(len(one)), (one, other)), shape=(units, units)), directed=False)
    _, first, inverse = np.unique(label[instance.unit], return_index=True, return_inverse=True)
    unit = integers(np.argsort(np.argsort(first))[inverse])
    member_start, member = csr(unit, np.arange(instance.nodes), len(first))
    return instance._replace(unit=unit, member_start=member_start, member=member)


def destructive_bound(
    instance: SchedulingInstance, low: float, high: float, reach: Reachability | None = None, rounds: int = 10
) -> float:
    """The destructive lower bound: a latency in [``low``, ``high``] that no schedule undercuts (``low`` is proven), by
    bisection.
    """
    if not high > low or len(instance.producer) * instance.devices**2 > _MOST_MOVES:
        return low
    known = reachability(instance) if reach is None else reach
    if reduce_domains(instance, high, known) is None:
        return high
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        if reduce_domains(instance, middle, known) is None:
            low = middle
        else:
            high = middle
    return low
