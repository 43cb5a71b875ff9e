"""Global constraints as rows, against what each is by definition, at random points over small grids."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable

import numpy as np
import pytest

from placedsl.ir.program import GlobalConstraint, Implication, Maximum, NoOverlap, Origin, Product, RowBlock
from placedsl.ir.row_meaning import MEANINGS, meaning, possible_rows

ORIGIN = Origin("test")
#: Columns 0 to 3 are 0/1, the others real.
BINARY, COLUMNS = 4, 10
Case = tuple[GlobalConstraint, Callable[[np.ndarray], bool]]


def satisfied(block: RowBlock, point: np.ndarray) -> np.ndarray:
    """Which rows of a block hold at a point."""
    total = np.bincount(block.row, block.coefficient * point[block.column], minlength=block.rows)
    return (total >= block.lower - 1e-9) & (total <= block.upper + 1e-9)


def implication(rng: np.random.Generator) -> Case:
    """``x7 + 2 x8 <= 3`` where column 0 is one and column 1 is zero; ``x9 == 1`` where column 2 is one."""
    rows = RowBlock(
        ORIGIN, np.array([0, 0, 1]), np.array([7, 8, 9]), np.array([1.0, 2.0, 1.0]),
        np.array([-np.inf, 1.0]), np.array([3.0, 1.0]),
    )  # fmt: skip
    made = Implication(ORIGIN, np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([True, False, True]), rows)

    def holds(x: np.ndarray) -> bool:
        first = x[7] + 2 * x[8] <= 3 if x[0] and not x[1] else True
        return bool(first and (x[9] == 1 or not x[2]))

    return made, holds


def maximum(rng: np.random.Generator, exact: bool) -> Case:
    """Column 9 is (at least, unless exact) the largest of ``1 + x7``, ``2 x8 - x7`` and 2."""
    made = Maximum(
        ORIGIN, np.array([9]), np.zeros(3, dtype=np.int64), np.array([1.0, 0.0, 2.0]), np.array([0, 1, 1]),
        np.array([7, 8, 7]), np.array([1.0, 2.0, -1.0]), exact,
    )  # fmt: skip

    def holds(x: np.ndarray) -> bool:
        largest = max(1 + x[7], 2 * x[8] - x[7], 2.0)
        return bool(x[9] == largest if exact else x[9] >= largest)

    return made, holds


def product(rng: np.random.Generator) -> Case:
    """Column 8 is column 0 times column 7; column 9 is column 1 times column 6."""
    made = Product(ORIGIN, np.array([8, 9]), np.array([0, 1]), np.array([7, 6]))
    return made, lambda x: bool(x[8] == x[0] * x[7] and x[9] == x[1] * x[6])


def no_overlap(rng: np.random.Generator) -> Case:
    """Intervals of one group at columns 6, 7 and 8; the second is optional, the third as long as columns say."""
    lengths = rng.integers(0, 3, 3).astype(float)
    made = NoOverlap(
        ORIGIN, np.zeros(3, dtype=np.int64), np.array([-1, 0, -1]), np.array([6, 7, 8]), lengths,
        np.array([2]), np.array([1]), np.array([2.0]),
    )  # fmt: skip

    def holds(x: np.ndarray) -> bool:
        spans = [(x[6], lengths[0]), *([(x[7], lengths[1])] if x[0] else []), (x[8], lengths[2] + 2 * x[1])]
        spans = sorted((start, start + length) for start, length in spans if length > 0)
        return all(one[1] <= other[0] for one, other in itertools.pairwise(spans))

    return made, holds


CASES = {
    "implication": implication, "maximum": lambda rng: maximum(rng, False),
    "exact maximum": lambda rng: maximum(rng, True), "product": product, "no overlap": no_overlap,
}  # fmt: skip


def points(rng: np.random.Generator, holds: Callable[[np.ndarray], bool]) -> list[np.ndarray]:
    """Random points over a small grid, among them some that satisfy the constraint."""
    grid = rng.integers(0, 5, (3000, COLUMNS)).astype(float)
    grid[:, :BINARY] = rng.integers(0, 2, (3000, BINARY))
    found = [x for x in grid if holds(x)]
    assert len(found) > 20
    assert len(found) < 2980
    return [*grid[:300], *found]


def test_every_kind_has_a_meaning() -> None:
    assert set(MEANINGS) == set(typing.get_args(GlobalConstraint))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_with_its_integer_columns_known_a_constraint_is_its_rows(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraint, holds = CASES[name](rng)
    for x in points(rng, holds):
        rows = list(meaning(constraint).given(constraint, x))
        assert all(satisfied(block, x).all() for block in rows) == holds(x), x


@pytest.mark.parametrize("name", CASES)
def test_rows_hold_in_every_point_or_under_their_literals(name: str) -> None:
    rng = np.random.default_rng(1)
    constraint, holds = CASES[name](rng)
    known = meaning(constraint)
    assert len(possible_rows(constraint)) == sum(
        len(part(constraint)) for part in (known.unconditional, known.conditional, known.alternatives)
    )
    for x in (x for x in points(rng, holds) if holds(x)):
        assert all(satisfied(block, x).all() for block in known.unconditional(constraint))
        for part in known.conditional(constraint):
            false = (x[part.literal_column] > 0.5) != part.literal_value
            met = np.bincount(part.literal_row, false, minlength=part.rows.rows) == 0
            assert satisfied(part.rows, x)[met].all()
        for block in known.alternatives(constraint):
            assert satisfied(block, x).any()


@pytest.mark.parametrize("name", CASES)
def test_columns_that_others_define_are_within_their_limits(name: str) -> None:
    rng = np.random.default_rng(2)
    constraint, holds = CASES[name](rng)
    lower, upper = np.zeros(COLUMNS), np.where(np.arange(COLUMNS) < BINARY, 1.0, 4.0)
    column, low, high = meaning(constraint).limits(constraint, lower, upper)
    exact = not isinstance(constraint, Maximum) or constraint.exact
    for x in (x for x in points(rng, holds) if holds(x)):
        assert (x[column] >= low).all()
        assert not exact or (x[column] <= high).all()
        defined, least = meaning(constraint).least(constraint, x)
        assert (x[defined] >= least).all()


def test_the_most_that_one_interval_keeps_the_next_away() -> None:
    constraint, _ = no_overlap(np.random.default_rng(3))
    upper = np.where(np.arange(COLUMNS) < BINARY, 1.0, 4.0)
    column, most = meaning(constraint).steps(constraint, np.zeros(COLUMNS), upper)
    assert column.tolist() == [6, 7, 8]
    assert most.tolist() == list(constraint.constant + np.array([0, 0, 2]))
