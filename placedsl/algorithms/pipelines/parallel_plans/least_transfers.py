"""Compiled: what the transfers of a stage take, or at least take, from sums over the edges that two ideals cut.

What a stage sends and receives is all that its two ideals cut, less the edges that lead past it: those that the smaller
one cuts and whose producer is not in the larger one either.  How many these are depends, chain by chain, on how far the
larger one reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover
from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.arrays import Floats, Integers, Integers32

#: What sums are lowered by, for their rounding.
_ROUNDING = 1e-9
#: With more chains than this it takes less to walk over the edges.
_MOST_CHAINS = 32


class LeastTransfers(NamedTuple):
    """K ideals, e edges, c chains; seconds of device time, with the degree for which they are fewest.

    ``ahead``, ``behind``   K of the edges that an ideal cuts: on the devices of what is not in it, and of what is
    ``both``      e x 1 on both sides of an edge; e x (1 + g), with the seconds of the g classes beside it, where these
                  sums are what transfers take: every tensor has one reader, and there are few chains
    ``producer``  e the row of its producer: rows are positions on one chain after another
    ``first``     c + 1 first row of each chain
    ``row``       K x c how far the ideal reaches on each chain
    """

    ahead: Floats
    behind: Floats
    both: Floats
    producer: Integers
    first: Integers
    row: Integers32


def least_transfers(
    pairs: StagePairs, costs: StageCostModel, cover: ChainCover, positions: np.ndarray, degrees: Sequence[int]
) -> LeastTransfers:
    """The sums of all ideals.  ``degrees``: devices of a copy, by class."""
    share, cuts = np.array(degrees)[:, None], pairs.cuts
    read, made = ((share * cost[0, : len(degrees)]).min(axis=0) for cost in (pairs.input_cost, pairs.output_cost))
    inside = (cuts.code & 1) > 0

    def sums(values: Floats) -> Floats:
        of_ideals = np.add.reduceat(np.append(values, 0.0), cuts.start[:-1])
        out: Floats = np.where(np.diff(cuts.start) > 0, of_ideals, 0.0) * (1.0 - _ROUNDING)
        return out

    both = ((read + made) * (1.0 + _ROUNDING))[:, None]
    if cover.count <= _MOST_CHAINS and not inside.any() and int(costs.readers.max(initial=1)) == 1:
        of_classes = (pairs.input_cost + pairs.output_cost)[0, : len(degrees)]
        both = np.ascontiguousarray(np.concatenate((both, of_classes.T), axis=1))
    makes = (costs.role & 1) > 0
    producer = np.zeros(len(costs.readers), dtype=np.int64)
    unit = np.repeat(np.arange(costs.units), np.diff(costs.touch_start))[makes]
    producer[costs.touched[makes]] = cover.row_start[cover.chain[unit]] + cover.position[unit]
    return LeastTransfers(
        sums(np.where(inside, read[cuts.edge], made[cuts.edge])),
        sums(np.where(inside, made[cuts.edge], read[cuts.edge])),
        both, producer, cover.row_start.astype(np.int64),
        (cover.row_start[:-1] + positions).astype(np.int32),
    )  # fmt: skip


@kernel(nogil=True, no_cpython_wrapper=True)
def edges_past(transfers, cuts, base, past):  # type: ignore[no-untyped-def]
    """Write into ``past`` (a row as in ``both`` for each row of a chain) what the edges that ``base`` cuts take on both
    sides, if an ideal that reaches so far on the chain of their producer leaves it out; what those take at least that
    may always lead past a stage."""
    always = 0.0
    past[:] = 0.0
    for j in range(cuts.start[base], cuts.start[base + 1]):
        e = cuts.edge[j]
        if cuts.code[j] & 1:
            always += transfers.both[e, 0]
        else:
            for k in range(past.shape[1]):
                past[transfers.producer[e], k] += transfers.both[e, k]
    for c in range(len(transfers.first) - 1):
        for row in range(transfers.first[c + 1] - 2, transfers.first[c] - 1, -1):
            for k in range(past.shape[1]):
                past[row, k] += past[row + 1, k]
    return always


@kernel(nogil=True, no_cpython_wrapper=True)
def least_paid(transfers, past, always, base, goal):  # type: ignore[no-untyped-def]
    """The seconds of device time that the transfers of the stage between two ideals take at least."""
    paid = transfers.ahead[base] + transfers.behind[goal] - always
    for c in range(transfers.row.shape[1]):
        paid -= past[transfers.row[goal, c], 0]
    return max(paid, 0.0)


@kernel(nogil=True, no_cpython_wrapper=True)
def all_paid(pairs, transfers, past, base, goal, paid):  # type: ignore[no-untyped-def]
    """Write into ``paid`` (m x g) the seconds of the transfers of the stage between two ideals, by class."""
    for k in range(past.shape[1] - 1):
        seconds = pairs.own[0, k, goal] + pairs.rest[0, k, base]
        for c in range(transfers.row.shape[1]):
            seconds -= past[transfers.row[goal, c], k + 1]
        paid[0, k] = seconds
