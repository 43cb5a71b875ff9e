"""The program while it is being lowered: columns and rows that grow, bounds, and notes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.program.program import NODE, Booleans, Floats, Integers, Origin, RowBlock


@dataclass(frozen=True)
class Note:
    """One rewrite that was used: what became what, how often, and its largest big-M (0: none)."""

    constraint: str
    rewrite: str
    instances: int
    big_m: float = 0.0


@dataclass
class State:
    """Columns and rows so far.  ``integral`` asks for 0/1 auxiliary columns to be declared integer."""

    lower: Floats
    upper: Floats
    integer: Booleans
    integral: bool
    blocks: list[RowBlock] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    column_start: list[int] = field(default_factory=lambda: [0])

    def add_columns(self, count: int, low: float, high: float, integer: bool, origin: Origin) -> Integers:
        """New columns; ``origin`` names them."""
        start = len(self.lower)
        self.origins.append(origin)
        self.column_start.append(start + count)
        self.lower = np.concatenate((self.lower, np.full(count, low)))
        self.upper = np.concatenate((self.upper, np.full(count, high)))
        self.integer = np.concatenate((self.integer, np.full(count, integer)))
        return np.arange(start, start + count)

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
