"""Real data to integers for CP-SAT, so that a proof over the integers is one over the reals.

**Columns.**  An integer column stays.  A continuous column gets a grid: it becomes ``X / s`` with integer ``X``,
``s`` a power of two such that ``max|x| * s`` is about 2**30.  Columns of which rows say how they differ share the
coarsest of their grids, as long as that is no coarser than 2**20 steps for any of them.

**Rows.**  Every point that satisfies the real rows, with its continuous columns moved to the nearest grid value
(by at most ``1/(2s)``), satisfies the integer rows: nothing feasible is cut off, and what is infeasible over the
integers is infeasible.  With ``a_j / s_j`` the coefficient of ``X_j`` and ``m`` the row's multiplier,
``A_j = round(m a_j / s_j)`` errs by ``e_j``; for an upper side the limit is
``floor(m (u + sum |a_j| / (2 s_j)) + max over the domain of sum e_j X_j)``, for a lower side likewise.  ``m`` is
a power of ten times a power of two when that makes all coefficients integers (``e = 0``), otherwise large enough for a
total error below 1e-9 of the row's largest activity, and small enough that no sum leaves 2**60.

**Objective.**  The same with ``m``; the solver's bound less ``max of sum |e_j X_j| / m + sum |c_j| / (2 s_j)`` is a
bound of the real program.  That is about 1e-9 of the objective's largest value for each continuous column in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers

#: A grid has about this many steps.
_STEPS = 2.0**30
#: A shared grid has at least this power of two fewer steps.
_COARSER = 10
#: No sum over a row may become larger.
_LARGEST = 2.0**59
#: Error allowed in a row, of its largest activity.
_ROW_ERROR = 1e-9
_TENS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
#: A coefficient this close to an integer, relatively, is taken for it; the difference counts as any error does.
_ALMOST_INTEGER = 1e-12
#: What one product of doubles may err by, relatively.
_ULP = 4.5e-16


@dataclass(frozen=True, eq=False)
class Grid:
    """The integer unknown of each column: ``low <= X <= high``, real value ``X / scale``."""

    low: Integers
    high: Integers
    scale: Floats
    exact: Booleans

    @property
    def largest(self) -> Floats:
        """The largest absolute value of each unknown."""
        return np.maximum(abs(self.low), abs(self.high)).astype(float)

    @property
    def half_step(self) -> Floats:
        """How far a real value may be moved to the grid."""
        return np.where(self.exact, 0.0, 0.5 / self.scale)


@dataclass(frozen=True, eq=False)
class IntegerRows:
    """``lower <= sum of coefficient * X <= upper``; a side that is none is the least or greatest 64-bit number."""

    start: Integers
    column: Integers
    coefficient: Integers
    lower: Integers
    upper: Integers


@dataclass(frozen=True, eq=False)
class IntegerObjective:
    """``multiplier * c x`` over the unknowns, and how far below its value the real objective may be."""

    column: Integers
    coefficient: Integers
    multiplier: float
    error: float


#: What CP-SAT takes for no limit.
LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


def grid(lower: Floats, upper: Floats, integer: Booleans, alike: tuple[Integers, Integers] | None = None) -> Grid:
    """The unknowns of columns with finite bounds; ``integer`` ones keep their unit.

    ``alike``: pairs of columns that should have one grid.
    """
    reach = np.maximum(np.maximum(abs(lower), abs(upper)), 1e-30)
    power = np.clip(np.floor(np.log2(_STEPS / reach)), -200, 200)
    if alike is not None:
        power = _shared(power, *alike)
    scale = np.where(integer, 1.0, np.exp2(power))
    # A bound that misses an integer by rounding only is that integer.
    tiny = np.where(integer, 1e-6, 1e-9)
    low = np.where(integer, np.ceil(lower - tiny), np.floor(lower * scale + tiny))
    high = np.where(integer, np.floor(upper + tiny), np.ceil(upper * scale - tiny))
    return Grid(low.astype(np.int64), high.astype(np.int64), scale, integer.copy())


def _shared(power: Floats, one: Integers, other: Integers) -> Floats:
    """The least power among the columns that pairs connect, where that leaves them enough steps."""
    least = power.copy()
    for _ in range(len(power)):
        before = least.copy()
        np.minimum.at(least, one, least[other])
        np.minimum.at(least, other, least[one])
        if np.array_equal(before, least):
            break
    return np.where(least >= power - _COARSER, least, power)


def integer_rows(
    start: Integers, column: Integers, coefficient: Floats, lower: Floats, upper: Floats, unknowns: Grid
) -> IntegerRows:
    """The relaxation of ``lower <= A x <= upper`` over the unknowns."""
    rows = len(lower)
    row = np.repeat(np.arange(rows), np.diff(start))
    largest = unknowns.largest[column]
    # An unknown that is fixed to zero adds nothing, however large its coefficient would be.
    per_unit = np.where(largest > 0, coefficient / unknowns.scale[column], 0.0)
    reach = np.bincount(row, np.abs(per_unit) * largest, rows)
    slack = np.bincount(row, np.abs(coefficient) * unknowns.half_step[column], rows)
    finest = np.ones(rows)
    np.maximum.at(finest, row, unknowns.scale[column])
    multiplier = np.zeros(rows)
    for ten in _TENS:
        trial = ten * finest
        scaled = per_unit * trial[row]
        inexact = np.abs(scaled - np.rint(scaled)) > _ALMOST_INTEGER * np.abs(scaled)
        fits = (np.bincount(row, inexact, rows) == 0) & (reach * trial < _LARGEST) & (multiplier == 0)
        multiplier = np.where(fits, trial, multiplier)
    exact = multiplier > 0
    # Only what is not exact has to be made accurate: half a unit for each unknown.
    doubt = np.maximum(np.bincount(row, 0.5 * largest, rows), 0.5)
    wanted = np.ceil(np.log2(doubt / (_ROW_ERROR * np.maximum(reach, 1e-200))))
    # The sum stays below m * reach + doubt.
    most = np.floor(np.log2(0.5 * _LARGEST / np.maximum(reach, 1e-200)))
    wanted = np.maximum(wanted, np.log2(finest))
    multiplier = np.where(exact, multiplier, np.exp2(np.minimum(wanted, most)))
    scaled = per_unit * multiplier[row]
    whole = np.rint(scaled)
    error = whole - scaled
    at_low, at_high = error * unknowns.low[column], error * unknowns.high[column]
    above = np.bincount(row, np.maximum(at_low, at_high), rows)
    below = np.bincount(row, np.minimum(at_low, at_high), rows)
    # A product with a power of two does not err.
    noise = np.where(np.frexp(multiplier)[0] == 0.5, 0.0, _ULP * reach * multiplier)
    high = np.floor(_outwards(multiplier * (upper + slack) + above + noise, 1.0))
    low = np.ceil(_outwards(multiplier * (lower - slack) + below - noise, -1.0))
    limit = 2.0**62
    return IntegerRows(
        start, column, whole.astype(np.int64),
        np.where(low <= -limit, LEAST, np.clip(low, -limit, limit).astype(np.int64)),
        np.where(high >= limit, GREATEST, np.clip(high, -limit, limit).astype(np.int64)),
    )  # fmt: skip


def integer_objective(cost: Floats, unknowns: Grid) -> IntegerObjective:
    """The objective over the unknowns and the error of its bound."""
    column = np.flatnonzero(cost)
    moved = float((np.abs(cost) * unknowns.half_step).sum())
    if not len(column):
        return IntegerObjective(column, np.zeros(0, dtype=np.int64), 1.0, 0.0)
    largest = unknowns.largest[column]
    per_unit = np.where(largest > 0, cost[column] / unknowns.scale[column], 0.0)
    reach = max(float((np.abs(per_unit) * largest).sum()), 1e-200)
    doubt = max(float(0.5 * largest.sum()), 0.5)
    most = np.floor(np.log2(0.5 * _LARGEST / reach))
    multiplier = float(np.exp2(min(np.ceil(np.log2(doubt / (0.1 * _ROW_ERROR * reach))), most)))
    finest = float(unknowns.scale[column].max())
    for ten in _TENS:
        scaled = per_unit * ten * finest
        if reach * ten * finest < _LARGEST and (abs(scaled - np.rint(scaled)) <= _ALMOST_INTEGER * abs(scaled)).all():
            multiplier = ten * finest
            break
    scaled = per_unit * multiplier
    whole = np.rint(scaled)
    error = float((np.abs(whole - scaled) * largest).sum()) / multiplier
    return IntegerObjective(column, whole.astype(np.int64), multiplier, moved + error + _ULP * reach)


def _outwards(value: Floats, sign: float) -> Floats:
    """Moved by what doubles of that size cannot tell apart; infinities as they are."""
    finite = np.isfinite(value)
    return np.where(finite, value + sign * _ULP * np.abs(np.where(finite, value, 0.0)), value)
