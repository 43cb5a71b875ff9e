"""What each constraint, objective, variable and row family adds to the program that a solver gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Integers
from placedsl.diagnostics import Span
from placedsl.grounding.build import Grounded
from placedsl.grounding.provenance import Kind, Part
from placedsl.ir.affine import spread
from placedsl.ir.row_meaning import meaning
from placedsl.lowering.lower import Lowered

#: What one column holds: two bounds, whether it is integer, its cost; one row: two bounds and a start; an entry.
_COLUMN_BYTES, _ROW_BYTES, _ENTRY_BYTES = 25, 24, 16


@dataclass(frozen=True, eq=False)
class Contribution:
    """One line of the table.

    ``rows``, ``columns`` and ``entries`` are those of the lowered program, ``native`` the instances of global
    constraints that the solver takes as they are.  ``smallest`` and ``largest`` are the absolute values of the
    coefficients in the rows (0: there are none), ``seconds`` is what grounding took, ``bytes`` the size of the arrays.
    ``plain`` and ``switched`` are positions of its rows: without a big-M, and with one.
    """

    kind: Kind
    name: str
    span: Span | None
    rows: int
    columns: int
    entries: int
    native: int
    smallest: float
    largest: float
    seconds: float
    bytes: int
    plain: Integers
    switched: Integers


def contributions(grounded: Grounded, lowered: Lowered) -> tuple[Contribution, ...]:
    """One for each part, in the order in which they were grounded.

    Rows, columns and entries of all together are those of the program.
    """
    return tuple(_contribution(part, grounded, lowered) for part in grounded.parts)


def _contribution(part: Part, grounded: Grounded, lowered: Lowered) -> Contribution:
    linear = lowered.program
    rewritten = [r for r in lowered.rewritten if r.constraint in part.constraints]
    known = {r.constraint for r in rewritten}
    native = [grounded.program.constraints[k] for k in part.constraints if k not in known]
    plain = _rows(lowered, [*part.blocks, *(b for r in rewritten if not r.big_m for b in r.blocks)])
    switched = _rows(lowered, [b for r in rewritten if r.big_m for b in r.blocks])
    sizes = np.abs(linear.coefficient[entries_of(lowered, np.concatenate((plain, switched)))])
    inside = [np.abs(values[values != 0.0]) for values in (meaning(c).coefficients(c) for c in native)]
    every = np.concatenate((sizes, *inside))
    instances = sum(meaning(c).instances(c) for c in native)
    added = sum(len(r.columns) for r in rewritten)
    rows, entries = len(plain) + len(switched), len(sizes)
    lowered_rows = _rows(lowered, [b for r in rewritten for b in r.blocks])
    further = len(lowered_rows) * _ROW_BYTES + len(entries_of(lowered, lowered_rows)) * _ENTRY_BYTES
    return Contribution(
        part.kind, part.name, part.span, rows, len(part.columns) + added, entries, instances,
        float(every.min()) if len(every) else 0.0, float(every.max()) if len(every) else 0.0,
        part.seconds, part.bytes + further + added * _COLUMN_BYTES, plain, switched,
    )  # fmt: skip


def _rows(lowered: Lowered, blocks: list[int]) -> Integers:
    """The rows of blocks."""
    start = lowered.program.origin_start
    ranges = [np.arange(start[k], start[k + 1]) for k in blocks]
    return np.concatenate((np.zeros(0, dtype=np.int64), *ranges))


def entries_of(lowered: Lowered, rows: Integers) -> Integers:
    """The positions of the entries of rows, row by row."""
    start = lowered.program.start
    return spread(start[rows], start[rows + 1] - start[rows])
