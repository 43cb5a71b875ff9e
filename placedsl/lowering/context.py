"""The program while it is being lowered: columns and rows that grow, bounds, and notes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.diagnostics import Span
from placedsl.ir.program import NODE, Origin, RowBlock, described


@dataclass(frozen=True)
class Note:
    """One rewrite that was used: what became what, how often, and its largest big-M (0: none).

    ``because``: for which instance the big-M is that large, and which bounds it comes from.
    """

    constraint: str
    rewrite: str
    instances: int
    big_m: float = 0.0
    because: str = ""
    span: Span | None = None


@dataclass
class LoweringContext:
    """Columns and rows so far.  ``integral`` asks for 0/1 auxiliary columns to be declared integer.

    ``declared``: which of the program's columns have the bounds that they were declared with; those of the others come
    from rows.
    """

    lower: Floats
    upper: Floats
    integer: Booleans
    integral: bool
    blocks: list[RowBlock] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    column_start: list[int] = field(default_factory=lambda: [0])
    declared: Booleans = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def add_columns(self, count: int, low: float, high: float, integer: bool, origin: Origin) -> Integers:
        """New columns; ``origin`` names them."""
        start = len(self.lower)
        self.origins.append(origin)
        self.column_start.append(start + count)
        self.lower = np.concatenate((self.lower, np.full(count, low)))
        self.upper = np.concatenate((self.upper, np.full(count, high)))
        self.integer = np.concatenate((self.integer, np.full(count, integer)))
        return np.arange(start, start + count)

    def bounds_of(self, column: int) -> str:
        """A column by its name, with its bounds and where they come from."""
        name = described(self.origins, self.column_start, column)
        source = "as declared" if column >= len(self.declared) or self.declared[column] else "as its rows imply"
        low, high = self.lower[column] + 0.0, self.upper[column] + 0.0  # no negative zero
        return f"{name} in {low:.6g} .. {high:.6g}, {source}"

    def widest(self, columns: Integers, coefficients: Floats) -> str:
        """The column that the reach of a sum comes from most, with its bounds."""
        if not len(columns):
            return ""
        reach = np.abs(coefficients) * (self.upper[columns] - self.lower[columns])
        return self.bounds_of(int(columns[int(np.argmax(reach))]))

    def of_members(self, origin: Origin, what: str, nodes: Integers) -> Origin:
        """The name of columns, one a set and node, that are added for a constraint on sets of nodes."""
        sets = len(next(iter(origin.indices.values()))) if origin.indices else 1
        indices = {k: np.repeat(v, len(nodes)) for k, v in origin.indices.items()}
        if NODE in origin.labels:
            indices[NODE] = np.tile(nodes, sets)
        return Origin(f"{origin.name}_{what}", origin.span, indices, origin.labels)

    def add_rows(
        self, origin: Origin, terms: list[tuple[Integers, float | Floats]], lower: float | Floats, upper: float | Floats
    ) -> None:
        """Rows over parallel arrays: row i is the sum of ``coefficient * columns[i]`` over the terms.

        A column of -1 contributes nothing.
        """
        rows = len(terms[0][0])
        every = np.arange(rows)
        row = np.concatenate([every[c >= 0] for c, _ in terms])
        column = np.concatenate([c[c >= 0] for c, _ in terms])
        coefficient = np.concatenate([np.broadcast_to(a, rows)[c >= 0] for c, a in terms]).astype(float)
        low = np.broadcast_to(np.asarray(lower, dtype=float), rows)
        high = np.broadcast_to(np.asarray(upper, dtype=float), rows)
        self.blocks.append(RowBlock(origin, row, column, coefficient, low, high))
