"""Affine expressions over columns, one a row of a frame, as triplets."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, Integers, distinct
from placedsl.records import dataclass

_EMPTY = np.zeros(0, dtype=np.int64)
_EMPTY_FLOATS = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Affine:
    """``constant[i] + sum of coefficient * column`` over the triplets with ``row == i``."""

    row: Integers
    column: Integers
    coefficient: Floats
    constant: Floats

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.constant)

    @property
    def is_data(self) -> bool:
        """No column occurs."""
        return not len(self.row)

    def __add__(self, other: Affine) -> Affine:
        return Affine(
            np.concatenate((self.row, other.row)),
            np.concatenate((self.column, other.column)),
            np.concatenate((self.coefficient, other.coefficient)),
            self.constant + other.constant,
        )

    def __neg__(self) -> Affine:
        return Affine(self.row, self.column, -self.coefficient, -self.constant)

    def __sub__(self, other: Affine) -> Affine:
        return self + -other

    def scaled(self, factor: Floats) -> Affine:
        """Each row times its factor; nothing times infinity is nothing."""
        keep = factor[self.row] != 0.0
        row = self.row[keep]
        with np.errstate(invalid="ignore"):
            constant = self.constant * factor
        void = np.isnan(constant)
        if void.any():
            constant[void & ~np.isnan(self.constant) & ~np.isnan(factor)] = 0.0
        return Affine(row, self.column[keep], self.coefficient[keep] * factor[row], constant)

    def take(self, rows: Integers) -> Affine:
        """Row i of the result is row ``rows[i]`` of this one (rows may repeat)."""
        order = np.argsort(self.row, kind="stable")
        start = np.searchsorted(self.row[order], np.arange(self.size + 1))
        counts = start[rows + 1] - start[rows]
        entries = order[spread(start[rows], counts)]
        row = np.repeat(np.arange(len(rows)), counts)
        return Affine(row, self.column[entries], self.coefficient[entries], self.constant[rows])

    def merged(self) -> Affine:
        """The same with entries sorted, those of one row and column added up, and zeros dropped."""
        columns = int(self.column.max(initial=-1)) + 1
        return Affine(*merged(self.row, self.column, self.coefficient, columns), self.constant)

    def summed(self, parent: Integers, rows: int) -> Affine:
        """Add up the rows that share a parent."""
        constant = np.zeros(rows)
        np.add.at(constant, parent, self.constant)
        return Affine(parent[self.row], self.column, self.coefficient, constant)

    def placed(self, positions: Integers, rows: int) -> Affine:
        """Row i becomes row ``positions[i]`` of ``rows`` rows; the others are zero."""
        constant = np.zeros(rows)
        constant[positions] = self.constant
        return Affine(positions[self.row], self.column, self.coefficient, constant)


def data(values: Floats) -> Affine:
    """Numbers without columns."""
    return Affine(_EMPTY, _EMPTY, _EMPTY_FLOATS, np.asarray(values, dtype=float))


def of_columns(columns: Integers) -> Affine:
    """One column a row; -1 stands for zero."""
    row = np.flatnonzero(columns >= 0)
    return Affine(row, columns[row], np.ones(len(row)), np.zeros(len(columns)))


def spread(start: Integers, counts: Integers) -> Integers:
    """``start[0], start[0]+1, … (counts[0] of them), start[1], …``: the entries of CSR ranges."""
    total = int(counts.sum())
    if not total:
        return _EMPTY
    ends = np.cumsum(counts)
    return np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(start, counts)


def merged(row: Integers, column: Integers, coefficient: Floats, columns: int) -> tuple[Integers, Integers, Floats]:
    """Triplets sorted by row and column, with repeated entries added up and zeros dropped."""
    key = row * np.int64(columns) + column
    if (key[1:] > key[:-1]).all():
        filled = coefficient != 0.0
        return (row, column, coefficient) if filled.all() else (row[filled], column[filled], coefficient[filled])
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate((np.ones(1, dtype=bool), key[1:] != key[:-1])))
    row, column, total = row[order], column[order], coefficient[order]
    kept = total != 0.0
    if len(first) < len(key):
        # A sum that cancels but for rounding is zero.
        largest = np.maximum.reduceat(np.abs(total), first)
        row, column, total = row[first], column[first], np.add.reduceat(total, first)
        kept = np.abs(total) > 1e-12 * largest
    return (row, column, total) if kept.all() else (row[kept], column[kept], total[kept])


def activity(
    row: Integers, column: Integers, coefficient: Floats, rows: int, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """The least and the greatest value of each row's sum, given column bounds."""
    at_low = np.where(coefficient > 0, lower[column], upper[column]) * coefficient
    at_high = np.where(coefficient > 0, upper[column], lower[column]) * coefficient
    least, most = np.zeros(rows), np.zeros(rows)
    np.add.at(least, row, at_low)
    np.add.at(most, row, at_high)
    return least, most


def single_columns(body: Affine) -> Integers | None:
    """The columns, if each row is exactly one column with coefficient one."""
    if body.constant.any() or len(body.row) != body.size or not (body.coefficient == 1.0).all():
        return None
    out = np.full(body.size, -1, dtype=np.int64)
    out[body.row] = body.column
    return out if (out >= 0).all() else None


def membership_columns(body: Affine) -> Integers | None:
    """The columns, if each row is one column with coefficient one or nothing (-1)."""
    if body.constant.any() or not (body.coefficient == 1.0).all() or len(distinct(body.row)) < len(body.row):
        return None
    out = np.full(body.size, -1, dtype=np.int64)
    out[body.row] = body.column
    return out


def stack(values: list[Affine]) -> Affine:
    """One above the other."""
    offset, parts = 0, []
    total = sum(v.size for v in values)
    for value in values:
        parts.append(value.placed(np.arange(offset, offset + value.size), total))
        offset += value.size
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out
