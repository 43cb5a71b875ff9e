"""What makes a join of a condition: its parts, equalities between two sides, and keys of several columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.arrays import Booleans, Integers
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.records import dataclass

#: So many combinations are looked at in one go.
_CHUNK = 4_000_000


def conjuncts(condition: core.Expression | None) -> list[core.Expression]:
    """The parts of a condition that must all hold."""
    if condition is None:
        return []
    if isinstance(condition, core.Logic) and condition.operator == "and":
        return [part for side in condition.parts for part in conjuncts(side)]
    return [condition]


@dataclass(frozen=True)
class Equality:
    """``inner == outer``: one side speaks of what is being bound alone, the other of what was bound before."""

    part: core.Expression
    of: str
    inner: core.Expression
    outer: core.Expression


def join_keys(part: core.Expression, new: frozenset[str], old: frozenset[str]) -> Equality | None:
    """The equality that a part of a condition is, if it can make a join."""
    if not isinstance(part, core.Comparison) or part.operator != "==" or part.of == "truth":
        return None
    left, right = walks.free_slots(part.left), walks.free_slots(part.right)
    if left and right and left <= new and right <= old:
        return Equality(part, part.of, part.left, part.right)
    if left and right and right <= new and left <= old:
        return Equality(part, part.of, part.right, part.left)
    return None


def codes_of(
    left: Sequence[np.ndarray], right: Sequence[np.ndarray], left_size: int, right_size: int
) -> tuple[Integers, Integers]:
    """One number a row on either side, equal where all columns are; -1 for what equals nothing (nan, None)."""
    total = np.zeros(left_size + right_size, dtype=np.int64)
    void = np.zeros(left_size + right_size, dtype=bool)
    for a, b in zip(left, right, strict=True):
        column = np.concatenate((a, b))
        if column.dtype == object:
            void |= np.array([x is None for x in column], dtype=bool)
            column = np.array(["" if x is None else str(x) for x in column], dtype=str)
        elif column.dtype.kind == "f":
            void |= np.isnan(column)
        code = _codes(column)
        total = _codes(total * (int(code.max(initial=0)) + 1) + code)
    total = np.where(void, -1, total)
    return total[:left_size], total[left_size:]


def _codes(values: np.ndarray) -> Integers:
    """Whole numbers from 0, equal where the values are; the largest is at most a few times their number."""
    if values.dtype.kind == "i" and len(values):
        least = int(values.min())
        if int(values.max()) - least <= 4 * len(values):
            return values - least
    return np.unique(values, return_inverse=True)[1]


def within(rows: tuple[Integers, ...], known: tuple[Integers, ...]) -> Booleans:
    """Which rows stand among the known ones."""
    left, right = codes_of(rows, known, len(rows[0]), len(known[0]))
    return np.isin(left, right)


def slices(counts: Integers) -> list[tuple[int, int]]:
    """Runs of rows whose counts add up to about a chunk (one row at least)."""
    ends = np.cumsum(counts)
    out: list[tuple[int, int]] = []
    first = 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
        out.append((first, last))
        first = last
    return out


def first_of_each(rows: Integers, values: tuple[Integers, ...]) -> tuple[Integers, tuple[Integers, ...]]:
    """Each element once a row, by rows, in the order of its first mention."""
    code, _ = codes_of([rows, *values], [rows[:0], *(v[:0] for v in values)], len(rows), 0)
    _, first = np.unique(code, return_index=True)
    first = first[np.lexsort((first, rows[first]))]
    return rows[first], tuple(v[first] for v in values)
