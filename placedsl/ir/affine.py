"""Affine expressions over columns, one a row of a frame, as triplets."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, Integers, distinct

_EMPTY = np.zeros(0, dtype=np.int64)
_EMPTY_FLOATS = np.zeros(0)
#: So many triplets are sorted by scipy, which counts them into rows; loading it takes as long as sorting fewer.
_MANY = 300_000
#: Fewer rows than these are sorted by counting.
_FEW_ROWS = 1 << 16
#: So many triplets of a row are sorted side by side.
_SIDE_BY_SIDE = 4


class Affine:
    """``constant[i] + sum of coefficient * column`` over the triplets with ``row == i``.

    A sum keeps the triplets of its terms as they are until they are asked for: chains of sums are joined once.
    """

    def __init__(self, row: Integers, column: Integers, coefficient: Floats, constant: Floats) -> None:
        self._terms: tuple[tuple[Integers, Integers, Floats], ...] = ((row, column, coefficient),)
        self.constant = constant

    @property
    def row(self) -> Integers:
        """The row of each triplet."""
        return self._joined()[0]

    @property
    def column(self) -> Integers:
        """The column of each triplet."""
        return self._joined()[1]

    @property
    def coefficient(self) -> Floats:
        """The coefficient of each triplet."""
        return self._joined()[2]

    @property
    def is_number(self) -> bool:
        """Each coefficient and constant is a number, maybe infinite."""
        parts = [self.constant, *(coefficient for _, _, coefficient in self._terms)]
        return not any(np.isnan(part).any() for part in parts)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.constant)

    @property
    def is_data(self) -> bool:
        """No column occurs."""
        return not any(len(row) for row, _, _ in self._terms)

    def __add__(self, other: Affine) -> Affine:
        return self._sum(self._terms + other._terms, self.constant + other.constant)

    def __neg__(self) -> Affine:
        return self._sum(tuple((row, column, -by) for row, column, by in self._terms), -self.constant)

    def __sub__(self, other: Affine) -> Affine:
        return self + -other

    @classmethod
    def _sum(cls, terms: tuple[tuple[Integers, Integers, Floats], ...], constant: Floats) -> Affine:
        """Of terms, those without triplets left out."""
        made = cls(*terms[0], constant)
        made._terms = tuple(term for term in terms if len(term[0])) or terms[:1]
        return made

    def _joined(self) -> tuple[Integers, Integers, Floats]:
        if len(self._terms) > 1:
            row, column, coefficient = zip(*self._terms, strict=True)
            self._terms = ((np.concatenate(row), np.concatenate(column), np.concatenate(coefficient)),)
        return self._terms[0]

    def scaled(self, factor: Floats) -> Affine:
        """Each row times its factor; nothing times infinity is nothing."""
        row, column, coefficient = self._joined()
        if not factor.all():
            keep = factor[row] != 0.0
            row, column, coefficient = row[keep], column[keep], coefficient[keep]
        with np.errstate(invalid="ignore"):
            constant = self.constant * factor
        void = np.isnan(constant)
        if void.any():
            constant[void & ~np.isnan(self.constant) & ~np.isnan(factor)] = 0.0
        return Affine(row, column, coefficient * factor[row], constant)

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
        found = _one_a_row(self._terms, self.size)
        if found is None:
            columns = int(self.column.max(initial=-1)) + 1
            found = merged(self.row, self.column, self.coefficient, columns)
        return Affine(*found, self.constant)

    def summed(self, parent: Integers, rows: int) -> Affine:
        """Add up the rows that share a parent."""
        constant = np.bincount(parent, self.constant, minlength=rows).astype(float)
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
    exists = columns >= 0
    if exists.all():
        return Affine(np.arange(len(columns)), columns, np.ones(len(columns)), np.zeros(len(columns)))
    row = np.flatnonzero(exists)
    return Affine(row, columns[row], np.ones(len(row)), np.zeros(len(columns)))


def spread(start: Integers, counts: Integers) -> Integers:
    """``start[0], start[0]+1, … (counts[0] of them), start[1], …``: the entries of CSR ranges."""
    total = int(counts.sum())
    if not total:
        return _EMPTY
    out = np.repeat(start + counts - np.cumsum(counts), counts)
    out += np.arange(total)
    return out


def merged(row: Integers, column: Integers, coefficient: Floats, columns: int) -> tuple[Integers, Integers, Floats]:
    """Triplets sorted by row and column, with repeated entries added up and zeros dropped."""
    if _in_order(row, column):
        return _without_zeros(row, column, coefficient)
    if int(row.max()) < _FEW_ROWS and (row[1:] < row[:-1]).any():
        order = np.argsort(row.astype(np.uint16), kind="stable")
        row, column, coefficient = row[order], column[order], coefficient[order]
        if _in_order(row, column):
            return _without_zeros(row, column, coefficient)
    if len(row) >= _MANY and (found := _counted(row, column, coefficient, columns)) is not None:
        return found
    key = row * np.int64(columns) + column
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


def _in_order(row: Integers, column: Integers) -> bool:
    """Whether triplets are sorted by row and column, and none of them is there twice."""
    return bool(((row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (column[1:] > column[:-1]))).all())


def _without_zeros(row: Integers, column: Integers, coefficient: Floats) -> tuple[Integers, Integers, Floats]:
    filled = coefficient != 0.0
    return (row, column, coefficient) if filled.all() else (row[filled], column[filled], coefficient[filled])


def _one_a_row(
    terms: tuple[tuple[Integers, Integers, Floats], ...], rows: int
) -> tuple[Integers, Integers, Floats] | None:
    """Terms that have one triplet in each row, as triplets by row and column: they are sorted side by side.

    None where terms are not of that kind, where a row has a column twice, or a coefficient is zero.
    """
    width = len(terms)
    if not 1 < width <= _SIDE_BY_SIDE or not rows or any(len(row) != rows for row, _, _ in terms):
        return None
    if not all(row[0] == 0 and row[-1] == rows - 1 and (row[1:] > row[:-1]).all() for row, _, _ in terms):
        return None
    if not all(coefficient.all() for _, _, coefficient in terms):
        return None
    sides = sorted([(column, coefficient) for _, column, coefficient in terms], key=lambda side: int(side[0][0]))
    for last in range(width - 1, 0, -1):
        for i in range(last):
            (low, of_low), (high, of_high) = sides[i], sides[i + 1]
            if (low > high).any():
                ordered = low < high
                sides[i] = np.minimum(low, high), np.where(ordered, of_low, of_high)
                sides[i + 1] = np.maximum(low, high), np.where(ordered, of_high, of_low)
    if any((sides[i][0] == sides[i + 1][0]).any() for i in range(width - 1)):
        return None
    column, coefficient = np.empty((rows, width), dtype=np.int64), np.empty((rows, width))
    for i, (of_column, of_coefficient) in enumerate(sides):
        column[:, i], coefficient[:, i] = of_column, of_coefficient
    return np.repeat(np.arange(rows), width), column.ravel(), coefficient.ravel()


def _counted(
    row: Integers, column: Integers, coefficient: Floats, columns: int
) -> tuple[Integers, Integers, Floats] | None:
    """Triplets sorted by row and column, without zeros; None where some are of one row and column."""
    from scipy.sparse import coo_matrix

    rows = int(row.max()) + 1
    matrix = coo_matrix((coefficient, (row, column)), shape=(rows, columns)).tocsr()
    if matrix.nnz < len(row):
        return None
    row = np.repeat(np.arange(rows), np.diff(matrix.indptr))
    return _without_zeros(row, matrix.indices.astype(np.int64), matrix.data)


def activity(
    row: Integers, column: Integers, coefficient: Floats, rows: int, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """The least and the greatest value of each row's sum, given column bounds."""
    rising, low, high = coefficient > 0, lower[column], upper[column]
    if not rising.all():
        low, high = np.where(rising, low, high), np.where(rising, high, low)
    least = np.bincount(row, low * coefficient, minlength=rows).astype(float)
    return least, np.bincount(row, high * coefficient, minlength=rows).astype(float)


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
