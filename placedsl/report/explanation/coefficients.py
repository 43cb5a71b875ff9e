"""Coefficients that lie too far apart for numbers with sixteen digits, by line of the spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Span
from placedsl.grounding.build import Grounded
from placedsl.ir.program import LinearProgram, described
from placedsl.lowering.lower import Lowered
from placedsl.problem.problem import Objective as Goal
from placedsl.report.explanation.contributions import Contribution, entries_of
from placedsl.solvers.equilibration import conditioned

#: The largest over the smallest coefficient from which on it is worth a word.
SPREAD = 1e6


@dataclass(frozen=True)
class NumericalWarning:
    """What is too far apart, where it is said, and what to do; ``ratio`` is the largest over the smallest."""

    name: str
    span: Span | None
    ratio: float
    message: str
    hint: str


def numerical_warnings(
    goals: Sequence[Goal], grounded: Grounded, lowered: Lowered, contributed: Sequence[Contribution]
) -> tuple[NumericalWarning, ...]:
    """Objectives first, then constraints and row families: a range too wide, or a big-M too large for its row."""
    linear = lowered.program
    out = [_of_objective(goal, k, grounded) for k, goal in enumerate(goals)]
    scaled: LinearProgram | None = None
    for one in contributed:
        for found in (_too_wide(one, lowered), _big_m(one, lowered)):
            if found is None:
                continue
            scaled = scaled or conditioned(linear).program
            rows, warning = found
            left = _ratio(np.abs(scaled.coefficient[entries_of(lowered, rows)]))
            out.append(_with_scaling(warning, left))
    return tuple(warning for warning in out if warning is not None)


def _ratio(sizes: Floats) -> float:
    sizes = sizes[sizes > 0.0]
    return float(sizes.max() / sizes.min()) if len(sizes) else 1.0


def _of_objective(goal: Goal, position: int, grounded: Grounded) -> NumericalWarning | None:
    program = grounded.program
    given = program.objectives[position]
    cost = np.bincount(given.column, weights=given.coefficient, minlength=program.columns)
    used = np.flatnonzero(cost)
    sizes = np.abs(cost[used])
    ratio = _ratio(sizes)
    if ratio <= SPREAD:
        return None
    names = [described(program.column_origins, program.column_start, int(used[i])) for i in _ends(sizes)]
    message = f"coefficients from {sizes.min():.3g} ({names[0]}) to {sizes.max():.3g} ({names[1]})"
    hint = "weigh its parts alike, or minimise one and then the other: minimize a then b"
    return NumericalWarning(goal.name, goal.span, ratio, message, hint)


def _ends(sizes: Floats) -> tuple[int, int]:
    """The positions of the smallest and of the largest."""
    return int(np.argmin(sizes)), int(np.argmax(sizes))


def _too_wide(one: Contribution, lowered: Lowered) -> tuple[Integers, NumericalWarning] | None:
    """The range of the rows that have no big-M."""
    linear = lowered.program
    entries = entries_of(lowered, one.plain)
    sizes = np.abs(linear.coefficient[entries])
    ratio = _ratio(sizes)
    if ratio <= SPREAD:
        return None
    ends = [_entry(linear, int(entries[i])) for i in _ends(sizes)]
    message = f"coefficients from {sizes.min():.3g} ({ends[0]}) to {sizes.max():.3g} ({ends[1]})"
    hint = "state it in parts of like size, or leave out what is too small to matter"
    return one.plain, NumericalWarning(one.name, one.span, ratio, message, hint)


def _big_m(one: Contribution, lowered: Lowered) -> tuple[Integers, NumericalWarning] | None:
    """The row whose big-M is furthest from its other coefficients."""
    linear, rows = lowered.program, one.switched
    entries = entries_of(lowered, rows)
    if not len(entries):
        return None
    sizes = np.abs(linear.coefficient[entries])
    counts = linear.start[rows + 1] - linear.start[rows]
    of_row = np.repeat(np.arange(len(rows)), counts)
    largest, smallest = np.zeros(len(rows)), np.full(len(rows), np.inf)
    np.maximum.at(largest, of_row, sizes)
    np.minimum.at(smallest, of_row, sizes)
    worst = int(np.argmax(largest / smallest))
    ratio = float(largest[worst] / smallest[worst])
    if ratio <= SPREAD:
        return None
    row = rows[worst : worst + 1]
    own = entries_of(lowered, row)
    least, most = (int(own[i]) for i in _ends(np.abs(linear.coefficient[own])))
    message = (
        f"a big-M of {largest[worst]:.3g} beside {smallest[worst]:.3g} "
        f"in {linear.row_name(int(row[0]))} (on {linear.column_name(int(linear.column[most]))} "
        f"and {linear.column_name(int(linear.column[least]))})"
    )
    hint = "tighter bounds of what it compares make it smaller: a limit on loads or sizes, var … in low..high"
    return row, NumericalWarning(one.name, one.span, ratio, message, hint)


def _entry(linear: LinearProgram, entry: int) -> str:
    """A coefficient by its column and its row."""
    row = int(np.searchsorted(linear.start, entry, side="right")) - 1
    return f"{linear.column_name(int(linear.column[entry]))} in {linear.row_name(row)}"


def _with_scaling(warning: NumericalWarning, left: float) -> NumericalWarning:
    """What remains of it in the units that floating-point solvers are given."""
    told = f"; a factor of {left:.1g} once rows and columns are scaled for floating-point solvers"
    return NumericalWarning(warning.name, warning.span, warning.ratio, warning.message + told, warning.hint)
