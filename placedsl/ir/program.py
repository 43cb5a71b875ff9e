"""The constraint IR: columns, blocks of linear rows as arrays, and global constraints.

A :class:`Program` is what a formulation over a problem becomes before any solver is chosen.
Global constraints stay as such until a solver says whether it takes them natively; the
rewrites in :mod:`placedsl.lowering` turn the rest into row blocks, and the outcome of that
is a :class:`LinearProgram`: what every solver file receives.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, whole_numbers
from placedsl.diagnostics import Span
from placedsl.records import dataclass

#: Under this name the labels of the nodes stand in the origin of a Convex or Pipeline.
NODE = "node of a set"


@dataclass(frozen=True, eq=False)
class Origin:
    """Where rows come from: the constraint's name, its place in the spec, and what it ranges over.

    ``indices`` holds, per bound variable, one entry a row: the positions in that variable's
    universe; ``labels`` turns such a position into the user's word for it.
    """

    name: str
    span: Span | None = None
    indices: Mapping[str, Integers] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def describe(self, row: int) -> str:
        """``name[v=embed, d=gpu[1]]`` for one row of the block."""
        parts = [f"{k.partition(chr(39))[0]}={self._shown(k, int(i[row]))}" for k, i in self.indices.items()]
        return self.name + (f"[{', '.join(parts)}]" if parts else "")

    def _shown(self, slot: str, position: int) -> str:
        labels = self.labels.get(slot, ())
        return labels[position] if labels else str(position)

    def take(self, rows: Integers | Booleans) -> Origin:
        """The origin of these rows alone."""
        return Origin(self.name, self.span, {k: v[rows] for k, v in self.indices.items()}, self.labels)


@dataclass(frozen=True, eq=False)
class VariableBlock:
    """One declared variable: ``lookup`` maps index positions to columns (-1: it does not exist).

    ``offset`` (empty where no index is a whole number) is taken from the positions first.
    """

    name: str
    lookup: Integers
    start: int
    size: int
    index_names: tuple[str, ...] = ()
    offset: tuple[int, ...] = ()

    def columns_at(self, positions: list[Integers]) -> Integers:
        """The column of each combination of index positions; -1 where there is none."""
        if not positions:
            return np.asarray(self.lookup).reshape(1)
        if not self.offset:
            return np.asarray(self.lookup[tuple(positions)])
        moved = [p - o for p, o in zip(positions, self.offset, strict=True)]
        inside = np.ones(len(moved[0]), dtype=bool)
        for p, size in zip(moved, self.lookup.shape, strict=True):
            inside &= (p >= 0) & (p < size)
        out = np.full(len(moved[0]), -1, dtype=np.int64)
        out[inside] = self.lookup[tuple(p[inside] for p in moved)]
        return out


@dataclass(frozen=True, eq=False)
class RowBlock:
    """``lower <= sum of coefficient * column <= upper`` for ``len(lower)`` rows, as triplets.

    ``strict``: the bounds themselves are excluded; lowering keeps a margin from them.  ``merged``: the triplets are
    known to be sorted by row and column, each of them once and none of zero.
    """

    origin: Origin
    row: Integers
    column: Integers
    coefficient: Floats
    lower: Floats
    upper: Floats
    strict: bool = False
    merged: bool = False

    @property
    def rows(self) -> int:
        """How many rows the block has."""
        return len(self.lower)

    @cached_property
    def magnitudes(self) -> tuple[float, float]:
        """The least and the largest absolute value of coefficients that are not zero; zeros where there are none."""
        size = np.abs(self.coefficient)
        if not size.all():
            size = size[size != 0.0]
        return (float(size.min()), float(size.max())) if len(size) else (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Convex:
    """Each set of nodes is contiguous: no path leaves it and comes back (Definition 3.1).

    ``members`` is sets x nodes: the binary column that says the node is in the set (-1: never).
    ``before`` and ``after`` are node positions, one pair an edge along which paths run.
    """

    origin: Origin
    members: Integers
    before: Integers
    after: Integers


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The sets can be ordered so that every pair (before, after) stays in one set or goes forward.

    ``members`` is sets x nodes as in :class:`Convex`.  ``alike`` gives a number per set: sets
    with one number are interchangeable, so that their order may be fixed beforehand (-1: with none).
    """

    origin: Origin
    members: Integers
    before: Integers
    after: Integers
    alike: Integers


@dataclass(frozen=True, eq=False)
class Implication:
    """Row i of ``rows`` holds whenever all its literals are true.

    Literals as triplets: ``literal_row``, ``literal_column`` (a binary column) and
    ``literal_value`` (True: the column is one; False: it is zero).
    """

    origin: Origin
    literal_row: Integers
    literal_column: Integers
    literal_value: Booleans
    rows: RowBlock


