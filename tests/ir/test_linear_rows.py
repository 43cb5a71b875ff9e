"""Linear programs as triplets, against enumeration of vertices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placedsl.ir.linear_rows import LinearRows


def least_at_vertices(cost, matrix, low, high, bounds) -> float:
    """The least over all vertices of a bounded polytope: enough rows and bounds hold with equality."""
    columns = len(cost)
    rows = np.vstack((matrix, matrix, np.eye(columns), np.eye(columns)))
    sides = np.concatenate((low, high, bounds[:, 0], bounds[:, 1]))
    best = np.inf
    for which in itertools.combinations(np.flatnonzero(np.isfinite(sides)), columns):
        chosen = rows[list(which)]
        if abs(np.linalg.det(chosen)) > 1e-9:
            x = np.linalg.solve(chosen, sides[list(which)])
            inside = (matrix @ x >= low - 1e-7).all() and (matrix @ x <= high + 1e-7).all()
            if inside and (x >= bounds[:, 0] - 1e-7).all() and (x <= bounds[:, 1] + 1e-7).all():
                best = min(best, float(cost @ x))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_the_least_is_that_of_the_best_vertex(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, cost = rng.integers(-3, 4, (4, 3)).astype(float), rng.normal(size=3)
    inside = rng.uniform(0.2, 1.8, 3)
    side = matrix @ inside
    low = np.array([side[0], side[1] - 1.0, -np.inf, side[3] - 0.5])
    high = np.array([side[0], np.inf, side[2] + 1.0, side[3] + 0.5])
    bounds = np.tile([0.0, 2.0], (3, 1))
    rows, (row, column) = LinearRows(), np.nonzero(matrix)
    for part in (np.flatnonzero(row < 2), np.flatnonzero(row >= 2)):
        first = 0 if not len(part) or row[part[0]] < 2 else 2
        rows.add(
            row[part] - first,
            column[part],
            matrix[row[part], column[part]],
            low[first : first + 2],
            high[first : first + 2],
        )
    assert rows.count == 4
    assert (rows.matrix(3).toarray() == matrix).all()
    found = rows.minimise(cost, bounds)
    assert found.status == 0
    assert found.fun == pytest.approx(least_at_vertices(cost, matrix, low, high, bounds), abs=1e-7)


def test_prices_of_rows_in_the_order_in_which_they_were_added() -> None:
    """``min 2 x + 3 y`` with ``x + y == 4`` and ``x <= 1`` as a row: the equation is worth 3, the row -1."""
    rows = LinearRows()
    rows.at_most(np.zeros(1, dtype=np.int64), np.array([0]), np.ones(1), np.ones(1))
    rows.equal(np.zeros(2, dtype=np.int64), np.array([0, 1]), np.ones(2), np.array([4.0]))
    found = rows.minimise(np.array([2.0, 3.0]))
    assert found.x == pytest.approx([1.0, 3.0])
    assert found.ineqlin.marginals == pytest.approx([-1.0])
    assert found.eqlin.marginals == pytest.approx([3.0])


def test_no_rows_at_all() -> None:
    found = LinearRows().minimise(np.array([1.0, -1.0]), np.array([[0.0, 1.0], [0.0, 2.0]]))
    assert found.x == pytest.approx([0.0, 2.0])


def test_the_same_rows_as_a_program_for_solvers() -> None:
    """``min x + 2 y`` with ``x + y == 3`` and ``2 y <= 4`` as a row, whose entries of one column add up."""
    rows = LinearRows()
    rows.equal(np.zeros(2, dtype=np.int64), np.array([1, 0]), np.ones(2), np.array([3.0]))
    rows.at_most(np.zeros(2, dtype=np.int64), np.array([1, 1]), np.ones(2), np.array([4.0]))
    program = rows.program(np.array([1.0, 2.0]))
    assert (program.rows, program.columns, program.offset) == (2, 2, 0.0)
    assert program.start.tolist() == [0, 2, 3]
    assert program.column.tolist() == [0, 1, 1]
    assert program.coefficient.tolist() == [1.0, 1.0, 2.0]
    assert (program.row_lower.tolist(), program.row_upper.tolist()) == ([3.0, -np.inf], [3.0, 4.0])
    assert (program.lower.tolist(), program.upper.tolist()) == ([0.0, 0.0], [np.inf, np.inf])
    assert not program.integer.any()


@pytest.mark.parametrize("seed", range(20))
def test_the_proven_least_is_the_least_or_less(seed: int) -> None:
    """With rows of every kind, from their multipliers alone."""
    rng = np.random.default_rng(seed)
    matrix, cost = rng.integers(-3, 4, (5, 3)).astype(float), rng.normal(size=3)
    side = matrix @ rng.uniform(0.2, 1.8, 3)
    low = np.array([side[0], side[1] - 1.0, -np.inf, side[3] - 0.5, -np.inf])
    high = np.array([side[0], np.inf, side[2] + 1.0, side[3] + 0.5, side[4]])
    rows, (row, column) = LinearRows(), np.nonzero(matrix)
    rows.add(row, column, matrix[row, column], low, high)
    rows.at_most(np.arange(3), np.arange(3), np.ones(3), np.full(3, 2.0))
    bounds = np.tile([0.0, 2.0], (3, 1))
    least = least_at_vertices(cost, matrix, low, high, bounds)
    found = rows.proven_least(cost, np.full(3, 2.0), seconds=10.0)
    assert found == pytest.approx(least)
    assert rows.proven_least(cost, np.full(3, 9.0), seconds=10.0) <= least + 1e-9
    rows.at_most(np.zeros(3, dtype=np.int64), np.arange(3), np.ones(3), np.array([-1.0]))
    assert rows.proven_least(cost, np.full(3, 2.0), seconds=10.0) == np.inf
