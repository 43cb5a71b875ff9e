"""Source: Product of a binary column with another.  Target: four rows a product (McCormick, exact here)."""

from __future__ import annotations

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.ir.program import Product
from placedsl.lowering.context import LoweringContext, Note


def lower(constraint: Product, context: LoweringContext) -> None:
    """``result`` equals ``binary * factor``."""
    low, high = context.lower[constraint.factor], context.upper[constraint.factor]
    if not (np.isfinite(low) & np.isfinite(high)).all():
        message = "a product with a decision needs a factor with bounds"
        raise InputError([Diagnostic(message, constraint.origin.span, "bound the variables it uses")])
    y, b, f = constraint.result, constraint.binary, constraint.factor
    context.add_rows(constraint.origin, [(y, 1.0), (b, -high)], -np.inf, 0.0)
    context.add_rows(constraint.origin, [(y, 1.0), (b, -low)], 0.0, np.inf)
    context.add_rows(constraint.origin, [(y, 1.0), (f, -1.0), (b, -low)], -np.inf, -low)
    context.add_rows(constraint.origin, [(y, 1.0), (f, -1.0), (b, -high)], -high, np.inf)
    reach = np.maximum(abs(low), abs(high))
    big, because = float(reach.max(initial=0.0)), ""
    if big:
        at = int(np.argmax(reach))
        because = f"{constraint.origin.describe(at)}: the factor {context.bounds_of(int(f[at]))}"
    context.notes.append(Note(constraint.origin.name, "product to rows", len(y), big, because, constraint.origin.span))
