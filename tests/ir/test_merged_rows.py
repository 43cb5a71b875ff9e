"""Triplets by row and column, however they are sorted: by comparison, by counting, or terms side by side."""

from __future__ import annotations

import numpy as np
import pytest

from placedsl.ir import affine
from placedsl.ir.affine import Affine


def _dense(row: np.ndarray, column: np.ndarray, coefficient: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    out = np.zeros(shape)
    np.add.at(out, (row, column), coefficient)
    return out


def _expect_sorted(found: tuple[np.ndarray, np.ndarray, np.ndarray], dense: np.ndarray) -> None:
    """The triplets are those of the matrix that are not zero, by row and column."""
    row, column = np.nonzero(dense)
    for one, other in zip(found, (row, column, dense[row, column]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0].dtype == found[1].dtype == np.int64


@pytest.mark.parametrize("few_rows", [0, 1 << 16])
@pytest.mark.parametrize("many", [1, 300_000])
@pytest.mark.parametrize("seed", range(40))
def test_every_way_of_sorting(seed: int, many: int, few_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    rows, columns, entries = rng.integers(1, 9, 3).tolist()
    cells = rng.permutation(rows * columns)[: entries * 4] if seed % 2 else rng.integers(0, rows * columns, entries * 4)
    row, column = np.divmod(cells, columns)
    if seed % 4 >= 2:  # columns in order, rows not
        order = np.argsort(column, kind="stable")
        row, column = row[order], column[order]
    coefficient = rng.choice([-1.5, 0.0, 1.0, 3.0], len(cells))
    monkeypatch.setattr(affine, "_MANY", many)
    monkeypatch.setattr(affine, "_FEW_ROWS", few_rows)
    found = affine.merged(row, column, coefficient, columns)
    _expect_sorted(found, _dense(row, column, coefficient, (rows, columns)))


@pytest.mark.parametrize("seed", range(200))
def test_sums_of_terms(seed: int) -> None:
    """Terms with one column a row; now and then one lacks rows, is zero somewhere, or has a column of another."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 7, 2).tolist()
    total = affine.data(np.zeros(rows))
    dense = np.zeros((rows, columns))
    for _ in range(rng.integers(1, 6)):
        row = np.arange(rows) if rng.random() < 0.8 else np.flatnonzero(rng.random(rows) < 0.5)
        column = rng.integers(0, columns, len(row))
        coefficient = rng.choice([-1.0, 1.0, 2.5, 0.0], len(row), p=[0.4, 0.4, 0.18, 0.02])
        total = total + Affine(row, column, coefficient, np.zeros(rows))
        dense += _dense(row, column, coefficient, (rows, columns))
    found = total.merged()
    _expect_sorted((found.row, found.column, found.coefficient), dense)
