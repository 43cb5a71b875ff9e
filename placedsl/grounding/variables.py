"""Columns of declared variables."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from placedsl import limits
from placedsl.arrays import Integers
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.grounding.frames import ROOT
from placedsl.ir.program import VariableBlock
from placedsl.problem import expressions as core
from placedsl.problem.problem import Variable
from placedsl.records import dataclass

if TYPE_CHECKING:
    from placedsl.grounding.expressions import ExpressionGrounder


@dataclass
class DeclaredVariables:
    """Variables by name: their columns, and the sorts of their indices."""

    blocks: dict[str, VariableBlock] = field(default_factory=dict)
    sorts: dict[str, tuple[core.Sort, ...]] = field(default_factory=dict)

    def share(self, name: str, other: DeclaredVariables) -> None:
        """Take over a variable that was declared elsewhere."""
        self.blocks[name] = other.blocks[name]
        self.sorts[name] = other.sorts[name]


def declare(expressions: ExpressionGrounder, variable: Variable) -> tuple[Integers, ...]:
    """Columns for a variable; returns the positions of its indices, one array per index."""
    frame, _ = expressions.sets.expand(ROOT, variable.binders)
    slots = [s for b in variable.binders for s in b.slots]
    sorts = [s for b in variable.binders for s in b.sorts]
    start = expressions.columns.count
    origin = expressions.origins.of(variable.name, variable.span, frame)
    columns = expressions.columns.add(frame.size, variable.low, variable.high, variable.integer, origin)
    positions = [frame.slots[s] for s in slots]
    offset, shape = [], []
    for sort, position in zip(sorts, positions, strict=True):
        low = int(position.min(initial=0)) if sort == "integer" else 0
        offset.append(low)
        shape.append(int(position.max(initial=0)) - low + 1 if sort == "integer" else expressions.universe.sizes[sort])
    spanned, most = math.prod(shape), limits.count("indices")  # the table from indices to columns
    if spanned > most:
        message = f"the indices of '{variable.name}' span {spanned:,} combinations"
        hint = limits.hint(f"at most {most:,}; use fewer indices", "indices", spanned)
        raise InputError([Diagnostic(message, variable.span, hint)])
    lookup = np.full(shape, -1, dtype=np.int64)
    where = tuple(p - o for p, o in zip(positions, offset, strict=True))
    lookup[where] = columns if where else columns[0]
    block = VariableBlock(
        variable.name, lookup, start, frame.size, tuple(slots), tuple(offset) if "integer" in sorts else ()
    )
    expressions.variables.blocks[variable.name] = block
    expressions.variables.sorts[variable.name] = tuple(sorts)
    return tuple(positions)
