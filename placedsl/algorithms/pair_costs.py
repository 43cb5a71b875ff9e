"""What the stage between two ideals reads on its meters: a table of ideals, and the kernels that look at two of them.

Of sums over units it is a difference.  Of the edges, one that only one of the two ideals cuts is paid once; one that
both cut is paid once where the stage has some of it, and not at all where it has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.algorithms.chains import Chains
from placedsl.algorithms.ideal_kernel import cut_costs, cut_lists
from placedsl.algorithms.stages import Stages
from placedsl.graph.graph import Floats, Integers


class Pairs(NamedTuple):
    """K ideals by weight, a subset before its supersets; m meters, c classes, e edges, W words an ideal.

    ``weight``      K whole numbers that grow with the ideal
    ``words``       W x K positions packed into lanes whose highest bit, set in ``top``, is free
    ``unit_sum``    m x c x K sums of the unit meters;  ``blocked``  c x K how many units the class does not support
    ``cut_start``, ``cut_edge``, ``cut_code``   the edges that ideal i cuts, and how much of each is inside:
                    1 for what makes it + 2 for each reader
    ``own``         m x c x K what the ideal itself would pay for edges;  ``rest``  the same for all that is outside
    ``meter``, ``kind``   the pairs of meter and class for which an edge costs something
    ``even``        m x c: reading and making cost the same
    ``read_meter``, ``make_meter``, ``limit``, ``loads``   as in :class:`placedsl.algorithms.stages.Stages`
    """

    weight: Integers
    words: np.ndarray
    top: np.uint64
    unit_sum: Floats
    blocked: Integers
    cut_start: Integers
    cut_edge: np.ndarray
    cut_code: np.ndarray
    own: Floats
    rest: Floats
    meter: Integers
    kind: Integers
    even: np.ndarray
    read_meter: Floats
    make_meter: Floats
    limit: Floats
    loads: int


def pairs_of(stages: Stages, cover: Chains, positions: np.ndarray, weight: Integers) -> tuple[Pairs, np.ndarray]:
    """The table of ideals that come in the order of a walk, sorted; and their positions in the table's order."""
    start, edge, code = cut_lists(
        positions, cover.start, cover.unit, stages.touch_start, stages.touched, stages.role, stages.readers
    )
    heavy = sums(cover, positions, weight)
    order = np.lexsort((positions.sum(axis=1, dtype=np.int64), heavy))
    moved = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.diff(start)[order])))
    entry = np.repeat(start[:-1][order] - moved[:-1], np.diff(moved)) + np.arange(moved[-1])
    edge, code, positions = edge[entry], code[entry], np.ascontiguousarray(positions[order])
    own, rest = cut_costs(moved, edge, code, stages.read_meter, stages.make_meter)
    words, top = _packed(positions, cover) if cover.count > 1 else (np.zeros((0, len(order)), np.uint64), np.uint64(0))
    paid = ((stages.read_meter + stages.make_meter) > 0.0).any(axis=2)
    meter, kind = np.nonzero(paid)
    # Limits are met where only the rounding of prefix sums says otherwise.
    rounding = 1e-12 * np.where(np.isfinite(stages.limit), np.abs(stages.unit_meter).sum(axis=2), 0.0)
    pairs = Pairs(
        heavy[order], words, top, sums(cover, positions, stages.unit_meter),
        sums(cover, positions, (~stages.supported).astype(np.int64)), moved, edge, code, own, rest, meter, kind,
        (stages.read_meter == stages.make_meter).all(axis=2), stages.read_meter, stages.make_meter,
        stages.limit + rounding, stages.loads,
    )  # fmt: skip
    return pairs, positions


