"""Column bounds from rows."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.ir.affine import activity
from placedsl.ir.program import RowBlock
from placedsl.tolerances import INTEGER_BOUND, SOLVER_ROW

#: Coefficients that differ by this factor are far apart: solvers keep rows to 1e-6 or so of their largest terms.
_FAR = 1e6


def tighten(lower: Floats, upper: Floats, integer: np.ndarray, blocks: list[RowBlock]) -> tuple[Floats, Floats]:
    """One pass of bound propagation for columns without finite bounds.

    A row that is an equality or inequality over otherwise bounded columns bounds the remaining one.
    """
    lower, upper = lower.copy(), upper.copy()
    unbounded = ~(np.isfinite(lower) & np.isfinite(upper))
    for block in blocks:
        open_column = unbounded[block.column]
        if not open_column.any():
            continue
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
        touched = block.column[entries]
        unbounded[touched] = ~(np.isfinite(lower[touched]) & np.isfinite(upper[touched]))
    lower[integer] = np.ceil(lower[integer] - INTEGER_BOUND)
    upper[integer] = np.floor(upper[integer] + INTEGER_BOUND)
    return lower, upper


def far_apart(block: RowBlock) -> bool:
    """Whether coefficients of rows of one family are so unlike that solvers may overlook the small ones."""
    least, largest = block.magnitudes
    return largest > _FAR * least


def narrowed(lower: Floats, upper: Floats, integer: Booleans, blocks: list[RowBlock]) -> bool:
    """One pass, in place, over columns that have bounds: whether any became narrower.

    0/1 columns that some row does not let be one, whatever the others are, are zero: numbers that would only count for
    such a column, a time on a device that is too slow by far, are out of the way.  Real columns have what the others of
    a row leave, where that is at most half of what they had.
    """
    before = upper[integer].sum(), np.count_nonzero(upper[integer])
    changed = False
    for block in blocks:
        changed |= _halved(lower, upper, integer, block)
        _exclude(lower, upper, integer, block)
    return bool(changed or (upper[integer].sum(), np.count_nonzero(upper[integer])) != before)


def _exclude(lower: Floats, upper: Floats, integer: Booleans, block: RowBlock) -> None:
    row, column, a = block.row, block.column, block.coefficient
    least, most = activity(row, column, a, block.rows, lower, upper)
    free = integer[column] & (lower[column] == 0.0) & (upper[column] == 1.0)
    with np.errstate(invalid="ignore"):
        over = (a > 0.0) & (least[row] + a > block.upper[row] + SOLVER_ROW * a)
        under = (a < 0.0) & (most[row] + a < block.lower[row] + SOLVER_ROW * a)
    upper[column[free & (over | under)]] = 0.0


def _halved(lower: Floats, upper: Floats, integer: Booleans, block: RowBlock) -> bool:
    real = np.flatnonzero(~integer[block.column] & (block.coefficient != 0.0))
    if not len(real):
        return False
    changed = False
    row, column, a = block.row[real], block.column[real], block.coefficient[real]
    for rises, sides in ((True, block.upper), (False, block.lower)):
        # The sum of a row at the end that is furthest from this side, and without the column's own term.
        ends = np.where((block.coefficient > 0.0) == rises, lower[block.column], upper[block.column])
        terms = np.where(np.isfinite(ends), block.coefficient * ends, 0.0)
        total, size = (np.bincount(block.row, v, block.rows) for v in (terms, np.abs(terms)))
        endless = np.bincount(block.row, ~np.isfinite(ends), block.rows)[row] - ~np.isfinite(ends[real])
        known = (endless == 0) & np.isfinite(sides[row])
        with np.errstate(invalid="ignore"):
            end = (sides[row] - (total[row] - terms[real])) / a
            slack = SOLVER_ROW * (np.abs(sides[row]) + size[row]) / np.abs(a)
        up = (a > 0.0) == rises
        for bounds, which, sign in ((upper, known & up, 1.0), (lower, known & ~up, -1.0)):
            own, value = column[which], end[which] + sign * slack[which]
            half = 0.5 * (lower[own] + upper[own])
            takes = (sign * value < sign * half) & (value >= lower[own]) & (value <= upper[own])
            changed |= bool(takes.any())
            (np.minimum if sign > 0.0 else np.maximum).at(bounds, own[takes], value[takes])
    return changed
