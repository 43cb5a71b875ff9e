"""Tightened coefficients: the same points of the box, row by row, and no coefficient larger than it has to be."""

from __future__ import annotations

import itertools
import random

import numpy as np

from placedsl.ir.program import Origin, RowBlock
from placedsl.lowering.coefficient_tightening import tightened


def holds(block: RowBlock, point: np.ndarray) -> list[bool]:
    value = np.bincount(block.row, block.coefficient * point[block.column], minlength=block.rows)
    return ((value >= block.lower) & (value <= block.upper)).tolist()


def drawn(rng: random.Random) -> tuple[RowBlock, np.ndarray, np.ndarray, np.ndarray]:
    """Rows over up to four 0/1 columns and two real ones, repeated entries among them; numbers without rounding."""
    binary, real, rows = rng.randint(1, 4), rng.randint(0, 2), rng.randint(1, 3)
    columns = binary + real
    entries = [(r, rng.randrange(columns)) for r in range(rows) for _ in range(rng.randint(1, 6))]
    size = [float(rng.choice((-1, 1)) * rng.choice((1, 2, 3, 5, 2**20, 2**24))) for _ in entries]
    lower, upper = np.full(rows, -np.inf), np.full(rows, np.inf)
    for r in range(rows):
        side = float(rng.randint(-12, 12))
        if rng.random() < 0.5:
            lower[r] = side
        elif rng.random() < 0.9:
            upper[r] = side
        else:
            lower[r] = upper[r] = side
    block = RowBlock(
        Origin("rows"),
        np.array([r for r, _ in entries]),
        np.array([c for _, c in entries]),
        np.array(size),
        lower,
        upper,
    )
    low = np.array([0.0] * binary + [float(rng.randint(-4, 0)) for _ in range(real)])
    high = np.array([1.0] * binary + [float(rng.randint(0, 6)) for _ in range(real)])
    return block, low, high, np.array([True] * binary + [False] * real)


def test_the_same_points() -> None:
    rng, changed = random.Random(5), 0
    for _ in range(3000):
        block, low, high, integer = drawn(rng)
        found = tightened(block, low, high, integer)
        changed += found is not block
        ends = [(a, b) if whole else (a, (a + b) / 2, b) for a, b, whole in zip(low, high, integer, strict=True)]
        for point in itertools.product(*ends):
            assert holds(block, np.array(point)) == holds(found, np.array(point))
    assert changed > 500


def test_a_time_of_months_in_a_load_of_seconds() -> None:
    """A load that is three seconds at least where z is one: 2.5e7 x + 0.5 y - 3 z >= 0."""
    block = RowBlock(
        Origin("load"), np.zeros(3, dtype=np.int64), np.arange(3), np.array([2.5e7, 0.5, -3.0]), np.zeros(1),
        np.full(1, np.inf),
    )  # fmt: skip
    found = tightened(block, np.zeros(3), np.ones(3), np.ones(3, dtype=bool))
    assert found.coefficient.tolist() == [3.0, 0.5, -3.0]
    assert found.lower.tolist() == [0.0]