def sums(cover: Chains, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums over each ideal; the units are the last axis of ``values``, the ideals that of the result."""
    prefix = cover.prefix_sums(values)
    out = np.zeros((*values.shape[:-1], len(positions)), dtype=values.dtype)
    for c in range(cover.count):
        out += prefix[..., cover.row_start[c] + positions[:, c].astype(np.int64)]
    return out


def between(cover: Chains, positions: np.ndarray, small: int, large: int) -> Integers:
    """The units that one ideal of a table has beyond another."""
    ends = zip(cover.start.tolist(), positions[small].tolist(), positions[large].tolist(), strict=False)
    units: Integers = np.concatenate([cover.unit[first + low : first + high] for first, low, high in ends])
    return units


def _packed(positions: np.ndarray, cover: Chains) -> tuple[np.ndarray, np.uint64]:
    """Positions in words of 64 bits, as many lanes a word as the longest chain allows."""
    longest = int(np.diff(cover.start).max())
    bits = next(b for b in (8, 16, 32, 64) if longest < 1 << (b - 1))
    lanes = 64 // bits
    words = np.zeros((-(-cover.count // lanes), len(positions)), dtype=np.uint64)
    for c in range(cover.count):
        words[c // lanes] |= positions[:, c].astype(np.uint64) << np.uint64(bits * (c % lanes))
    return words, np.uint64(sum(1 << (bits * lane + bits - 1) for lane in range(lanes)))


@njit(cache=True, nogil=True)
def contained(pairs, small, large):  # type: ignore[no-untyped-def]
    """Whether one ideal is a subset of the other."""
    for w in range(pairs.words.shape[0]):
        if ((pairs.words[w, large] | pairs.top) - pairs.words[w, small]) & pairs.top != pairs.top:
            return False
    return True


@njit(cache=True, nogil=True)
def marked(pairs, ideal, mark, on):  # type: ignore[no-untyped-def]
    """Note in ``mark`` (e entries) what an ideal has of the edges that it cuts, or wipe it out."""
    for j in range(pairs.cut_start[ideal], pairs.cut_start[ideal + 1]):
        mark[pairs.cut_edge[j]] = pairs.cut_code[j] if on else 0


@njit(cache=True, nogil=True)
def edges_paid(pairs, small, large, mark, paid):  # type: ignore[no-untyped-def]
    """What the stage pays for edges into ``paid[m, c]``, where there is something to pay; ``small`` is marked."""
    count = len(pairs.meter)
    for k in range(count):
        q, c = pairs.meter[k], pairs.kind[k]
        paid[q, c] = pairs.own[q, c, large] + pairs.rest[q, c, small]
    for j in range(pairs.cut_start[large], pairs.cut_start[large + 1]):
        e = pairs.cut_edge[j]
        before = mark[e]
        if before == 0:
            continue
        after = pairs.cut_code[j]
        made = (after & 1) != 0 and (before & 1) == 0
        some = after != before
        for k in range(count):
            q, c = pairs.meter[k], pairs.kind[k]
            read, make = pairs.read_meter[q, c, e], pairs.make_meter[q, c, e]
            change = -(make if after & 1 else read) - (read if before & 1 else make)
            if some:
                change += make if made else read
            paid[q, c] += change


@njit(cache=True, nogil=True)
def largest_load(pairs, small, large, c, paid):  # type: ignore[no-untyped-def]
    """The largest load of the stage on one device of class c; inf where another meter is above its limit."""
    largest = 0.0
    for q in range(pairs.limit.shape[0]):
        reading = pairs.unit_sum[q, c, large] - pairs.unit_sum[q, c, small] + paid[q, c]
        if q < pairs.loads:
            largest = max(largest, reading)
        elif reading > pairs.limit[q, c]:
            return np.inf
    return largest


@njit(cache=True, nogil=True)
def least_load(pairs, small, large, c):  # type: ignore[no-untyped-def]
    """A load that the stage exceeds, from its units and the cuts by themselves; inf where it is not allowed."""
    largest = 0.0
    for q in range(pairs.limit.shape[0]):
        reading = pairs.unit_sum[q, c, large] - pairs.unit_sum[q, c, small]
        if pairs.even[q, c]:
            reading += abs(pairs.own[q, c, large] - pairs.own[q, c, small])
        reading *= 1.0 - 1e-9
        if q < pairs.loads:
            largest = max(largest, reading)
        elif reading > pairs.limit[q, c]:
            return np.inf
    return largest