@dataclass(frozen=True, eq=False)
class Maximum:
    """Column ``result[i]`` is the largest of the affine terms of group i.

    Term j belongs to group ``group[j]`` and is ``constant[j] + sum coefficient * column`` with
    the triplets (``term``, ``column``, ``coefficient``).  When ``exact`` is false the result is only
    ever pushed down, and being at least every term is enough.
    """

    origin: Origin
    result: Integers
    group: Integers
    constant: Floats
    term: Integers
    column: Integers
    coefficient: Floats
    exact: bool


@dataclass(frozen=True, eq=False)
class Product:
    """Column ``result[i]`` equals binary column ``binary[i]`` times column ``factor[i]``."""

    origin: Origin
    result: Integers
    binary: Integers
    factor: Integers


@dataclass(frozen=True, eq=False)
class NoOverlap:
    """Of the intervals of one group that are there, no two overlap; one of no length overlaps nothing.

    Interval i belongs to group ``group[i]``, is there where the 0/1 column ``present[i]`` is one (-1: always), begins
    at column ``start[i]`` and lasts ``constant[i] + sum coefficient * column`` with the triplets (``interval``,
    ``column``, ``coefficient``).  The indices of the origin have one entry an interval.
    """

    origin: Origin
    group: Integers
    present: Integers
    start: Integers
    constant: Floats
    interval: Integers
    column: Integers
    coefficient: Floats


GlobalConstraint = Convex | Pipeline | Implication | Maximum | Product | NoOverlap


@dataclass(frozen=True, eq=False)
class Objective:
    """``constant + sum coefficient * column``, minimised; ``name`` is what the spec calls it."""

    name: str
    column: Integers
    coefficient: Floats
    constant: float = 0.0


@dataclass(frozen=True, eq=False)
class Program:
    """Columns, linear rows, global constraints and objectives (most important first).

    ``column_origins`` names the columns: block k covers columns ``column_start[k]:column_start[k+1]``.
    """

    lower: Floats
    upper: Floats
    integer: Booleans
    variables: Mapping[str, VariableBlock]
    rows: tuple[RowBlock, ...]
    constraints: tuple[GlobalConstraint, ...]
    objectives: tuple[Objective, ...]
    branch: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    column_origins: tuple[Origin, ...] = ()
    column_start: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.lower)

    def whole(self, objective: int) -> bool:
        """Whether an objective is a whole number where it is least: whole coefficients of integer columns, and of
        columns that are the largest of whole numbers."""
        goal = self.objectives[objective]
        numbers = np.append(goal.coefficient, goal.constant)
        if not whole_numbers(numbers).all():
            return False
        known = self.integer.copy()
        for one in self.constraints:
            if isinstance(one, Maximum) and (goal.coefficient[np.isin(goal.column, one.result)] >= 0.0).all():
                fractional = np.zeros(len(one.result), dtype=bool)
                fractional[one.group[~whole_numbers(one.constant)]] = True
                apart = ~known[one.column] | ~whole_numbers(one.coefficient)
                fractional[one.group[one.term[apart]]] = True
                known[one.result[~fractional]] = True
        return bool(known[goal.column].all())

    def terms_of(self, column: int) -> tuple[Maximum, Integers] | None:
        """The maximum that a column is, and the positions of its terms; None for any other column."""
        for one in self.constraints:
            if isinstance(one, Maximum) and column in one.result:
                return one, np.flatnonzero(one.group == int(np.flatnonzero(one.result == column)[0]))
        return None


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``offset + cost @ x`` over ``row_lower <= A x <= row_upper``, column bounds, integrality.

    ``A`` by rows: row i has entries ``start[i]:start[i+1]`` of ``column`` and ``coefficient``
    (no duplicates within a row).  ``native`` holds the global constraints that the solver said it
    takes itself.  Infinite bounds are ``inf``.  ``hint`` is a full starting point or None.
    ``origins`` names the rows: block k covers rows ``origin_start[k]:origin_start[k+1]``; ``column_origins``
    and ``column_start`` name the columns likewise.
    ``assumed_zero`` are 0/1 columns that are zero in this run, and about which a solver that takes assumptions says,
    when there is no point, which of them that rests on; it is empty for every other solver.
    """

    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    integer: Booleans
    start: Integers
    column: Integers
    coefficient: Floats
    row_lower: Floats
    row_upper: Floats
    native: tuple[GlobalConstraint, ...] = ()
    hint: Floats | None = None
    origins: tuple[Origin, ...] = ()
    origin_start: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    assumed_zero: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    column_origins: tuple[Origin, ...] = ()
    column_start: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.cost)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.row_lower)

    def row_name(self, row: int) -> str:
        """The constraint that a row belongs to, with its indices."""
        return described(self.origins, self.origin_start, row)

    def column_name(self, column: int) -> str:
        """The variable that a column belongs to, with its indices."""
        return described(self.column_origins, self.column_start, column)


def described(origins: Sequence[Origin], start: Sequence[int] | Integers, position: int) -> str:
    """``name[v=embed, d=gpu[1]]`` for one of many rows or columns, of which block k begins at ``start[k]``."""
    block = bisect.bisect_right(start, position) - 1
    return origins[block].describe(position - int(start[block]))
