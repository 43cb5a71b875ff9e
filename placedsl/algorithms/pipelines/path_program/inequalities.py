"""The rows of one rule as inequalities ``sum of coefficient * column <= upper``, with maxima written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.pipelines.path_program.rule_columns import GroundRule
from placedsl.arrays import Floats, Integers
from placedsl.ir.affine import merged
from placedsl.ir.program import Implication, Maximum, Product, RowBlock

#: More rows than this are not written out for one rule.
_MOST_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Inequalities:
    """n inequalities by rows: row i has entries ``start[i]:start[i + 1]``; equal columns once, sorted."""

    start: Integers
    column: Integers
    coefficient: Floats
    upper: Floats

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.upper)

    def entries(self, row: int) -> tuple[Integers, Floats]:
        """Columns and coefficients of one row."""
        own = slice(int(self.start[row]), int(self.start[row + 1]))
        return self.column[own], self.coefficient[own]

    def take(self, rows: Integers) -> Inequalities:
        """Some of them."""
        lengths = np.diff(self.start)[rows]
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        entry = np.repeat(self.start[:-1][rows] - start[:-1], lengths) + np.arange(start[-1])
        return Inequalities(start, self.column[entry], self.coefficient[entry], self.upper[rows])

    def row_of_entry(self) -> Integers:
        """The row that each entry is in."""
        return np.repeat(np.arange(self.count), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class Conditional:
    """``body`` (one row each) holds where all literals of the row are true."""

    body: Inequalities
    literals: tuple[tuple[tuple[int, bool], ...], ...]


@dataclass(frozen=True, eq=False)
class Written:
    """A rule written out; ``products`` as (result, binary, factor)."""

    always: Inequalities
    conditional: Conditional
    products: tuple[tuple[int, int, int], ...]


def of_triplets(row: Integers, column: Integers, coefficient: Floats, upper: Floats) -> Inequalities:
    """Inequalities from triplets in any order."""
    columns = int(column.max(initial=-1)) + 1
    row, column, coefficient = merged(row, column, coefficient, max(columns, 1))
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(row, minlength=len(upper)))))
    return Inequalities(start, column, coefficient, upper)


def stacked(parts: Sequence[Inequalities]) -> Inequalities:
    """One after another."""
    lengths = np.concatenate([np.diff(one.start) for one in parts] or [np.zeros(0, dtype=np.int64)])
    return Inequalities(
        np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths))),
        np.concatenate([one.column for one in parts] or [np.zeros(0, dtype=np.int64)]),
        np.concatenate([one.coefficient for one in parts] or [np.zeros(0)]),
        np.concatenate([one.upper for one in parts] or [np.zeros(0)]),
    )


def written(rule: GroundRule) -> Written | None:
    """The rule's rows; None where a maximum has to be large, or there is more to it than rows."""
    maxima = [one for one in rule.constraints if isinstance(one, Maximum)]
    implications = [one for one in rule.constraints if isinstance(one, Implication)]
    products = [one for one in rule.constraints if isinstance(one, Product)]
    if len(maxima) + len(implications) + len(products) < len(rule.constraints):
        return None
    always: Inequalities | None
    always, ones = _fixed(stacked([_of_block(block)[0] for block in rule.rows]), rule)
    parts, literals = list[Inequalities](), list[tuple[tuple[int, bool], ...]]()
    for one in implications:
        body, source = _of_block(one.rows)
        order = np.argsort(one.literal_row, kind="stable")
        of_row: list[list[tuple[int, bool]]] = [[] for _ in range(one.rows.rows)]
        for entry in order.tolist():
            of_row[one.literal_row[entry]].append((int(one.literal_column[entry]), bool(one.literal_value[entry])))
        parts.append(body)
        literals += [tuple(of_row[row]) for row in source.tolist()]
    # What is known to be 1 is no condition any more.
    met = [all(literal not in {(c, False) for c in ones} for literal in row) for row in literals]
    left = [tuple(literal for literal in row if literal[0] not in ones) for row in literals]
    conditional = stacked(parts)
    bare = np.flatnonzero([there and not row for there, row in zip(met, left, strict=True)])
    kept = np.flatnonzero([there and bool(row) for there, row in zip(met, left, strict=True)])
    always, conditional = stacked([always, conditional.take(bare)]), conditional.take(kept)
    literals = [left[row] for row in kept.tolist()]
    terms = dict[int, Inequalities]()
    for largest in maxima:
        terms |= _terms(largest)
    if terms:
        always = _expanded(always, terms)
        held = np.fromiter(terms, dtype=np.int64)
        named = [conditional.column, *(np.concatenate((p.result, p.binary, p.factor)) for p in products)]
        if always is None or np.isin(np.concatenate(named), held).any():
            return None
    triples = tuple(
        triple
        for one in products
        for triple in zip(one.result.tolist(), one.binary.tolist(), one.factor.tolist(), strict=True)
    )
    return Written(always, Conditional(conditional, tuple(literals)), triples)


