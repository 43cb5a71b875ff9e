"""The rules of a box as limits on sums over the stages of a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.pipelines.path_program.box import Box, StageChoice, ranges
from placedsl.algorithms.pipelines.path_program.stage_table_kernel import useful_stages
from placedsl.arrays import Floats, Integers
from placedsl.tolerances import EVALUATION

#: Limits are widened by this share of their terms: what the evaluator takes for the same must not be cut off.
WIDENED = 4.0 * EVALUATION


@dataclass(frozen=True, eq=False)
class Row:
    """``lower <= sum of values + time * time per sample <= upper``; values per stage of a table."""

    values: Floats
    time: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class PathRows:
    """S stages that a box leaves open (positions in its table, by rising goal), and rows over them."""

    stages: Integers
    rows: tuple[Row, ...]

    def limits(self, box: Box) -> tuple[Floats, Floats]:
        """S x R numbers and R limits: a path's sums are at most the limits, scaled to about 1."""
        values, limits = list[Floats](), list[float]()
        for row in self.rows:
            ends = (row.time * box.low, row.time * box.high) if row.time else (0.0, 0.0)
            for sign, side, end in ((1.0, row.upper, min(ends)), (-1.0, -row.lower, -max(ends))):
                if not np.isfinite(side):
                    continue
                limit = side - end
                size = max(abs(limit), float(np.abs(row.values).max(initial=0.0)), 1e-300)
                values.append(sign * row.values / size)
                limits.append(limit / size)
        if not values:
            return np.zeros((len(self.stages), 0)), np.zeros(0)
        return np.ascontiguousarray(np.stack(values, axis=1)), np.array(limits)


def path_rows(choice: StageChoice, box: Box) -> PathRows | None:
    """The rows of a box; None where no path is left."""
    table = choice.table
    open_ = useful_stages(table.base, table.goal, choice.within(box), table.ideals.count)
    stages = np.flatnonzero(open_)
    if not len(stages):
        return None
    kind, use = table.kind[stages], choice.must_use(box)
    rows = list[Row]()
    for c, count in enumerate(choice.instance.classes.counts):
        own = (kind == c).astype(float)
        rows.append(Row(own, 0.0, float(count) if use[c] else -np.inf, float(count)))
    for joint, values in zip(choice.instance.rules.joint, choice.joint, strict=True):
        rows.append(_widened(values[stages], joint.time, -np.inf, joint.upper))
    for one, part in zip(choice.families, ranges(choice.families, box), strict=True):
        if one.family.common is not None and np.isfinite(part.common).any():
            rows.append(_widened(one.common[stages], 0.0, *part.common))
    return PathRows(stages, tuple(rows))


def _widened(values: Floats, time: float, lower: float, upper: float) -> Row:
    size = 2.0 * float(np.abs(values).max(initial=0.0))
    slack = WIDENED * max(size, *(abs(side) for side in (lower, upper) if np.isfinite(side)), 0.0)
    return Row(values, time, lower - slack, upper + slack)
