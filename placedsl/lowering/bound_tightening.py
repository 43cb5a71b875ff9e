"""Column bounds from rows."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats
from placedsl.ir.affine import activity
from placedsl.ir.program import RowBlock
from placedsl.tolerances import INTEGER_BOUND, SOLVER_ROW


def tighten(lower: Floats, upper: Floats, integer: np.ndarray, blocks: list[RowBlock]) -> tuple[Floats, Floats]:
    """One pass of bound propagation for columns without finite bounds.

    A row that is an equality or inequality over otherwise bounded columns bounds the remaining one.
    """
    lower, upper = lower.copy(), upper.copy()
    for block in blocks:
        open_column = ~(np.isfinite(lower[block.column]) & np.isfinite(upper[block.column]))
        per_row = np.bincount(block.row, weights=open_column, minlength=block.rows)
        entries = np.flatnonzero(open_column & (per_row[block.row] == 1))
        if not len(entries):
            continue
        rest = ~open_column
        least, most = activity(block.row[rest], block.column[rest], block.coefficient[rest], block.rows, lower, upper)
        for low_side in (True, False):
            row, column, a = block.row[entries], block.column[entries], block.coefficient[entries]
            with np.errstate(invalid="ignore"):
                high = (block.upper[row] - least[row]) / a
                low = (block.lower[row] - most[row]) / a
            up = np.where(a > 0, high, low)
            down = np.where(a > 0, low, high)
            if low_side:
                np.maximum.at(lower, column[~np.isnan(down)], down[~np.isnan(down)])
            else:
                np.minimum.at(upper, column[~np.isnan(up)], up[~np.isnan(up)])
    lower[integer] = np.ceil(lower[integer] - INTEGER_BOUND)
    upper[integer] = np.floor(upper[integer] + INTEGER_BOUND)
    return lower, upper


def exclude(upper: Floats, lower: Floats, integer: np.ndarray, blocks: list[RowBlock]) -> None:
    """Fix to zero the 0/1 columns that some row does not let be one, whatever the others are.

    Numbers that would only count for such a column, a time on a device that is too slow by far, are out of the way.
    """
    for block in blocks:
        row, column, a = block.row, block.column, block.coefficient
        least, most = activity(row, column, a, block.rows, lower, upper)
        free = integer[column] & (lower[column] == 0.0) & (upper[column] == 1.0)
        with np.errstate(invalid="ignore"):
            over = (a > 0.0) & (least[row] + a > block.upper[row] + SOLVER_ROW * a)
            under = (a < 0.0) & (most[row] + a < block.lower[row] + SOLVER_ROW * a)
        upper[column[free & (over | under)]] = 0.0
