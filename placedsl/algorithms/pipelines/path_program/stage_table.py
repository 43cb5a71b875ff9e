"""All stages of a pipeline's ideals, with what rules of a spec may say of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.path_program.stage_table_kernel import stages_within
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import all_stage_pairs, between, ideal_sums
from placedsl.arrays import Floats, Integers, Integers32

#: More ideals, and more stages, than this are not looked at.
MOST_IDEALS = 12_000
MOST_STAGES = 3_000_000


@dataclass(frozen=True, eq=False)
class IdealTable:
    """K ideals by weight, the empty one first and everything last."""

    costs: StageCostModel
    cover: ChainCover
    positions: np.ndarray
    pairs: StagePairs

    @property
    def count(self) -> int:
        """How many ideals there are."""
        return len(self.positions)

    def sums(self, values: Floats) -> Floats:
        """Sums of numbers of units (the last axis) over each ideal."""
        return ideal_sums(self.cover, self.positions, values)

    def units(self, base: int, goal: int) -> Integers:
        """The units of a stage."""
        return between(self.cover, self.positions, base, goal)


@dataclass(frozen=True, eq=False)
class StageTable:
    """S stages by rising ``goal``: ideals ``base`` and ``goal``, device class ``kind``, and what they cost.

    ``load`` of the device, ``compute`` and ``transfer`` time, ``memory`` in bytes.
    """

    ideals: IdealTable
    base: Integers32
    goal: Integers32
    kind: Integers32
    load: Floats
    compute: Floats
    transfer: Floats
    memory: Floats

    @property
    def count(self) -> int:
        """How many stages there are."""
        return len(self.base)


def ideal_table(costs: StageCostModel, most: int = MOST_IDEALS) -> IdealTable | None:
    """All ideals; None where there are more than so many."""
    cover = chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return None
    weight = np.ones(costs.units, dtype=np.int64)
    walked = ideals(cover, weight, most=most)
    if not walked.complete:
        return None
    pairs, positions = all_stage_pairs(costs, cover, walked.positions, weight)
    return IdealTable(costs, cover, positions, pairs)


def stage_table(table: IdealTable, bound: float, most: int = MOST_STAGES) -> StageTable | None:
    """The stages whose loads are at most ``bound``; None where there are more than so many."""
    classes = len(table.costs.classes.counts)
    count, base, goal, kind, load, moved = stages_within(table.pairs, classes, bound, most)
    if count > most:
        return None
    computed = table.pairs.unit_sum[0]
    held = table.pairs.unit_sum[-1]
    return StageTable(
        table, base, goal, kind, load, computed[kind, goal] - computed[kind, base], moved,
        held[kind, goal] - held[kind, base],
    )  # fmt: skip
