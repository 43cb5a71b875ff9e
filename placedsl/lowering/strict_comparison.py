"""Source: rows whose bounds are excluded.  Target: rows that keep a margin from their bounds.

No solver tells ``a < b`` of real numbers from ``a <= b``.  The margin is a share of the largest value that the row can
take, well above what solvers leave open.  A row that no values within the bounds of its columns keep is broken by as
much as it can reach: no tolerance takes it for kept then.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.arrays import finite_sizes
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.ir.affine import activity
from placedsl.ir.program import RowBlock
from placedsl.lowering.context import LoweringContext, Note

#: The margin, of the largest absolute value of either side.
MARGIN = 1e-5


def with_margin(block: RowBlock, context: LoweringContext) -> RowBlock:
    """The block with closed bounds."""
    if not block.strict or not block.rows:
        return block
    least, most = activity(block.row, block.column, block.coefficient, block.rows, context.lower, context.upper)
    sides = np.maximum(finite_sizes(block.lower), finite_sizes(block.upper))
    reach = np.maximum(np.maximum(abs(least), abs(most)), sides)
    never = (least >= block.upper) | (most <= block.lower)
    largest = np.zeros(block.rows)
    np.maximum.at(largest, block.row, np.abs(block.coefficient))
    broken_by = np.max([np.ones(block.rows), largest, sides, finite_sizes(least), finite_sizes(most)], axis=0)
    margin = np.where(never, broken_by, MARGIN * reach)
    if not np.isfinite(margin).all():
        message = f"'{block.origin.name}' compares with < or > what has no bounds"
        raise InputError([Diagnostic(message, block.origin.span, "bound the variables it uses, or compare with <=")])
    if not never.all():
        rewrite = f"strict comparison to one with a margin of {margin[~never].max():.3g}"
        context.notes.append(Note(block.origin.name, rewrite, int((~never).sum()), span=block.origin.span))
    return replace(block, lower=block.lower + margin, upper=block.upper - margin, strict=False)
