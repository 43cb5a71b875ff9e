"""Sets of 0/1 columns of which at most one is one, as rows say, and what follows for sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.ir.affine import spread
from placedsl.ir.program import RowBlock


@dataclass(frozen=True, eq=False)
class OneOf:
    """Set k holds the columns ``member[start[k]:start[k+1]]``; ``exactly[k]``: one of them is one.

    ``of_start`` and ``of`` are the sets of each column, likewise.
    """

    start: Integers
    member: Integers
    exactly: Booleans
    of_start: Integers
    of: Integers

    def common(self, left: Integers, right: Integers) -> Booleans:
        """Whether column ``left[i]`` and column ``right[i]`` (-1: none) are different ones of a common set."""
        pairs = len(left)
        keys = [self._sets_of(columns) for columns in (left, right)]
        size = max(1, len(self.exactly))
        found = np.zeros(pairs, dtype=bool)
        both = np.intersect1d(keys[0][0] * size + keys[0][1], keys[1][0] * size + keys[1][1])
        found[both // size] = True
        return np.asarray(found & (left != right))

    def _sets_of(self, columns: Integers) -> tuple[Integers, Integers]:
        known = np.flatnonzero(columns >= 0)
        counts = self.of_start[columns[known] + 1] - self.of_start[columns[known]]
        return np.repeat(known, counts), self.of[spread(self.of_start[columns[known]], counts)]


def one_of(blocks: list[RowBlock], lower: Floats, upper: Floats, integer: Booleans) -> OneOf:
    """The sets that rows ``x + y + … <= 1`` or ``== 1`` over 0/1 columns make."""
    binary = integer & (lower >= 0.0) & (upper <= 1.0)
    starts, members, exactly = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=bool)]
    for block in blocks:
        kept = (block.upper == 1.0) & (not block.strict)
        if not kept.any():
            continue
        plain = binary[block.column] & (block.coefficient == 1.0)
        kept &= np.bincount(block.row, ~plain, minlength=block.rows) == 0
        if not kept.any():
            continue
        order = np.flatnonzero(kept[block.row])
        order = order[np.argsort(block.row[order], kind="stable")]
        counts = np.bincount(block.row[order], minlength=block.rows)[kept]
        starts.append(np.cumsum(counts) + starts[-1][-1])
        members.append(block.column[order])
        exactly.append(block.lower[kept] == 1.0)
    start, member = np.concatenate(starts), np.concatenate(members)
    sets = np.repeat(np.arange(len(start) - 1), np.diff(start))
    by_column = np.argsort(member, kind="stable")
    of_start = np.searchsorted(member[by_column], np.arange(len(lower) + 1))
    return OneOf(start, member, np.concatenate(exactly), of_start, sets[by_column])


def least(
    row: Integers, column: Integers, coefficient: Floats, rows: int, lower: Floats, upper: Floats, known: OneOf
) -> Floats:
    """The least value of each row's sum: entries of a set of which exactly one is one count by the least of them."""
    at_least = np.where(coefficient > 0, lower[column], upper[column]) * coefficient
    out = np.bincount(row, at_least, minlength=rows).astype(float)
    # Each entry with a set of its column that is exact; an entry counts within the first of them.
    first = known.of_start[column]
    some = known.of_start[column + 1] > first
    group = np.where(some, known.of[np.minimum(first, max(0, len(known.of) - 1))] if len(known.of) else -1, -1)
    exact = some & (known.exactly[group] if len(known.exactly) else False)
    entries = np.flatnonzero(exact)
    if not len(entries):
        return out
    size = len(known.exactly)
    key, back, counts = np.unique(row[entries] * size + group[entries], return_inverse=True, return_counts=True)
    best = np.full(len(key), np.inf)
    np.minimum.at(best, back, np.where(upper[column[entries]] > 0.0, coefficient[entries], np.inf))
    best = np.where(np.isfinite(best), best, 0.0)
    whole = counts == np.diff(known.start)[key % size]
    best = np.where(whole, best, np.minimum(best, 0.0))
    taken = np.bincount(back, at_least[entries], minlength=len(key))
    np.add.at(out, key // size, best - taken)
    return out
