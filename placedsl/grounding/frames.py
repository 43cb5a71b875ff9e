"""Frames of bound variables, and the columns and rows that grounding brings forth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.ir.affine import Affine, activity
from placedsl.ir.program import GlobalConstraint, Origin, RowBlock
from placedsl.problem import expressions as core
from placedsl.records import dataclass
from placedsl.tolerances import CONTRADICTION


@dataclass(frozen=True, eq=False)
class Frame:
    """``size`` combinations of bound variables."""

    size: int
    slots: Mapping[str, Integers]
    sorts: Mapping[str, core.Sort]

    def take(self, rows: Integers) -> Frame:
        """The combinations at these positions."""
        return Frame(len(rows), {k: v[rows] for k, v in self.slots.items()}, self.sorts)

    def between(self, first: int, last: int) -> Frame:
        """The combinations from one position up to another; they share memory with these."""
        return Frame(last - first, {k: v[first:last] for k, v in self.slots.items()}, self.sorts)

    def times(self, inner: Frame) -> Frame:
        """Every combination of one of these with one of the inner ones, by these."""
        slots = {k: each(v, inner.size) for k, v in self.slots.items()}
        slots |= {k: _in_turn(v, self.size) for k, v in inner.slots.items()}
        return Frame(self.size * inner.size, slots, {**self.sorts, **inner.sorts})

    def crossed(self, inner: Frame, most: int) -> Iterator[Frame]:
        """The same in parts of at most ``most`` combinations."""
        if self.size * inner.size <= most:
            yield self.times(inner)
            return
        step = max(1, most // inner.size)
        for first in range(0, self.size, step):
            part = self.between(first, min(first + step, self.size)).times(inner)
            for begin in range(0, part.size, most):
                yield part.between(begin, min(begin + most, part.size))


ROOT = Frame(1, {}, {})


def each(values: Integers, times: int) -> Integers:
    """Each value several times, one after the other; a view where that needs no memory of its own."""
    if len(values) == 1:
        return np.broadcast_to(values, times)
    return values if times == 1 else np.repeat(values, times)


def _in_turn(values: Integers, times: int) -> Integers:
    """All values several times; a view where that needs no memory of its own."""
    if len(values) == 1:
        return np.broadcast_to(values, times)
    return values if times == 1 else np.tile(values, times)


@dataclass
class Columns:
    """Columns and constraints as they come into being."""

    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    integer: list[Booleans] = field(default_factory=list)
    count: int = 0
    rows: list[RowBlock] = field(default_factory=list)
    constraints: list[GlobalConstraint] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    impossible: list[tuple[Origin, int]] = field(default_factory=list)

    def add(self, size: int, low: float, high: float, integer: bool, origin: Origin) -> Integers:
        """New columns; ``origin`` names them, with one entry a column in its indices."""
        self.origins.append(origin)
        self.lower.append(np.full(size, low))
        self.upper.append(np.full(size, high))
        self.integer.append(np.full(size, integer))
        self.count += size
        return np.arange(self.count - size, self.count)

    def add_rows(self, origin: Origin, body: Affine, lower: Floats, upper: Floats, strict: bool = False) -> None:
        """``lower <= body <= upper``; rows without columns are decided here.

        Rows of a wider frame than their origin's (a condition within a ``count``) have no indices of their own.
        """
        if any(len(v) != body.size for v in origin.indices.values()):
            origin = Origin(origin.name, origin.span)
        if not body.is_number:
            message = f"'{origin.name}' uses an attribute that some of the elements it ranges over do not have"
            raise InputError([Diagnostic(message, origin.span, "narrow it with 'where', as in where layerId >= 0")])
        body = body.merged()
        # A side that is infinite (a memory without limit) leaves a row that always or never holds.
        lower, upper = sides(body, lower, upper)
        filled = np.zeros(body.size, dtype=bool)
        filled[body.row] = True
        empty = np.flatnonzero(~filled)
        low, high = lower[empty], upper[empty]
        slack = -CONTRADICTION if strict else CONTRADICTION
        false = (low > slack * np.maximum(1.0, abs(low))) | (high < -slack * np.maximum(1.0, abs(high)))
        self.impossible += [(origin, int(i)) for i in empty[false]]
        kept = filled & ((lower > -np.inf) | (upper < np.inf))
        row, column, coefficient = body.row, body.column, body.coefficient
        if not kept.all():
            position, entries = np.cumsum(kept) - 1, kept[row]
            row, column, coefficient = position[row[entries]], column[entries], coefficient[entries]
            origin, lower, upper = origin.take(kept), lower[kept], upper[kept]
        self.rows.append(RowBlock(origin, row, column, coefficient, lower, upper, strict, merged=True))

    def forget(self) -> None:
        """Let go of what has been made: grounders, which refer to one another, are collected only now and then."""
        for made in (self.lower, self.upper, self.integer, self.rows, self.constraints, self.origins):
            made.clear()

    def whole_numbered(self, body: Affine) -> bool:
        """Whether an expression is a whole number at every point."""
        integer = np.concatenate(self.integer)
        return bool(integer[body.column].all() and _whole(body.coefficient) and _whole(body.constant))

    def zero_or_one(self, body: Affine) -> bool:
        """Whether an expression is 0 or 1 at every point, by the bounds of its columns."""
        if not self.whole_numbered(body):
            return False
        body = body.merged()
        lower, upper = np.concatenate(self.lower), np.concatenate(self.upper)
        least, most = activity(body.row, body.column, body.coefficient, body.size, lower, upper)
        return bool((body.constant + least >= 0.0).all() and (body.constant + most <= 1.0).all())

    def binary(self, columns: Integers) -> bool:
        """All of these columns are 0/1."""
        lower, upper = np.concatenate(self.lower), np.concatenate(self.upper)
        integer = np.concatenate(self.integer)
        return bool(integer[columns].all() and (lower[columns] >= 0).all() and (upper[columns] <= 1).all())


def rows_of(origin: Origin, body: Affine, lower: Floats, upper: Floats) -> RowBlock:
    """``lower <= body <= upper`` as a block."""
    lower, upper = sides(body, lower, upper)
    return RowBlock(origin, body.row, body.column, body.coefficient, lower, upper)


def sides(body: Affine, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The sides of rows without the constant of their body."""
    if not body.constant.any():
        return lower, upper
    with np.errstate(invalid="ignore"):  # a side without a bound stays so, even where the constant is infinite
        lower = np.where(np.isneginf(lower), lower, lower - body.constant)
        upper = np.where(np.isposinf(upper), upper, upper - body.constant)
    return lower, upper


def _whole(values: Floats) -> bool:
    """Whether all of these are whole numbers."""
    return bool((values == np.round(values)).all())