def _of_block(block: RowBlock) -> tuple[Inequalities, Integers]:
    """Both sides of a block, and the row that each comes from."""
    above, below = np.flatnonzero(block.upper < np.inf), np.flatnonzero(block.lower > -np.inf)
    whole = of_triplets(block.row, block.column, block.coefficient, np.zeros(block.rows))
    high, low = whole.take(above), whole.take(below)
    out = stacked([
        Inequalities(high.start, high.column, high.coefficient, block.upper[above]),
        Inequalities(low.start, low.column, -low.coefficient, -block.lower[below]),
    ])  # fmt: skip
    return out, np.concatenate((above, below))


def _fixed(rows: Inequalities, rule: GroundRule) -> tuple[Inequalities, set[int]]:
    """0/1 columns that a row of its own says to be 1 are numbers in the other rows; which they are."""
    known = set[int]()
    while True:
        lengths = np.diff(rows.start)
        single = np.flatnonzero(lengths == 1)
        at = rows.start[:-1][single]
        column, coefficient, upper = rows.column[at], rows.coefficient[at], rows.upper[single]
        own = (column >= rule.first) & (coefficient < 0.0)
        own[own] = rule.binary[column[own] - rule.first] & (upper[own] / coefficient[own] > 0.0)
        if not own.any():
            return rows, known
        ones, row = np.unique(column[own]), rows.row_of_entry()
        known |= set(ones.tolist())
        gone = np.isin(rows.column, ones)
        upper = rows.upper.copy()
        np.subtract.at(upper, row[gone], rows.coefficient[gone])
        kept = np.ones(rows.count, dtype=bool)
        kept[single[own]] = False
        position = np.cumsum(kept) - 1
        stays = ~gone & kept[row]
        rows = of_triplets(position[row[stays]], rows.column[stays], rows.coefficient[stays], upper[kept])


def _terms(one: Maximum) -> dict[int, Inequalities]:
    """The terms of each maximum by its column, as ``term <= -constant``."""
    out = {}
    groups = np.argsort(one.group, kind="stable")
    ends = np.searchsorted(one.group[groups], np.arange(len(one.result) + 1))
    whole = of_triplets(one.term, one.column, one.coefficient, -one.constant)
    for k, column in enumerate(one.result.tolist()):
        out[column] = whole.take(groups[ends[k] : ends[k + 1]])
    return out


def _expanded(rows: Inequalities, terms: dict[int, Inequalities]) -> Inequalities | None:
    """A row for each term of a maximum that stands in it with a positive coefficient; None for negative ones."""
    waiting = [(*rows.entries(i), float(rows.upper[i])) for i in range(rows.count)]
    done = list[tuple[Integers, Floats, float]]()
    while waiting:
        column, coefficient, upper = waiting.pop()
        at = next((k for k, c in enumerate(column.tolist()) if c in terms), None)
        if at is None:
            done.append((column, coefficient, upper))
            continue
        factor = float(coefficient[at])
        if factor < 0.0 or len(waiting) + len(done) > _MOST_ROWS:
            return None
        rest_column, rest = np.delete(column, at), np.delete(coefficient, at)
        largest = terms[int(column[at])]
        for k in range(largest.count):
            own, value = largest.entries(k)
            both, back = np.unique(np.concatenate((rest_column, own)), return_inverse=True)
            total = np.bincount(back, np.concatenate((rest, factor * value)), minlength=len(both))
            kept = np.abs(total) > 1e-12 * np.abs(total).max(initial=0.0)
            waiting.append((both[kept], total[kept], upper + factor * float(largest.upper[k])))
    lengths = np.array([len(c) for c, _, _ in done], dtype=np.int64)
    return Inequalities(
        np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths))),
        np.concatenate([c for c, _, _ in done] or [np.zeros(0, dtype=np.int64)]),
        np.concatenate([v for _, v, _ in done] or [np.zeros(0)]), np.array([u for _, _, u in done]),
    )  # fmt: skip
