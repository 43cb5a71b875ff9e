"""Rows of whole numbers with large sums, and the simplest rows that have the same points.

A row whose sums are large beside the tolerance of a solver is dangerous in both ways: the solver takes points that
break it, and its own reductions cut off points that keep it.  Most such rows become small by arithmetic that is exact:

- a column that no point can move further ends there, and what is fixed goes to the sides;
- what all coefficients have in common is divided by, and the sides are rounded inwards;
- a side that every point keeps is none;
- a row with one side, measured from where it is kept least, is ``sum |a_j| y_j >= e`` with whole ``y_j >= 0``: no
  coefficient need be larger than ``e`` (saturation of knapsack covers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, whole_numbers
from placedsl.ir.affine import spread
from placedsl.ir.program import LinearProgram
from placedsl.solvers.outcome import row_of_entry
from placedsl.tolerances import EVALUATION, INTEGER_BOUND

#: Rows whose sums stay below this are exact for every solver: 1e-6 of it is less than a half.
LARGE = 1e5
#: So often are bounds of columns derived from rows, each time from those of the last.
_PASSES = 3


@dataclass(frozen=True, eq=False)
class WholeRows:
    """The rows of a program over integer columns with whole coefficients, as far as their sums are large.

    ``entries`` are their entries in the program, ``place`` the position in ``rows`` of each, ``reach`` the largest
    magnitude that each sum can have; ``low`` and ``high`` are whole or infinite.
    """

    program: LinearProgram
    rows: Integers
    entries: Integers
    place: Integers
    reach: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, program: LinearProgram) -> WholeRows:
        """Read them off; sides that are not whole are moved inwards to a whole number, past their own rounding."""
        row = row_of_entry(program)
        ends = np.maximum(np.abs(program.lower), np.abs(program.upper))
        reach = _sums(row, np.abs(program.coefficient) * ends[program.column], program.rows)
        other = ~program.integer[program.column] | ~whole_numbers(program.coefficient)
        whole = (np.bincount(row, other, program.rows) == 0) & (reach >= LARGE) & (reach < 2.0**53)
        rows = np.flatnonzero(whole)
        counts = np.diff(program.start)[rows]
        return cls(
            program, rows, spread(program.start[rows], counts), np.repeat(np.arange(len(rows)), counts), reach[rows],
            -_within(-program.row_lower[rows]), _within(program.row_upper[rows]),
        )  # fmt: skip

    def broken(self, point: Floats) -> Integers:
        """The rows that a point breaks once its integer columns are rounded."""
        terms = self.program.coefficient[self.entries] * np.rint(point[self.program.column[self.entries]])
        total = self.sums(terms)
        return self.rows[(total < self.low) | (total > self.high)]

    def sums(self, terms: Floats) -> Floats:
        """Row by row, the sum of one number an entry."""
        return _sums(self.place, terms, len(self.rows))


def _sums(place: Integers, terms: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(place, terms, count), dtype=np.float64)


def _within(side: Floats) -> Floats:
    """The greatest whole numbers that are within upper sides, as the evaluator compares."""
    loose = side + EVALUATION * np.where(np.isfinite(side), np.abs(side), 0.0)
    return np.where(whole_numbers(side), side, np.floor(loose))


def reduced(program: LinearProgram) -> LinearProgram:
    """The program with its large rows of whole numbers as simple as exact arithmetic makes them: the same rows in
    number and order, the same points in whole numbers."""
    known = WholeRows.of(program)
    if not len(known.rows):
        return program
    ends = _ends(known)
    if ends is None:
        return program
    lower, upper = ends
    column = program.column[known.entries]
    fixed = lower[column] == upper[column]
    given = program.coefficient[known.entries]
    moved = known.sums(np.where(fixed, given * lower[column], 0.0))
    small = _Small(known.place, np.where(fixed, 0.0, given), lower[column], upper[column], known.low - moved,
                   known.high - moved)  # fmt: skip
    small.divide()
    small.saturate()
    small.divide()
    if (small.low > small.high).any():
        return program
    coefficient = program.coefficient.copy()
    coefficient[known.entries] = small.coefficient
    kept = coefficient != 0.0
    counts = np.bincount(row_of_entry(program)[kept], minlength=program.rows)
    row_lower, row_upper = program.row_lower.copy(), program.row_upper.copy()
    row_lower[known.rows], row_upper[known.rows] = small.low, small.high
    return replace(
        program,
        lower=lower,
        upper=upper,
        start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        column=program.column[kept],
        coefficient=coefficient[kept],
        row_lower=row_lower,
        row_upper=row_upper,
    )


def _ends(known: WholeRows) -> tuple[Floats, Floats] | None:
    """The ends of all columns that these rows leave; None where they leave no point."""
    program = known.program
    lower, upper = program.lower.copy(), program.upper.copy()
    column, given = program.column[known.entries], program.coefficient[known.entries]
    used = np.unique(column)
    lower[used], upper[used] = np.ceil(lower[used] - INTEGER_BOUND), np.floor(upper[used] + INTEGER_BOUND)
    rising = given > 0.0
    for _ in range(_PASSES):
        low, high = lower[column], upper[column]
        above = known.high - known.sums(given * np.where(rising, low, high))
        below = known.sums(given * np.where(rising, high, low)) - known.low
        if (above < 0.0).any() or (below < 0.0).any() or (low > high).any():
            return None
        up, down = _steps(above[known.place], given), _steps(below[known.place], given)
        np.minimum.at(upper, column, low + np.where(rising, up, down))
        np.maximum.at(lower, column, high - np.where(rising, down, up))
        if np.array_equal(low, lower[column]) and np.array_equal(high, upper[column]):
            break
    return None if (lower[used] > upper[used]).any() else (lower, upper)


def _steps(room: Floats, coefficient: Floats) -> Floats:
    """How often a coefficient fits into a room, whole numbers both; infinite where the room is, or nothing is taken."""
    takes = np.isfinite(room) & (coefficient != 0.0)
    out = np.full(len(room), np.inf)
    out[takes] = room[takes].astype(np.int64) // np.abs(coefficient[takes]).astype(np.int64)
    return out


@dataclass(eq=False)
class _Small:
    """Rows over columns that move, made smaller in place: ``low <= sum of coefficient * column <= high``."""

    place: Integers
    coefficient: Floats
    lower: Floats
    upper: Floats
    low: Floats
    high: Floats

    def divide(self) -> None:
        """Divide each row by the greatest number that divides its coefficients; its sides are rounded inwards."""
        common = np.zeros(len(self.low), dtype=np.int64)
        np.gcd.at(common, self.place, np.abs(self.coefficient).astype(np.int64))
        common[common == 0] = 1
        self.coefficient = self.coefficient / common[self.place]
        self.low, self.high = -_floor(-self.low, common), _floor(self.high, common)

    def saturate(self) -> None:
        """Drop sides that every point keeps, and limit the coefficients of rows with one side."""
        high, low = self.high - self._sums(most=True), self.low - self._sums(most=False)
        self.high[high >= 0.0], self.low[low <= 0.0] = np.inf, -np.inf
        over, under = np.isfinite(self.high), np.isfinite(self.low)
        self.coefficient[(~over & ~under)[self.place]] = 0.0
        # What a point must stay away from the end where the sum is largest, or smallest.
        excess = np.where(over & ~under, -high, np.where(under & ~over, low, np.inf))
        most = excess[self.place]
        self.coefficient = np.clip(self.coefficient, -most, most)
        top, bottom = self._sums(most=True), self._sums(most=False)
        self.high = np.where(over & ~under, top - np.where(over, excess, 0.0), self.high)
        self.low = np.where(under & ~over, bottom + np.where(under, excess, 0.0), self.low)

    def _sums(self, *, most: bool) -> Floats:
        """The largest or smallest sum of each row."""
        at_upper: Booleans = (self.coefficient > 0.0) == most
        ends = np.where(at_upper, self.upper, self.lower)
        terms = np.where(self.coefficient == 0.0, 0.0, self.coefficient * ends)
        return _sums(self.place, terms, len(self.low))


def _floor(side: Floats, by: Integers) -> Floats:
    """Whole numbers divided and rounded down; infinite ones as they are."""
    known = np.isfinite(side)
    out = side.copy()
    out[known] = side[known].astype(np.int64) // by[known]
    return out
