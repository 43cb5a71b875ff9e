"""What each kind of global constraint means as rows: the one place that everything but rewrites and solvers asks.

Some rows hold in every point, some where literals over the program's columns are true, and some for one of several
alternatives (an exact maximum is at most one of its terms; of two intervals one comes first).  Once the integer columns
are known, rows are all there is to every constraint.  A new kind of constraint is a dataclass in
:mod:`placedsl.ir.program` and a :class:`Meaning` in :data:`MEANINGS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.ir.affine import activity
from placedsl.ir.program import (
    Convex,
    GlobalConstraint,
    Implication,
    Maximum,
    NoOverlap,
    Origin,
    Pipeline,
    Product,
    RowBlock,
)

_NO_COLUMNS = np.zeros(0, dtype=np.int64)
_NO_VALUES = np.zeros(0)


class Meaning:
    """One kind of constraint.  The defaults are those of a constraint over 0/1 columns alone, without coefficients."""

    def instances(self, constraint: Any) -> int:
        """How many constraints of this kind one object holds."""
        raise NotImplementedError

    def unconditional(self, constraint: Any) -> tuple[RowBlock, ...]:  # noqa: ARG002
        """Rows that hold in every point."""
        return ()

    def conditional(self, constraint: Any) -> tuple[Implication, ...]:  # noqa: ARG002
        """Rows that hold where literals are true."""
        return ()

    def alternatives(self, constraint: Any) -> tuple[RowBlock, ...]:  # noqa: ARG002
        """Rows of which some hold in every point."""
        return ()

    def given(self, constraint: Any, point: Floats) -> Iterator[RowBlock]:
        """All rows over the continuous columns where the integer columns are those of ``point``.

        The continuous columns of ``point`` decide between alternatives: the largest term, the order of intervals.
        """
        yield from self.unconditional(constraint)
        for part in self.conditional(constraint):
            true = (point[part.literal_column] > 0.5) == part.literal_value
            yield _some(part.rows, np.bincount(part.literal_row, ~true, minlength=part.rows.rows) == 0)

    def limits(self, constraint: Any, lower: Floats, upper: Floats) -> tuple[Integers, Floats, Floats]:  # noqa: ARG002
        """Columns that others define, with the least and the greatest value that the bounds of those allow."""
        return _NO_COLUMNS, _NO_VALUES, _NO_VALUES

    def least(self, constraint: Any, lower: Floats) -> tuple[Integers, Floats]:  # noqa: ARG002
        """Columns that others define from below, with their values where all others are at ``lower``."""
        return _NO_COLUMNS, _NO_VALUES

    def bounded(self, constraint: Any) -> Integers:  # noqa: ARG002
        """Columns without whose bounds there is no big-M for its rows."""
        return _NO_COLUMNS

    def held(self, constraint: Any) -> Integers:  # noqa: ARG002
        """Columns that may be held from above as well as from below."""
        return _NO_COLUMNS

    def steps(self, constraint: Any, lower: Floats, upper: Floats) -> tuple[Integers, Floats]:  # noqa: ARG002
        """Continuous columns that it puts into an order, with the most that the next one lies after each."""
        return _NO_COLUMNS, _NO_VALUES

    def coefficients(self, constraint: Any) -> Floats:  # noqa: ARG002
        """The coefficients of its linear expressions."""
        return _NO_VALUES


class _SetsOfNodes(Meaning):
    """:class:`Convex` and :class:`Pipeline`: statements about 0/1 columns alone."""

    def instances(self, constraint: Convex | Pipeline) -> int:
        return len(constraint.members)


class _Implication(Meaning):
    def instances(self, constraint: Implication) -> int:
        return constraint.rows.rows

    def conditional(self, constraint: Implication) -> tuple[Implication, ...]:
        return (constraint,)

    def bounded(self, constraint: Implication) -> Integers:
        return constraint.rows.column

    def held(self, constraint: Implication) -> Integers:
        return np.concatenate((constraint.literal_column, constraint.rows.column))

    def coefficients(self, constraint: Implication) -> Floats:
        return constraint.rows.coefficient


class _Maximum(Meaning):
    def instances(self, constraint: Maximum) -> int:
        return len(constraint.result)

    def unconditional(self, constraint: Maximum) -> tuple[RowBlock, ...]:
        """``result - term >= 0`` for every term."""
        return (_against_terms(constraint, constraint.constant, np.full(len(constraint.group), np.inf)),)

    def alternatives(self, constraint: Maximum) -> tuple[RowBlock, ...]:
        """``result - term <= 0`` for one term of each exact maximum."""
        none = np.full(len(constraint.group), -np.inf)
        return (_against_terms(constraint, none, constraint.constant),) if constraint.exact else ()

    def given(self, constraint: Maximum, point: Floats) -> Iterator[RowBlock]:
        terms = len(constraint.group)
        if not terms:
            return
        high = np.full(terms, np.inf)
        if constraint.exact:
            products = constraint.coefficient * point[constraint.column]
            value = constraint.constant + np.bincount(constraint.term, products, minlength=terms)
            by_size = np.lexsort((value, constraint.group))
            largest = by_size[np.append(np.diff(constraint.group[by_size]) > 0, True)]
            high[largest] = constraint.constant[largest]
        yield _against_terms(constraint, constraint.constant, high)

    def limits(self, constraint: Maximum, lower: Floats, upper: Floats) -> tuple[Integers, Floats, Floats]:
        least, most = term_limits(constraint, lower, upper)
        low, high = np.full((2, len(constraint.result)), -np.inf)
        np.maximum.at(low, constraint.group, least)
        np.maximum.at(high, constraint.group, most)
        return constraint.result, low, high

    def least(self, constraint: Maximum, lower: Floats) -> tuple[Integers, Floats]:
        products = constraint.coefficient * lower[constraint.column]
        value = constraint.constant + np.bincount(constraint.term, products, minlength=len(constraint.group))
        return constraint.result[constraint.group], np.where(np.isnan(value), -np.inf, value)

    def bounded(self, constraint: Maximum) -> Integers:
        return constraint.column

    def held(self, constraint: Maximum) -> Integers:
        return np.concatenate((constraint.result, constraint.column)) if constraint.exact else _NO_COLUMNS

    def coefficients(self, constraint: Maximum) -> Floats:
        return constraint.coefficient


class _Product(Meaning):
    def instances(self, constraint: Product) -> int:
        return len(constraint.result)

    def conditional(self, constraint: Product) -> tuple[Implication, ...]:
        """``result == factor`` where the 0/1 column is one, ``result == 0`` where it is zero."""
        count = len(constraint.result)
        every, ones, zero = np.arange(count), np.ones(count), np.zeros(count)
        column = np.concatenate((constraint.result, constraint.factor))
        same = RowBlock(constraint.origin, np.tile(every, 2), column, np.concatenate((ones, -ones)), zero, zero)
        none = RowBlock(constraint.origin, every, constraint.result, ones, zero, zero)
        return tuple(
            Implication(constraint.origin, every, constraint.binary, np.full(count, value), rows)
            for value, rows in ((True, same), (False, none))
        )

    def limits(self, constraint: Product, lower: Floats, upper: Floats) -> tuple[Integers, Floats, Floats]:
        low, high = lower[constraint.factor], upper[constraint.factor]
        return constraint.result, np.minimum(low, 0.0), np.maximum(high, 0.0)

    def bounded(self, constraint: Product) -> Integers:
        return constraint.factor

    def held(self, constraint: Product) -> Integers:
        return np.concatenate((constraint.result, constraint.binary, constraint.factor))


class _NoOverlap(Meaning):
    def instances(self, constraint: NoOverlap) -> int:
        return len(constraint.start)

    def given(self, constraint: NoOverlap, point: Floats) -> Iterator[RowBlock]:
        """Each interval that is there and lasts ends before the next of its group begins."""
        count = len(constraint.start)
        length, _ = interval_lengths(constraint, point, point)
        there = (constraint.present < 0) | (point[np.maximum(constraint.present, 0)] > 0.5)
        kept = np.flatnonzero(there & (length > 0.0))
        # By their middles: what overlaps by a step of a grid may be shorter than that step.
        middle = point[constraint.start[kept]] + 0.5 * length[kept]
        order = kept[np.lexsort((middle, constraint.group[kept]))]
        same = constraint.group[order[1:]] == constraint.group[order[:-1]]
        one, other = order[:-1][same], order[1:][same]
        pairs = len(one)
        of_pair = np.full(count, -1)
        of_pair[one] = np.arange(pairs)
        entries = of_pair[constraint.interval] >= 0
        every = np.arange(pairs)
        yield RowBlock(
            Origin(constraint.origin.name, constraint.origin.span),
            np.concatenate((every, every, of_pair[constraint.interval[entries]])),
            np.concatenate((constraint.start[other], constraint.start[one], constraint.column[entries])),
            np.concatenate((np.ones(pairs), -np.ones(pairs), -constraint.coefficient[entries])),
            constraint.constant[one], np.full(pairs, np.inf),
        )  # fmt: skip

    def steps(self, constraint: NoOverlap, lower: Floats, upper: Floats) -> tuple[Integers, Floats]:
        return constraint.start, interval_lengths(constraint, lower, upper)[1]


#: The meaning of each kind.
MEANINGS: dict[type, Meaning] = {
    Convex: _SetsOfNodes(), Pipeline: _SetsOfNodes(), Implication: _Implication(), Maximum: _Maximum(),
    Product: _Product(), NoOverlap: _NoOverlap(),
}  # fmt: skip


def meaning(constraint: GlobalConstraint) -> Meaning:
    """The meaning of a constraint, to be asked about that very constraint."""
    return MEANINGS[type(constraint)]


def possible_rows(constraint: GlobalConstraint) -> list[tuple[RowBlock, bool]]:
    """All rows that a constraint may amount to, and whether they hold in every point."""
    known = meaning(constraint)
    sure = [(block, True) for block in known.unconditional(constraint)]
    under = [(part.rows, False) for part in known.conditional(constraint)]
    return [*sure, *under, *((block, False) for block in known.alternatives(constraint))]


def term_limits(constraint: Maximum, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest value of each term of a maximum."""
    least, most = activity(
        constraint.term, constraint.column, constraint.coefficient, len(constraint.group), lower, upper
    )
    return least + constraint.constant, most + constraint.constant


def interval_lengths(constraint: NoOverlap, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest length of each interval."""
    least, most = activity(
        constraint.interval, constraint.column, constraint.coefficient, len(constraint.start), lower, upper
    )
    return least + constraint.constant, most + constraint.constant


def _against_terms(constraint: Maximum, low: Floats, high: Floats) -> RowBlock:
    """``low <= result - (term without its constant) <= high``, a row per term."""
    terms = len(constraint.group)
    return RowBlock(
        constraint.origin.take(constraint.group), np.concatenate((constraint.term, np.arange(terms))),
        np.concatenate((constraint.column, constraint.result[constraint.group])),
        np.concatenate((-constraint.coefficient, np.ones(terms))), low, high,
    )  # fmt: skip


def _some(block: RowBlock, which: Booleans) -> RowBlock:
    """Some rows of a block."""
    place = np.cumsum(which) - 1
    kept = which[block.row]
    return RowBlock(
        Origin(block.origin.name, block.origin.span), place[block.row[kept]],
        block.column[kept], block.coefficient[kept],
        block.lower[which], block.upper[which], block.strict,
    )  # fmt: skip
