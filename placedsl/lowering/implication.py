"""Source: Implication.  Target: rows with the least big-M that the column bounds allow."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.ir.affine import activity
from placedsl.ir.program import Implication, RowBlock
from placedsl.lowering.context import LoweringContext, Note


def lower(constraint: Implication, context: LoweringContext) -> None:
    """``a x <= u`` under literals becomes ``a x <= u + M * (number of false literals)``."""
    rows = constraint.rows
    least, most = activity(rows.row, rows.column, rows.coefficient, rows.rows, context.lower, context.upper)
    value = constraint.literal_value
    literals = np.bincount(constraint.literal_row, minlength=rows.rows)
    positive = np.bincount(constraint.literal_row, weights=value, minlength=rows.rows)
    largest, because = 0.0, ""
    for upper_side in (True, False):
        bound = rows.upper if upper_side else rows.lower
        with np.errstate(invalid="ignore"):  # no bound on either side: there is nothing to keep
            gap = most - bound if upper_side else bound - least
        kept = np.isfinite(bound) & (gap > 0) & (literals > 0)
        unbounded = np.isfinite(bound) & np.isinf(gap)
        if unbounded.any():
            message = f"'{constraint.origin.name}' holds only under a condition, and its numbers have no bounds"
            raise InputError([Diagnostic(message, constraint.origin.span, "bound the variables it uses")])
        plain = np.isfinite(bound) & (literals == 0)
        big = np.where(kept, gap, 0.0)
        if big.max(initial=0.0) > largest:
            worst = int(np.argmax(big))
            largest, because = float(big[worst]), _because(constraint, worst, most if upper_side else least, context)
        sign = 1.0 if upper_side else -1.0
        # a x + M * (true literals) <= u + M * literals, with the sign turned for lower bounds.
        weight = np.where(value, 1.0, -1.0) * sign * big[constraint.literal_row]
        limit = bound + sign * big * positive
        keep = kept | plain
        position = np.cumsum(keep) - 1
        terms, switches = keep[rows.row], keep[constraint.literal_row] & (weight != 0.0)
        none = np.full(int(keep.sum()), np.inf)
        context.blocks.append(
            RowBlock(
                constraint.origin.take(keep),
                np.concatenate((position[rows.row[terms]], position[constraint.literal_row[switches]])),
                np.concatenate((rows.column[terms], constraint.literal_column[switches])),
                np.concatenate((rows.coefficient[terms], weight[switches])),
                -none if upper_side else limit[keep],
                limit[keep] if upper_side else none,
            )
        )
    origin = constraint.origin
    context.notes.append(Note(origin.name, "implication to big-M rows", rows.rows, largest, because, origin.span))


def _because(constraint: Implication, row: int, reach: Floats, context: LoweringContext) -> str:
    """Why the big-M of a row is what it is."""
    rows = constraint.rows
    own = rows.row == row
    bound = rows.upper[row] if np.isfinite(rows.upper[row]) else rows.lower[row]
    widest = context.widest(rows.column[own], rows.coefficient[own])
    described = constraint.origin.describe(row)
    return f"{described}: the sum reaches {reach[row]:.6g} against {bound:.6g} ({widest})"
