"""Finite bounds for columns that have none, for solvers over bounded integers."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.ir.program import LinearProgram
from placedsl.ir.row_meaning import meaning
from placedsl.solvers.outcome import row_of_entry
from placedsl.tolerances import INTEGER_BOUND, PROPAGATED_BOUND

#: From here on a bound counts as none.
_FAR = 1e15


def finite_bounds(program: LinearProgram, passes: int = 20) -> tuple[Floats, Floats]:
    """Bounds that keep at least one optimal point, if there is any; infinite where none could be derived.

    Rows and global constraints give most of them.  A column that never helps by being larger than what
    its rows need (it costs, and only rows that want it large hold it) is limited to that need, and likewise downwards.
    """
    lower = np.where(program.lower <= -_FAR, -np.inf, program.lower)
    upper = np.where(program.upper >= _FAR, np.inf, program.upper)
    row, column, coefficient, row_lower, row_upper = _unconditional(program)
    rows = len(row_lower)
    held = np.zeros(program.columns, dtype=bool)
    for constraint in program.native:
        held[meaning(constraint).held(constraint)] = True
    for _ in range(passes):
        before = int(np.isinf(lower).sum() + np.isinf(upper).sum())
        if not before:
            break
        _from_rows(row, column, coefficient, row_lower, row_upper, rows, lower, upper)
        _from_native(program, lower, upper)
        after = int(np.isinf(lower).sum() + np.isinf(upper).sum())
        if after == before:
            _from_need(program, row, column, coefficient, row_lower, row_upper, held, lower, upper)
            if int(np.isinf(lower).sum() + np.isinf(upper).sum()) == before:
                break
    lower[program.integer] = np.ceil(lower[program.integer] - PROPAGATED_BOUND)
    upper[program.integer] = np.floor(upper[program.integer] + PROPAGATED_BOUND)
    return lower, upper


def _unconditional(program: LinearProgram) -> tuple[Integers, Integers, Floats, Floats, Floats]:
    """The rows as triplets, with those of global constraints that hold in every point."""
    row, column, coefficient = [row_of_entry(program)], [program.column], [program.coefficient]
    low, high, count = [program.row_lower], [program.row_upper], program.rows
    for constraint in program.native:
        for block in meaning(constraint).unconditional(constraint):
            row.append(count + block.row)
            column.append(block.column)
            coefficient.append(block.coefficient)
            low.append(block.lower)
            high.append(block.upper)
            count += block.rows
    return (
        np.concatenate(row), np.concatenate(column), np.concatenate(coefficient),
        np.concatenate(low), np.concatenate(high),
    )  # fmt: skip


def _rest(
    row: Integers, column: Integers, coefficient: Floats, rows: int, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """For each entry, the least and greatest sum of the other entries of its row."""
    found = []
    positive = coefficient > 0
    for first, second in ((lower, upper), (upper, lower)):
        end = np.where(positive, first[column], second[column])
        part = np.where(np.isinf(end), 0.0, coefficient * np.where(np.isinf(end), 0.0, end))
        total = np.bincount(row, part, rows)
        open_ends = np.bincount(row, np.isinf(end), rows)
        others = open_ends[row] - np.isinf(end)
        found.append(np.where(others == 0, total[row] - part, np.nan))
    return np.where(np.isnan(found[0]), -np.inf, found[0]), np.where(np.isnan(found[1]), np.inf, found[1])


def _from_rows(
    row: Integers, column: Integers, coefficient: Floats, row_lower: Floats, row_upper: Floats, rows: int,
    lower: Floats, upper: Floats,
) -> None:  # fmt: skip
    """Only bounds that are missing are derived."""
    least, most = _rest(row, column, coefficient, rows, lower, upper)
    with np.errstate(invalid="ignore"):
        by_high, by_low = (row_upper[row] - least) / coefficient, (row_lower[row] - most) / coefficient
    positive = coefficient > 0
    up, down = np.where(positive, by_high, by_low), np.where(positive, by_low, by_high)
    for bounds, values, pick in ((upper, up, np.minimum), (lower, down, np.maximum)):
        missing = np.isinf(bounds[column]) & np.isfinite(values)
        pick.at(bounds, column[missing], values[missing])


def _from_native(program: LinearProgram, lower: Floats, upper: Floats) -> None:
    for constraint in program.native:
        # A maximum that need not be exact is never better for being larger: the same limit holds.
        column, low, high = meaning(constraint).limits(constraint, lower, upper)
        lower[column] = np.maximum(lower[column], low)
        upper[column] = np.minimum(upper[column], high)


def _from_need(
    program: LinearProgram, row: Integers, column: Integers, coefficient: Floats, row_lower: Floats,
    row_upper: Floats, held: Booleans, lower: Floats, upper: Floats,
) -> None:  # fmt: skip
    least, most = _rest(row, column, coefficient, len(row_lower), lower, upper)
    positive = coefficient > 0
    for sign, bounds, other in ((1.0, upper, lower), (-1.0, lower, upper)):
        grows = positive if sign > 0 else ~positive
        # Does moving the column in this direction push the row towards a limit?
        hurts = np.where(grows, np.isfinite(row_upper[row]), np.isfinite(row_lower[row]))
        with np.errstate(invalid="ignore"):
            need = np.where(grows, row_lower[row] - least, row_upper[row] - most) / coefficient * sign
        needs = np.where(grows, np.isfinite(row_lower[row]), np.isfinite(row_upper[row]))
        need = np.where(needs, need, -np.inf)
        wanted = np.full(program.columns, -np.inf)
        np.maximum.at(wanted, column, need)
        free = np.isinf(bounds) & (program.cost * sign >= 0) & ~held & (wanted < np.inf)
        free[column[hurts]] = False
        base = np.where(np.isfinite(other), other * sign, np.minimum(0.0, np.where(np.isfinite(wanted), wanted, 0.0)))
        found = np.maximum(wanted, base)
        found = np.where(program.integer, np.ceil(found - INTEGER_BOUND), found)
        bounds[free] = sign * found[free]
