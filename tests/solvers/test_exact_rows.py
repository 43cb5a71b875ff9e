"""Rows of whole numbers in digits have the same points, and small coefficients."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest
from support.paths import child_environment
from support.programs import INF, dense, linear

from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram
from placedsl.solvers.exact_rows import solved_exactly, with_digits, with_margins, with_spent_columns
from placedsl.solvers.outcome import heard_by_nobody
from placedsl.solvers.registry import get
from placedsl.solvers.whole_rows import WholeRows, reduced


def carried(program: LinearProgram, point: np.ndarray) -> bool:
    """Whether some carries make a point of the given columns one of the program: the least, row by row."""
    values = np.concatenate((point, np.full(program.columns - len(point), np.nan)))
    for row, low, high in zip(dense(program), program.row_lower, program.row_upper, strict=True):
        used = np.flatnonzero(row)
        open_columns = [c for c in used if np.isnan(values[c])]
        known = sum(row[c] * values[c] for c in used if c not in open_columns)
        for column in open_columns:  # at most one: the carry to the next digit
            values[column] = np.ceil((known - high) / -row[column])
            known += row[column] * values[column]
            if not program.lower[column] <= values[column] <= program.upper[column]:
                return False
        if not low <= known <= high:
            return False
    return True


@pytest.mark.parametrize("kind", ["at most", "at least", "between", "equal"])
def test_digits_have_the_same_points(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(40):
        count = int(rng.integers(2, 6))
        sizes = (rng.integers(1, 2 ** int(rng.integers(18, 50)), count) * rng.choice([-1, 1], count)).astype(float)
        at = float(sizes @ rng.integers(0, 3, count)) + float(rng.integers(-1, 2))
        low = {"at most": -INF, "between": at - 2**20}.get(kind, at)
        high = INF if kind == "at least" else at
        program = linear([0] * count, sizes[None, :], [low], [high], [0] * count, [2] * count, [True] * count)
        known = WholeRows.of(program)
        if not len(known.rows):
            continue
        written = with_digits(program, known, np.ones(1, dtype=bool))
        assert np.abs(written.coefficient).max() <= 2**16
        for point in itertools.product((0, 1, 2), repeat=count):
            allowed = bool(low <= sizes @ np.array(point) <= high)
            assert carried(written, np.array(point, dtype=float)) == allowed
            assert (len(known.broken(np.array(point, dtype=float))) == 0) == allowed


def test_only_large_rows_of_whole_numbers_over_integer_columns() -> None:
    matrix = [[1e9, 2e9, 0], [10, 20, 0], [1e9 + 0.5, 1, 0], [1e9, 0, 1], [1e9, 2e9, 0]]
    program = linear([0] * 3, np.array(matrix), [-INF] * 5, [3e9, 30, 3e9, 3e9, 1e9 - 0.25], [0] * 3, [1] * 3,
                     [True, True, False])  # fmt: skip
    known = WholeRows.of(program)
    assert known.rows.tolist() == [0, 4]
    assert known.high.tolist() == [3e9, 1e9]  # within the rounding of a side that is not whole
    assert known.broken(np.array([1.0, 1.0, 0.0])).tolist() == [4]
    assert known.broken(np.array([1.0, 0.0, 0.0])).tolist() == []


def completions(program: LinearProgram, point: tuple[int, ...]) -> bool:
    """Whether some value of the last column, the only real one, completes a point."""
    low, high = float(program.lower[-1]), float(program.upper[-1])
    for row, least, most in zip(dense(program), program.row_lower, program.row_upper, strict=True):
        known = float(row[:-1] @ np.array(point))
        if row[-1] == 0.0:
            if not least <= known <= most:
                return False
            continue
        ends = sorted(((least - known) / row[-1], (most - known) / row[-1]))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low <= high


def test_spent_columns_rule_out_no_point() -> None:
    """Whole sizes, the largest of them in a real column, bounds of it as rows."""
    rng = np.random.default_rng(14)
    spent = 0
    for _ in range(400):
        rows = int(rng.integers(1, 5))
        sizes = rng.choice([0, 1, 2**20, 2**30 + 1], (rows, 3)) * rng.choice([-1, 1], (rows, 1))
        real = rng.choice([-1, 0, 1, 1, 2], rows)
        sizes[rng.random(rows) < 0.3] = 0  # a bound of the real column, or nothing
        matrix = np.column_stack((sizes, real)).astype(float)
        side = rng.choice([0, 3, 2**30, 2**31], rows).astype(float)
        low = np.where(rng.random(rows) < 0.4, side - rng.choice([0, 2**20], rows), -INF)
        high = np.where(np.isinf(low) | (rng.random(rows) < 0.5), side, INF)
        ends = sorted(rng.choice([0, 1, 2**30, 2**31], 2).tolist())
        program = linear([0] * 4, matrix, low, high, [0] * 3 + ends[:1], [1] * 3 + ends[1:], [True] * 3 + [False])
        other = with_spent_columns(program)
        spent += other is not program
        for point in itertools.product((0, 1), repeat=3):
            assert completions(other, point) == completions(program, point)
    assert spent > 50


def test_reduced_rows_have_the_same_points() -> None:
    """Coefficients of unlike magnitudes and signs, sides that are full to the last unit, whole columns of any range."""
    rng = np.random.default_rng(2)
    smaller = 0
    for _ in range(600):
        rows, count = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        sizes = rng.choice([0, 1, 2, 3, 2**12, 2**20, 2**20 + 1, 3 * 2**20, 2**30, 2**30 + 1], (rows, count))
        sizes = (sizes * rng.choice([-1, 1, 1], (rows, count))).astype(float)
        lower = rng.choice([-1, 0, 0, 0], count)
        upper = lower + rng.choice([0, 1, 1, 1, 2], count)
        point = np.array([rng.integers(a, b + 1) for a, b in zip(lower, upper, strict=True)])
        at = sizes @ point + rng.choice([-1, 0, 0, 1, 2**20], rows)
        kind = rng.choice(["most", "most", "least", "between", "equal"], rows)
        low = np.where(kind == "most", -INF, np.where(kind == "between", at - 2**20, at))
        high = np.where(kind == "least", INF, at)
        program = linear([0] * count, sizes, low, high, lower, upper, [True] * count)
        other = reduced(program)
        assert other.rows == program.rows
        smaller += np.abs(other.coefficient).max(initial=0) < np.abs(program.coefficient).max(initial=0)
        for values in itertools.product(*(range(a, b + 1) for a, b in zip(lower, upper, strict=True))):
            sums, others = sizes @ values, dense(other) @ values
            allowed = bool(((low <= sums) & (sums <= high)).all())
            inside = bool(((other.lower <= values) & (values <= other.upper)).all())
            kept = inside and bool(((other.row_lower <= others) & (others <= other.row_upper)).all())
            assert kept == allowed, (sizes, low, high, values)
    assert smaller > 200


def full_to_the_byte(seed: int, bits: int) -> tuple[LinearProgram, float]:
    """Nodes onto devices with memory that is full to the last byte, and the least largest time by enumeration."""
    rng = random.Random(seed)
    nodes, devices, near = rng.randint(2, 6), rng.randint(2, 3), rng.choice([2, bits - 10, bits - 4, bits - 1])
    sizes = [rng.choice([0, 1, 2, 3, 2**near, 2**near + 1, 2**bits, 2**bits + 1]) for _ in range(nodes)]
    limits = [rng.choice([5, 2**near + 2, 2**bits + 1, 2**bits + 2, 2**bits + 2**near]) for _ in range(devices)]
    times = [[rng.choice([1, 2, 3, 5, 7]) for _ in range(devices)] for _ in range(nodes)]
    columns = nodes * devices + 1
    matrix = np.zeros((nodes + 2 * devices, columns))
    for v, d in itertools.product(range(nodes), range(devices)):
        matrix[v, v * devices + d] = 1
        matrix[nodes + d, v * devices + d] = sizes[v]
        matrix[nodes + devices + d, v * devices + d] = times[v][d]
    matrix[nodes + devices :, -1] = -1
    low = [1] * nodes + [-INF] * (2 * devices)
    high = [1] * nodes + limits + [0] * devices
    cost = [0] * (columns - 1) + [1]
    program = linear(
        cost, matrix, low, high, [0] * columns, [1] * (columns - 1) + [1000], [True] * (columns - 1) + [False]
    )
    best = INF
    for chosen in itertools.product(range(devices), repeat=nodes):
        used, load = [0] * devices, [0] * devices
        for v, d in enumerate(chosen):
            used[d], load[d] = used[d] + sizes[v], load[d] + times[v][d]
        if all(one <= limit for one, limit in zip(used, limits, strict=True)):
            best = min(best, max(load))
    return program, best


def test_margins_are_more_than_what_is_dropped() -> None:
    """A point that keeps a row keeps it with a margin of a share of the sum, and of the terms that solvers drop."""
    sizes = np.array([[2.0**40, -1.0, -3.0, 2.0**20]])
    program = linear([0] * 4, sizes, [-INF], [2.0**40 - 4.0], [0] * 4, [1] * 4, [True] * 4)
    wider = with_margins(program, WholeRows.of(program))
    assert wider.row_upper[0] - program.row_upper[0] == np.ceil(np.abs(sizes).sum() / 2.0**24) + 1.0 + 3.0
    assert wider.row_lower[0] == -INF
    small = linear([0] * 2, np.array([[2.0**20, 1.0]]), [-INF], [2.0**20], [0] * 2, [1] * 2, [True] * 2)
    assert with_margins(small, WholeRows.of(small)) is small


@pytest.mark.parametrize("solver", ["highs", "mip"])
def test_memory_that_is_full_to_the_last_byte(solver: str) -> None:
    """HiGHS cuts off optima by its own reductions where a byte is less than its tolerance of a row.

    In a process of its own: the libraries of two solvers do not go into one.
    """
    command = [sys.executable, __file__, solver]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    assert done.returncode == 0, done.stdout + done.stderr


def confirm(solver: str, bits: int) -> None:
    """Forty placements with sizes of so many bits."""
    with_points = 0
    for seed in range(40):
        program, best = full_to_the_byte(seed, bits)
        found = solved_exactly(get(solver).run, program, Budget(time_limit=60.0), heard_by_nobody)
        assert found.termination == ("optimal" if np.isfinite(best) else "infeasible"), seed
        with_points += bool(np.isfinite(best))
        assert not np.isfinite(best) or found.objective == pytest.approx(best), seed
    assert with_points > 15


if __name__ == "__main__":
    for number in (20, 30, 34, 45):
        confirm(sys.argv[1], number)
