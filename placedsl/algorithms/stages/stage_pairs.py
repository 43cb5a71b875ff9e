"""The stages between the ideals of a table: costs as arrays, for the kernels of ``cut_edges_kernel``."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover
from placedsl.algorithms.stages.cut_edges_kernel import CutEdges, StagePairs, cut_costs, cut_edges
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.arrays import Integers


def cuts_of(costs: StageCostModel, cover: ChainCover, positions: np.ndarray) -> CutEdges:
    """The edges that each ideal cuts; the ideals come in the order of a walk."""
    return CutEdges(
        *cut_edges(positions, cover.start, cover.unit, costs.touch_start, costs.touched, costs.role, costs.readers)
    )


def by_weight(positions: np.ndarray, weight: Integers, kept: Integers | None = None) -> Integers:
    """The ideals (those in ``kept``) by weight, then by size: a subset comes before its supersets."""
    rows = np.arange(len(positions)) if kept is None else kept
    order: Integers = rows[np.lexsort((positions[rows].sum(axis=1, dtype=np.int64), weight[rows]))]
    return order


def cuts_taken(cuts: CutEdges, rows: Integers) -> CutEdges:
    """The same of some of the ideals, in another order."""
    if len(rows) == len(cuts.start) - 1 and (rows[1:] > rows[:-1]).all():
        return cuts
    lengths = np.diff(cuts.start)[rows]
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
    entry = np.repeat(cuts.start[:-1][rows] - start[:-1], lengths) + np.arange(start[-1])
    return CutEdges(start, cuts.edge[entry], cuts.code[entry])


def stage_pairs(
    costs: StageCostModel, cover: ChainCover, positions: np.ndarray, weight: Integers, cuts: CutEdges
) -> StagePairs:
    """The stages between ideals that come by weight, as :func:`by_weight` orders them."""
    own, rest = cut_costs(cuts, costs.input_cost, costs.output_cost)
    wide = cover.count > 1
    words, top = _packed(positions, cover) if wide else (np.zeros((0, len(positions)), np.uint64), np.uint64(0))
    # Contiguous, so that kernels are compiled for one layout.
    component, kind = map(np.ascontiguousarray, np.nonzero(((costs.input_cost + costs.output_cost) > 0.0).any(axis=2)))
    # Limits are met where only the rounding of prefix sums says otherwise.
    rounding = 1e-12 * np.where(np.isfinite(costs.limit), np.abs(costs.unit_cost).sum(axis=2), 0.0)
    return StagePairs(
        weight, words, top, ideal_sums(cover, positions, costs.unit_cost),
        ideal_sums(cover, positions, (~costs.supported).astype(np.int64)), cuts, own, rest, component, kind,
        (costs.input_cost == costs.output_cost).all(axis=2), costs.input_cost, costs.output_cost,
        costs.limit + rounding, costs.loads, costs.per_byte if costs.per_byte.size else np.zeros(costs.limit.shape[1]),
        costs.room if costs.room.size else np.zeros(costs.limit.shape[1]),
    )  # fmt: skip


def all_stage_pairs(
    costs: StageCostModel, cover: ChainCover, positions: np.ndarray, unit_weight: Integers
) -> tuple[StagePairs, np.ndarray]:
    """The stages between ideals that come in the order of a walk; and the ideals' positions by weight."""
    weight = ideal_sums(cover, positions, unit_weight)
    rows = by_weight(positions, weight)
    cuts = cuts_taken(cuts_of(costs, cover, positions), rows)
    positions = np.ascontiguousarray(positions[rows])
    return stage_pairs(costs, cover, positions, weight[rows], cuts), positions


def ideal_sums(cover: ChainCover, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums over each ideal; the units are the last axis of ``values``, the ideals that of the result."""
    prefix = cover.prefix_sums(values)
    out = np.zeros((*values.shape[:-1], len(positions)), dtype=values.dtype)
    for c in range(cover.count):
        out += prefix.take(cover.row_start[c] + positions[:, c].astype(np.int64), axis=-1)
    return out


def between(cover: ChainCover, positions: np.ndarray, small: int, large: int) -> Integers:
    """The units that one ideal of a table has beyond another."""
    ends = zip(cover.start.tolist(), positions[small].tolist(), positions[large].tolist(), strict=False)
    units: Integers = np.concatenate([cover.unit[first + low : first + high] for first, low, high in ends])
    return units


def _packed(positions: np.ndarray, cover: ChainCover) -> tuple[np.ndarray, np.uint64]:
    """Positions in words of 64 bits, as many lanes per word as the longest chain allows; a lane's top bit is free."""
    longest = int(np.diff(cover.start).max())
    bits = next(b for b in (8, 16, 32, 64) if longest < 1 << (b - 1))
    lanes = 64 // bits
    words = np.zeros((-(-cover.count // lanes), len(positions)), dtype=np.uint64)
    for c in range(cover.count):
        words[c // lanes] |= positions[:, c].astype(np.uint64) << np.uint64(bits * (c % lanes))
    return words, np.uint64(sum(1 << (bits * lane + bits - 1) for lane in range(lanes)))
