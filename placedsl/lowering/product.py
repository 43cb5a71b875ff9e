"""Source: Product of a binary column with another.  Target: four rows a product (McCormick, exact here)."""

from __future__ import annotations

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.lowering.state import Note, State
from placedsl.program.program import Product


def bound(constraint: Product, state: State) -> None:
    """Bound the results by the factors."""
    low, high = state.lower[constraint.factor], state.upper[constraint.factor]
    y = constraint.result
    state.lower[y] = np.maximum(state.lower[y], np.minimum(low, 0.0))
    state.upper[y] = np.minimum(state.upper[y], np.maximum(high, 0.0))


def lower(constraint: Product, state: State) -> None:
    """``result`` equals ``binary * factor``."""
    low, high = state.lower[constraint.factor], state.upper[constraint.factor]
    if not (np.isfinite(low) & np.isfinite(high)).all():
        message = "a product with a decision needs a factor with bounds"
        raise InputError([Diagnostic(message, constraint.origin.span, "bound the variables it uses")])
    y, b, f = constraint.result, constraint.binary, constraint.factor
    state.add_rows(constraint.origin, [(y, 1.0), (b, -high)], -np.inf, 0.0)
    state.add_rows(constraint.origin, [(y, 1.0), (b, -low)], 0.0, np.inf)
    state.add_rows(constraint.origin, [(y, 1.0), (f, -1.0), (b, -low)], -np.inf, -low)
    state.add_rows(constraint.origin, [(y, 1.0), (f, -1.0), (b, -high)], -high, np.inf)
    reach = np.maximum(abs(low), abs(high))
    big, because = float(reach.max(initial=0.0)), ""
    if big:
        at = int(np.argmax(reach))
        because = f"{constraint.origin.describe(at)}: the factor {state.bounds_of(int(f[at]))}"
    state.notes.append(Note(constraint.origin.name, "product to rows", len(y), big, because, constraint.origin.span))
