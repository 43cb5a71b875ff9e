"""What each part of a problem brings forth while it is grounded: columns, rows, arrays, seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, fields
from typing import Any, Literal

import numpy as np

from placedsl.diagnostics import Span
from placedsl.grounding.frames import Columns
from placedsl.records import dataclass

Kind = Literal["variable", "objective", "constraint", "row family", "tight rows"]


@dataclass(frozen=True)
class Part:
    """One variable, objective, constraint of the spec, or row family of the formulation, as it was grounded.

    ``columns``, ``blocks`` and ``constraints`` are positions among the columns, row blocks and global constraints of
    the program.  ``bytes`` is the size of the arrays that hold them, ``seconds`` what grounding took.  What several
    parts use and is grounded once counts for the first of them.
    """

    kind: Kind
    name: str
    span: Span | None
    columns: range
    blocks: tuple[int, ...]
    constraints: range
    bytes: int
    seconds: float


@dataclass(frozen=True)
class _Extent:
    """How much there was at one moment."""

    columns: int
    column_blocks: int
    rows: int
    constraints: int
    impossible: int


@dataclass
class Recorder:
    """Looks at the columns before and after each part is grounded."""

    columns: Columns
    found: list[tuple[Kind, str, Span | None, _Extent, _Extent, float]] = field(default_factory=list)

    @contextmanager
    def part(self, kind: Kind, name: str, span: Span | None) -> Iterator[None]:
        """What is grounded inside belongs to this part."""
        before, start = self._extent(), time.perf_counter()
        yield
        self.found.append((kind, name, span, before, self._extent(), time.perf_counter() - start))

    def _extent(self) -> _Extent:
        known = self.columns
        blocks = len(known.lower), len(known.rows), len(known.constraints), len(known.impossible)
        return _Extent(known.count, *blocks)

    def parts(self, refuted: int) -> tuple[Part, ...]:
        """The parts; ``refuted`` is the position among the row blocks of the first that stands for what is impossible.

        Positions are those among the blocks that have rows.
        """
        filled = [bool(block.rows) for block in self.columns.rows]
        position = np.cumsum([0, *filled]).tolist()
        out = []
        for kind, name, span, before, after, seconds in self.found:
            own = [*range(before.rows, after.rows), *range(refuted + before.impossible, refuted + after.impossible)]
            kept = [self.columns.rows[i] for i in own if filled[i]]
            held: list[object] = [*kept, *self.columns.constraints[before.constraints : after.constraints]]
            for arrays in (self.columns.lower, self.columns.upper, self.columns.integer):
                held += arrays[before.column_blocks : after.column_blocks]
            columns, blocks = range(before.columns, after.columns), tuple(position[i] for i in own if filled[i])
            constraints = range(before.constraints, after.constraints)
            if kind in ("variable", "row family") and not (columns or blocks or constraints):
                continue  # such as those that speak of clusters, on a machine that has none
            out.append(Part(kind, name, span, columns, blocks, constraints, held_bytes(held), seconds))
        return tuple(out)


def held_bytes(held: list[object]) -> int:
    """The size of all arrays within these; one that several share counts once."""
    sizes: dict[int, int] = {}
    waiting: list[Any] = list(held)
    while waiting:
        one = waiting.pop()
        if isinstance(one, np.ndarray):
            sizes[id(one)] = one.nbytes
        elif isinstance(one, dict):
            waiting += one.values()
        elif hasattr(one, "__dataclass_fields__") and not isinstance(one, Span):
            waiting += [getattr(one, f.name) for f in fields(one) if f.name != "labels"]
    return sum(sizes.values())
