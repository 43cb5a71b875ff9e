"""Coefficients that say no more than that a row holds: they need not be larger than that takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.ir.affine import activity, merged
from placedsl.ir.program import RowBlock

#: What is left of numbers that are larger by this factor has lost too many digits.
_LOST = 1e-6


def tightened(block: RowBlock, lower: Floats, upper: Floats, integer: Booleans) -> RowBlock:
    """The rows with one side, over the same points.

    A 0/1 column that makes a row hold whatever the other columns are needs no larger coefficient for that: a time of
    months in a load that has to be seconds at least is seconds.  Where it has a larger one, a millionth of the column,
    which solvers take for none, would be enough.
    """
    least_sided = np.isfinite(block.lower) & ~np.isfinite(block.upper)
    one_sided = least_sided | (np.isfinite(block.upper) & ~np.isfinite(block.lower))
    if not one_sided.any():
        return block
    row, column, given = merged(block.row, block.column, block.coefficient, len(lower))
    sign = np.where(least_sided, 1.0, -1.0)
    coefficient = given * sign[row]
    least, _ = activity(row, column, coefficient, block.rows, lower, upper)
    ends = np.where(coefficient > 0.0, lower[column], upper[column])
    size = np.bincount(row, np.abs(coefficient * ends), minlength=block.rows)
    side = np.where(least_sided, block.lower, -block.upper)
    with np.errstate(invalid="ignore"):
        enough = np.where(one_sided & np.isfinite(least), side - least, np.inf)
    binary = integer & (lower == 0.0) & (upper == 1.0)
    # What is left of much larger numbers is not known well enough.
    sure = enough > _LOST * size
    more = binary[column] & (np.abs(coefficient) > enough[row]) & (enough[row] > 0.0) & sure[row]
    if not more.any():
        return block
    less = np.where(more, np.sign(coefficient) * enough[row], coefficient)
    # Of a column that makes the row hold where it is zero, the side goes down with the coefficient.
    shift = np.bincount(row, np.where(more & (coefficient < 0.0), less - coefficient, 0.0), minlength=block.rows)
    side = sign * (side + shift)
    return replace(
        block, row=row, column=column, coefficient=less * sign[row],
        lower=np.where(least_sided, side, block.lower),
        upper=np.where(one_sided & ~least_sided, side, block.upper),
    )  # fmt: skip
