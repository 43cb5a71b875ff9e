"""A point of which some columns are known, completed by what the rows make of the others."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.ir.program import Program, RowBlock
from placedsl.ir.row_meaning import meaning
from placedsl.tolerances import PROPAGATED_BOUND, SOLVER_ROW

#: Rounds of propagation at most, and what counts as a change.
_ROUNDS = 2000
_CHANGE = 1e-9


def completed(program: Program, point: Floats, further: tuple[RowBlock, ...] = ()) -> Floats:
    """The point with all columns that rows and conditions settle, and the others as small as these let them be.

    ``further`` are rows besides the program's.  Rows that hold a column from below make it what it means (the time of
    what waits for something known).  A column without such a limit stays unknown (nan), and all of them where the known
    ones contradict one another.
    """
    known = ~np.isnan(point)
    lower, upper = np.where(known, point, program.lower), np.where(known, point, program.upper)
    whole = program.integer
    conditional = [part for c in program.constraints for part in meaning(c).conditional(c)]
    for _ in range(_ROUNDS):
        before = lower.copy(), upper.copy()
        for block in (*further, *program.rows):
            _tighten(block, np.ones(block.rows, dtype=bool), lower, upper)
        for part in conditional:
            met = np.where(part.literal_value, lower[part.literal_column] > 0.5, upper[part.literal_column] < 0.5)
            unmet = np.bincount(part.literal_row, ~met, minlength=part.rows.rows)
            _tighten(part.rows, unmet == 0, lower, upper)
        for constraint in program.constraints:
            np.maximum.at(lower, *meaning(constraint).least(constraint, lower))
        lower[whole], upper[whole] = np.ceil(lower[whole] - PROPAGATED_BOUND), np.floor(upper[whole] + PROPAGATED_BOUND)
        if (lower > upper + SOLVER_ROW * np.maximum(1.0, np.abs(upper))).any():
            return point
        if _same(before[0], lower) and _same(before[1], upper):
            break
    return np.where(known, point, np.where(np.isfinite(lower), lower, np.nan))


def _same(left: Floats, right: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        near = (left == right) | (np.abs(left - right) <= _CHANGE * np.maximum(1e-3, np.abs(right)))
    return bool(near.all())


def _tighten(block: RowBlock, holds: Booleans, lower: Floats, upper: Floats) -> None:
    """Bounds of each column from the rows that hold, and the bounds of the others in them."""
    entries = np.flatnonzero(holds[block.row] & (lower[block.column] < upper[block.column]))
    if not len(entries):
        return
    positive = block.coefficient > 0
    column, row, a = block.column[entries], block.row[entries], block.coefficient[entries]
    rises = positive[entries]
    for low_side in (True, False):
        # The least (greatest) of the sum, and how many of its terms have none.
        end = np.where(positive == low_side, lower[block.column], upper[block.column])
        term = block.coefficient * np.where(np.isfinite(end), end, 0.0)
        without = np.bincount(block.row, ~np.isfinite(end), minlength=block.rows)
        total = np.bincount(block.row, term, minlength=block.rows)
        alone = without[row] - ~np.isfinite(end[entries]) == 0
        others = total[row] - term[entries]
        side = (block.upper if low_side else block.lower)[row]
        some = np.flatnonzero(alone & np.isfinite(side))
        limit = (side[some] - others[some]) / a[some]
        up = rises[some] == low_side
        np.minimum.at(upper, column[some[up]], limit[up])
        np.maximum.at(lower, column[some[~up]], limit[~up])
