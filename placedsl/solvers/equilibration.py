"""Units for solvers that compute with floating-point numbers and absolute tolerances.

A feasibility tolerance of 1e-6 means nothing for a load of 1e-4 seconds, and too much for one of 1e12
bytes.  Rows, continuous columns and the objective are therefore multiplied by powers of two, which is exact:
the scaled program has the same points and the same proofs.  Integer columns keep their unit.

Coefficients settle the unit of a continuous column against those of integer columns.  Where no row ties it to any, all
its rows and columns may be multiplied by one number, and what settles that is the size of their bounds.  Columns that
are fixed count for nothing: the time on a device that nothing can be on is no measure of the others.

Rows give way by the rounding of the bounds of their continuous columns, where a coefficient is not large beside it, so
that such a program is a relaxation by no more than that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, finite_sizes, whole_numbers
from placedsl.ir.program import LinearProgram
from placedsl.solvers.outcome import row_of_entry
from placedsl.tolerances import BOUND_ROUNDING, CONTRADICTION, MIP_FEASIBILITY


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The program in the solver's units, and the way back."""

    program: LinearProgram
    unit: Floats
    factor: float

    def point(self, values: Floats) -> Floats:
        """A point of the scaled program in the original units."""
        return np.asarray(values, dtype=float) * self.unit

    def value(self, objective: float) -> float:
        """An objective value or bound of the scaled program in the original units."""
        return objective / self.factor


#: For solvers that take a better point for none unless it is better by some absolute amount (CBC: 1e-5).
FINE_OBJECTIVE = 2.0**14

#: Where the largest coefficient of the objective is around one, smaller ones than this come near the tolerance of 1e-7
#: within which a reduced cost counts as none: the objective is then multiplied, by so much at most.
_SMALL_COST, _MOST_ENLARGED = 2.0**-10, 2.0**24

_PASSES = 8

#: A tenth of the feasibility that solvers are asked for: less, of a coefficient of an integer column, moves none.
_LITTLE = 0.1 * MIP_FEASIBILITY


def conditioned(program: LinearProgram, objective: float = 1.0) -> Conditioned:
    """The program with coefficients around one, by alternating geometric means of rows and columns.

    ``objective`` is the least that the largest coefficient of the objective may be.
    """
    row, column = row_of_entry(program), program.column
    moving = program.lower < program.upper
    entry = np.log2(np.abs(np.where(program.coefficient == 0.0, 1.0, program.coefficient)))
    of_integer = program.integer[column] & moving[column]
    # A row over integer columns takes its unit from the largest of their coefficients.
    largest = np.full(program.rows, -np.inf)
    np.maximum.at(largest, row[of_integer], entry[of_integer])
    settled = np.isfinite(largest)
    row_unit = np.where(settled, -largest, 0.0)
    unit = np.zeros(program.columns)
    free = ~program.integer[column] & moving[column]
    # A row over one column that is not fixed says nothing of its unit: any row factor makes its coefficient one.
    alone = ~settled & (np.bincount(row[moving[column]], minlength=program.rows) == 1)
    tells = free & ~alone[row]
    in_row = np.maximum(np.bincount(row[tells], minlength=program.rows), 1)
    in_column = np.maximum(np.bincount(column[tells], minlength=program.columns), 1)
    for _ in range(_PASSES if tells.any() else 0):
        mean = np.bincount(row[tells], entry[tells] + unit[column[tells]], program.rows) / in_row
        row_unit = np.where(settled, row_unit, -mean)
        unit = -np.bincount(column[tells], entry[tells] + row_unit[row[tells]], program.columns) / in_column
    size, known = _sizes(program, free, settled, unit, row_unit)
    row_unit[~settled] -= _of_rows(size, row[free], column[free], program.rows)[~settled]
    unit += size
    by_itself = free & alone[row]
    row_unit[row[by_itself]] = -(entry + unit[column])[by_itself]
    broken, by = _broken_rows(program, row, moving)
    row_unit[broken] = -np.log2(by)
    # HiGHS drops coefficients below 1e-9, whatever they are multiplied by.
    fixed = ~moving & ~program.integer & (program.lower != 0.0)
    unit[fixed] = np.log2(np.abs(program.lower[fixed]))
    unit = np.exp2(np.clip(np.round(unit), -60, 60))
    row_factor = np.exp2(np.clip(np.round(row_unit), -60, 60))
    cost = program.cost * unit
    top = float(np.abs(cost[moving & known]).max(initial=0.0))
    fits = top == 0.0 or objective <= top <= 1e4 * objective
    factor = 1.0 if fits else float(np.exp2(np.round(np.log2(objective / top))))
    counts = moving & known & (cost != 0.0)
    least = factor * float(np.abs(cost[counts]).min(initial=np.inf))
    if least < _SMALL_COST * objective:
        factor *= min(float(np.exp2(np.ceil(np.log2(_SMALL_COST * objective / least)))), _MOST_ENLARGED)
    slack = _slack_of_rows(program, row)
    scaled = replace(
        program,
        cost=cost * factor,
        offset=program.offset * factor,
        lower=program.lower / unit,
        upper=program.upper / unit,
        coefficient=program.coefficient * unit[column] * row_factor[row],
        row_lower=(program.row_lower - slack) * row_factor,
        row_upper=(program.row_upper + slack) * row_factor,
        hint=None if program.hint is None else program.hint / unit,
    )
    return Conditioned(scaled, unit, factor)


