"""Source: Maximum.  Target: rows ``result >= term``, and selectors when the maximum must be exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.lowering.bounds import activity
from placedsl.lowering.state import Note, State
from placedsl.program.program import Floats, Maximum, RowBlock


def bound(constraint: Maximum, state: State) -> tuple[Floats, Floats]:
    """Bound the results by the terms; returns the least value of each term and the greatest of each group."""
    terms, groups = len(constraint.group), len(constraint.result)
    least, most = activity(constraint.term, constraint.column, constraint.coefficient, terms, state.lower, state.upper)
    least, most = least + constraint.constant, most + constraint.constant
    low, high = np.full(groups, -np.inf), np.full(groups, -np.inf)
    np.maximum.at(low, constraint.group, least)
    np.maximum.at(high, constraint.group, most)
    state.lower[constraint.result] = np.maximum(state.lower[constraint.result], low)
    state.upper[constraint.result] = np.minimum(state.upper[constraint.result], high)
    return least, high


def lower(constraint: Maximum, state: State) -> None:
    """Add the rows."""
    least, high = bound(constraint, state)
    terms, groups = len(constraint.group), len(constraint.result)
    result = constraint.result[constraint.group]
    every = np.arange(terms)
    row = np.concatenate((every, constraint.term))
    column = np.concatenate((result, constraint.column))
    coefficient = np.concatenate((np.ones(terms), -constraint.coefficient))
    none = np.full(terms, np.inf)
    origin = constraint.origin.take(constraint.group)
    state.blocks.append(RowBlock(origin, row, column, coefficient, constraint.constant, none))
    if not constraint.exact:
        state.notes.append(Note(constraint.origin.name, "maximum to lower rows", groups))
        return
    big = high[constraint.group] - least
    if not np.isfinite(big).all():
        message = "this maximum or minimum must be exact here, and its terms have no bounds"
        raise InputError([Diagnostic(message, constraint.origin.span, "bound the variables it uses")])
    chosen = state.add_columns(terms, 0, 1, True, replace(origin, name=f"{origin.name}_chosen"))
    # result - term + M * chosen <= M
    state.blocks.append(
        RowBlock(
            origin,
            np.concatenate((row, every)),
            np.concatenate((column, chosen)),
            np.concatenate((coefficient, big)),
            -none,
            constraint.constant + big,
        )
    )
    one = np.ones(groups)
    state.blocks.append(RowBlock(constraint.origin, constraint.group, chosen, np.ones(terms), one, one))
    state.notes.append(Note(constraint.origin.name, "maximum to selectors", groups, float(big.max(initial=0.0))))
