"""What a limit on the latency leaves of a problem: fewer devices a node, fewer moves, larger units.

A node cannot be on a device where what comes before it, its time and what follows it are longer than the limit.  What
comes before is the longest path, each node at its best device, and the work of all earlier nodes that must be on the
same device.  A tensor cannot be moved where its readers would be too late; a reader that cannot be on another device
than the maker shares its unit.  All this is repeated until nothing changes, for each makes the others stronger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from placedsl.algorithms.dataflow.arrays import Flow, grouped, integers
from placedsl.algorithms.dataflow.narrow_kernel import all_reached, earliest, following, narrow, single
from placedsl.graph.graph import Floats, Integers

#: Up to so many nodes the work before and after each is looked at.
_MOST_NODES = 700
#: Above so many moves (tensors times pairs of devices) no limits are tried.
_MOST_MOVES = 2_000_000
#: Limits are taken to be larger by this share, for sums of times are rounded.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Narrow:
    """What is left: the problem (its times and moves inf where they cannot be, its moves in ``given``), and n x D how
    early nodes begin and how much follows them at least (inf where they cannot be)."""

    flow: Flow
    early: Floats
    late: Floats


@dataclass(frozen=True)
class Reach:
    """The nodes before each, and those after each, from ``…_start``."""

    before_start: Integers
    before: Integers
    after_start: Integers
    after: Integers


def reach_of(flow: Flow) -> Reach:
    """What comes before and after each node; nothing for large problems."""
    none = np.zeros(flow.nodes + 1, dtype=np.int64)
    if flow.nodes > _MOST_NODES or not flow.sequential:
        return Reach(none, none[:0], none, none[:0])
    v, w = np.nonzero(all_reached(flow))
    before_start, before = grouped(v, w, flow.nodes)
    after_start, after = grouped(w, v, flow.nodes)
    return Reach(before_start, before, after_start, after)


def with_table(flow: Flow) -> Flow:
    """The problem with all moves in ``given``; the arrays of times are its own."""
    given = flow.given.copy()
    if not len(given):
        with np.errstate(invalid="ignore"):
            given = flow.fixed + flow.per_size * flow.size[:, None, None]
        given = np.where(np.isnan(given), np.inf, given)
        given[:, np.arange(flow.devices), np.arange(flow.devices)] = 0.0
    return flow._replace(time=flow.time.copy(), given=np.ascontiguousarray(given))


def narrowed(flow: Flow, limit: float, reach: Reach | None = None, rounding: float = _ROUNDING) -> Narrow | None:
    """What schedules of at most so much latency can have; None where there are none.

    Memory is not looked at.  ``reach`` of the problem, where it is known.
    """
    out = with_table(flow)
    known = reach_of(flow) if reach is None else reach
    allowed = limit * (1.0 + rounding)
    tensor = np.repeat(np.arange(len(out.producer)), np.diff(out.reader_start))
    while True:
        apart = np.zeros(len(out.reader), dtype=np.bool_)
        if not narrow(out, allowed, known.before_start, known.before, known.after_start, known.after, apart):
            return None
        one, other = out.unit[out.producer[tensor]], out.unit[out.reader]
        together = ~apart & (one != other)
        if not together.any():
            break
        out = _united(out, one[together], other[together])
    only = single(out)
    early = earliest(out, only, known.before_start, known.before)
    return Narrow(out, early, following(out, only, known.after_start, known.after))


def _united(flow: Flow, one: Integers, other: Integers) -> Flow:
    """Units joined, pair by pair."""
    units = len(flow.member_start) - 1
    _, label = connected_components(coo_array((np.ones(len(one)), (one, other)), shape=(units, units)), directed=False)
    _, first, inverse = np.unique(label[flow.unit], return_index=True, return_inverse=True)
    unit = integers(np.argsort(np.argsort(first))[inverse])
    member_start, member = grouped(unit, np.arange(flow.nodes), len(first))
    return flow._replace(unit=unit, member_start=member_start, member=member)


def refuted(flow: Flow, low: float, high: float, reach: Reach | None = None, rounds: int = 10) -> float:
    """A latency that no schedule is below, from ``low`` (proven) up to ``high``, by narrowing alone."""
    if not high > low or len(flow.producer) * flow.devices**2 > _MOST_MOVES:
        return low
    known = reach_of(flow) if reach is None else reach
    if narrowed(flow, high, known) is None:
        return high
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        if narrowed(flow, middle, known) is None:
            low = middle
        else:
            high = middle
    return low