def _broken_rows(program: LinearProgram, row: Integers, moving: Booleans) -> tuple[Integers, Floats]:
    """Rows over columns that are all fixed and do not hold, and by how much: with that as their unit no tolerance takes
    them for kept."""
    decided = np.bincount(row[moving[program.column]], minlength=program.rows) == 0
    if not decided.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    terms = program.coefficient * program.lower[program.column]
    of_rows = decided[row]
    value = np.bincount(row[of_rows], terms[of_rows], program.rows)
    size = np.bincount(row[of_rows], np.abs(terms[of_rows]), program.rows)
    size = np.maximum(size, np.maximum(finite_sizes(program.row_lower), finite_sizes(program.row_upper)))
    by = np.maximum(program.row_lower - value, value - program.row_upper)
    fractional = ~program.integer[program.column] | ~whole_numbers(program.coefficient)
    whole = np.bincount(row[fractional], minlength=program.rows) == 0
    broken = np.flatnonzero(decided & np.isfinite(by) & (by > np.where(whole, 0.5, CONTRADICTION * size)))
    return broken, by[broken]


def _slack_of_rows(program: LinearProgram, row: Integers) -> Floats:
    """By how much each row may be broken: by what is rounded off the bounds of its continuous columns, where that is
    not little beside a coefficient of an integer column.

    A solver divides what bounds leave of a row by its coefficients.  Bounds stay as they are: where they are next to a
    whole number, reductions of HiGHS cut off what is at it.
    """
    column, size = program.column, np.abs(program.coefficient)
    reach = np.maximum(finite_sizes(program.lower), finite_sizes(program.upper))
    rounded_off = np.where(program.integer, 0.0, BOUND_ROUNDING * reach)
    moved = np.bincount(row, size * rounded_off[column], program.rows)
    least = np.full(program.rows, np.inf)
    whole = program.integer[column] & (size > 0.0)
    np.minimum.at(least, row[whole], size[whole])
    return np.where(moved > _LITTLE * least, moved, 0.0)


def _sizes(
    program: LinearProgram, free: Booleans, settled: Booleans, unit: Floats, row_unit: Floats
) -> tuple[Floats, Booleans]:
    """For each continuous column that no row ties to integer ones, the logarithm of the largest bound around it (zero
    for others), and which columns have a size at all.

    ``free``: entries of continuous columns that are not fixed; ``settled``: rows with integer columns; ``unit`` and
    ``row_unit`` are logarithms of what columns and rows are measured by so far.
    """
    row, column = row_of_entry(program), program.column
    out = np.zeros(program.columns)
    tied = program.integer | (program.lower >= program.upper)
    tied[column[settled[row] & free]] = True
    if tied.all():
        return out, tied
    part = np.arange(program.columns)
    ends = free & ~settled[row]
    one, of_row = column[ends], row[ends]
    before = np.full_like(part, -1)
    while not np.array_equal(part, before):
        before = part.copy()
        least = np.full(program.rows, program.columns)
        np.minimum.at(least, of_row, part[one])
        np.minimum.at(part, one, least[of_row])
        part = part[part]
    anchored = np.zeros(program.columns, dtype=bool)
    anchored[part[tied & (program.lower < program.upper)]] = True
    largest = np.full(program.columns, -np.inf)
    for side in (program.lower, program.upper):
        known = np.flatnonzero(np.isfinite(side) & (side != 0.0))
        np.maximum.at(largest, part[known], np.log2(np.abs(side[known])) - unit[known])
    for side in (program.row_lower, program.row_upper):
        known = np.isfinite(side) & (side != 0.0)
        some = known[of_row]
        bound = np.log2(np.abs(side[of_row[some]])) + row_unit[of_row[some]]
        np.maximum.at(largest, part[one[some]], bound)
    sized = np.isfinite(largest[part])
    moved = ~tied & ~anchored[part] & sized
    out[moved] = largest[part][moved]
    return out, tied | anchored[part] | sized


def _of_rows(size: Floats, row: Integers, column: Integers, rows: int) -> Floats:
    """What the columns of each row have in common, none of them integer."""
    out = np.zeros(rows)
    out[row] = size[column]
    return out
