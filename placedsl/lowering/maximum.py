"""Source: Maximum.  Target: rows ``result >= term``, and selectors when the maximum must be exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.ir.program import Maximum, RowBlock
from placedsl.ir.row_meaning import meaning, term_limits
from placedsl.lowering.context import LoweringContext, Note


def lower(constraint: Maximum, context: LoweringContext) -> None:
    """Add the rows."""
    result, low, high = meaning(constraint).limits(constraint, context.lower, context.upper)
    context.lower[result] = np.maximum(context.lower[result], low)
    context.upper[result] = np.minimum(context.upper[result], high)
    terms, groups = len(constraint.group), len(constraint.result)
    every = np.arange(terms)
    (rows,) = meaning(constraint).unconditional(constraint)
    context.blocks.append(rows)
    if not constraint.exact:
        note = Note(constraint.origin.name, "maximum to lower rows", groups, span=constraint.origin.span)
        context.notes.append(note)
        return
    least, _ = term_limits(constraint, context.lower, context.upper)
    big = high[constraint.group] - least
    if not np.isfinite(big).all():
        message = "this maximum or minimum must be exact here, and its terms have no bounds"
        raise InputError([Diagnostic(message, constraint.origin.span, "bound the variables it uses")])
    chosen = context.add_columns(terms, 0, 1, True, replace(rows.origin, name=f"{rows.origin.name}_chosen"))
    # result - term + M * chosen <= M
    context.blocks.append(
        replace(
            rows,
            row=np.concatenate((rows.row, every)),
            column=np.concatenate((rows.column, chosen)),
            coefficient=np.concatenate((rows.coefficient, big)),
            lower=np.full(terms, -np.inf),
            upper=constraint.constant + big,
        )
    )
    one = np.ones(groups)
    context.blocks.append(RowBlock(constraint.origin, constraint.group, chosen, np.ones(terms), one, one))
    if not terms:
        return
    worst = int(np.argmax(big))
    of_worst = constraint.term == worst
    because = (
        f"{constraint.origin.describe(int(constraint.group[worst]))}: the largest is at most "
        f"{high[constraint.group[worst]]:.6g}, one of its terms at least {least[worst]:.6g}"
    )
    named = context.widest(constraint.column[of_worst], constraint.coefficient[of_worst])
    because += f" ({named})" if named else ""
    context.notes.append(
        Note(constraint.origin.name, "maximum to selectors", groups, float(big[worst]), because, constraint.origin.span)
    )
