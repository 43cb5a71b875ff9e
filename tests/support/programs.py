"""Programs for the tests of solvers, and their optima by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placedsl.ir.program import (
    Implication,
    LinearProgram,
    Maximum,
    Objective,
    Origin,
    Product,
    Program,
    RowBlock,
)
from placedsl.solvers.interface import Outcome

INF = np.inf


def linear(cost, matrix, low, high, lower_bound, upper_bound, integer, offset=0.0, hint=None) -> LinearProgram:
    matrix = np.asarray(matrix, dtype=float).reshape(len(low), len(cost))
    row, column = np.nonzero(matrix)
    start = np.searchsorted(row, np.arange(len(low) + 1))
    floats = [np.asarray(values, dtype=float) for values in (cost, lower_bound, upper_bound, low, high)]
    return LinearProgram(
        floats[0], offset, floats[1], floats[2], np.asarray(integer, dtype=bool), start, column, matrix[row, column],
        floats[3], floats[4], hint=hint, origins=(Origin("rows"),), origin_start=np.array([0, len(low)]),
    )  # fmt: skip


def dense(program: LinearProgram) -> np.ndarray:
    matrix = np.zeros((program.rows, program.columns))
    matrix[np.repeat(np.arange(program.rows), np.diff(program.start)), program.column] = program.coefficient
    return matrix


def integer_points(program: LinearProgram | Program) -> np.ndarray:
    """All values of the integer columns; the others are nan."""
    ranges = [
        np.arange(low, high + 1) if whole else [np.nan]
        for low, high, whole in zip(program.lower, program.upper, program.integer, strict=True)
    ]
    return np.array(list(itertools.product(*ranges)))


def optimum(program: LinearProgram) -> float:
    """By enumeration; a continuous column costs something and is in rows ``T >= expression`` only."""
    points, matrix = integer_points(program), dense(program)
    for j in np.flatnonzero(~program.integer):
        known = np.delete(np.arange(program.columns), j)
        needs = [np.full(len(points), program.lower[j])]
        for i in np.flatnonzero(matrix[:, j]):
            assert matrix[i, j] < 0
            needs.append((points[:, known] @ matrix[i, known] - program.row_upper[i]) / -matrix[i, j])
        points[:, j] = np.max(needs, axis=0)
    activity = points @ matrix.T
    feasible = ((activity >= program.row_lower - 1e-7) & (activity <= program.row_upper + 1e-7)).all(axis=1)
    values = points[feasible] @ program.cost + program.offset
    return float(values.min(initial=INF))


def expect(program: LinearProgram, found: Outcome, best: float, matrix: np.ndarray | None = None) -> None:
    if best == INF:
        assert found.termination == "infeasible", found
        assert found.incumbent is None
        assert found.objective == INF
        return
    near = 2e-6 * max(1e-3, abs(best))
    assert found.termination == "optimal", found
    assert found.objective == pytest.approx(best, abs=near)
    assert found.bound <= best + near
    assert found.bound >= best - near
    point = found.incumbent
    assert point is not None
    assert (point[program.integer] == np.round(point[program.integer])).all()
    activity = dense(program) @ point
    allowed = 1e-6 * np.maximum(1.0, np.abs(dense(program)) @ np.abs(point))
    assert (activity >= program.row_lower - allowed).all()
    assert (activity <= program.row_upper + allowed).all()


def random_program(seed: int) -> LinearProgram:
    """Integer columns with positive and negative bounds, and rows of all kinds; every third has a maximum column."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    low = rng.integers(-2, 1, n).astype(float)
    high = low + rng.integers(1, 4, n)
    if seed % 2:
        matrix, cost = rng.integers(-5, 6, (m, n)).astype(float), rng.integers(-5, 6, n).astype(float)
    else:
        matrix, cost = np.round(rng.normal(0, 3, (m, n)), 3), rng.normal(0, 3, n)
    inside = matrix @ rng.integers(low, high + 1)
    kind = rng.integers(0, 4, m)
    width = np.round(np.abs(rng.normal(0, 3, m)), 2)
    row_low = np.where(kind == 0, -INF, np.where(kind == 1, inside, inside - width))
    row_high = np.where(kind == 2, INF, np.where(kind == 1, inside, inside + width))
    if seed % 5 == 0:  # Most likely infeasible.
        row_low[0], row_high[0] = inside[0] + 0.3, inside[0] + 0.4
    whole = [True] * n
    if seed % 3 == 0:
        terms = rng.normal(0, 3, (2, n)) * 10.0 ** rng.integers(-5, 5)
        matrix = np.block([[matrix, np.zeros((m, 1))], [terms, -np.ones((2, 1))]])
        row_low, row_high = np.append(row_low, [-INF, -INF]), np.append(row_high, [0.0, 0.0])
        cost = np.append(cost * np.abs(terms).max(), 1.0)
        low, high, whole = np.append(low, -1e9), np.append(high, INF), [*whole, False]
        low[-1] = 0.0
    offset = float(rng.normal(0, 3)) if seed % 4 else 0.0
    return linear(cost, matrix, row_low, row_high, low, high, whole, offset)


def split(columns: int = 45, rows: int = 5, slacks: bool = True) -> LinearProgram:
    """A market split problem: small, and far beyond any solver's few seconds."""
    rng = np.random.default_rng(3)
    data = rng.integers(0, 100, (rows, columns)).astype(float)
    half = np.floor(data.sum(axis=1) / 2)
    if not slacks:
        return linear([0] * columns, data, half, half, [0] * columns, [1] * columns, [1] * columns)
    matrix = np.hstack((data, np.eye(rows), -np.eye(rows)))
    size = columns + 2 * rows
    return linear(
        [0] * columns + [1] * 2 * rows, matrix, half, half, [0] * size, [1] * columns + [5000] * 2 * rows, [1] * size
    )


def global_program() -> tuple[Program, float]:
    """Two binaries, an integer; a product, a maximum (exact) of it and a condition on it, and their optimum."""
    a, b, n, product, most = range(5)
    spot = Origin("it")

    def ints(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    rows = RowBlock(spot, ints(0, 0), ints(a, b), np.array([1.0, 1.0]), np.array([1.0]), np.array([INF]))
    held = RowBlock(
        spot, ints(0, 1, 1), ints(n, n, b), np.array([1.0, 1.0, 0.5]), np.array([2.0, -INF]), np.array([INF, 2.6])
    )
    condition = Implication(spot, ints(0, 1), ints(a, b), np.array([True, False]), held)
    times = Product(spot, ints(product), ints(b), ints(n))
    # most = max(1.5 n - 2.25, 4 - product, 0.5)
    largest = Maximum(
        spot, ints(most), ints(0, 0, 0), np.array([-2.25, 4.0, 0.5]), ints(0, 1), ints(n, product),
        np.array([1.5, -1.0]), True,
    )  # fmt: skip
    cost = np.array([0.25, 0.1, -0.3, 0.0, -1.0])
    goal = Objective("goal", np.arange(5), cost, 1.0)
    bounds = np.array([0.0, 0, 0, -INF, -INF]), np.array([1.0, 1, 4, INF, INF])
    program = Program(
        *bounds, np.array([True, True, True, False, False]), {}, (rows,), (times, largest, condition), (goal,)
    )
    values = []
    for x, y, k in itertools.product((0, 1), (0, 1), range(5)):
        if x + y >= 1 and not (x and k < 2) and not (not y and k > 2.6):
            z = max(1.5 * k - 2.25, 4 - y * k, 0.5)
            values.append(cost @ (x, y, k, y * k, z) + 1.0)
    return program, min(values)
