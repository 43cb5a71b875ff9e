"""Units for solvers that compute with floating-point numbers and absolute tolerances.

A feasibility tolerance of 1e-6 means nothing for a load of 1e-4 seconds, and too much for one of 1e12
bytes.  Rows, continuous columns and the objective are therefore multiplied by powers of two, which is exact:
the scaled program has the same points and the same proofs.  Integer columns keep their unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Floats
from placedsl.ir.program import LinearProgram
from placedsl.solvers.outcome import row_of_entry


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The program in the solver's units, and the way back."""

    program: LinearProgram
    unit: Floats
    factor: float

    def point(self, values: Floats) -> Floats:
        """A point of the scaled program in the original units."""
        return np.asarray(values, dtype=float) * self.unit

    def value(self, objective: float) -> float:
        """An objective value or bound of the scaled program in the original units."""
        return objective / self.factor


#: For solvers that take a better point for none unless it is better by some absolute amount (CBC: 1e-5).
FINE_OBJECTIVE = 2.0**14

_PASSES = 8


def conditioned(program: LinearProgram, objective: float = 1.0) -> Conditioned:
    """The program with coefficients around one, by alternating geometric means of rows and columns.

    ``objective`` is the least that the largest coefficient of the objective may be.
    """
    row, column = row_of_entry(program), program.column
    entry = np.log2(np.abs(np.where(program.coefficient == 0.0, 1.0, program.coefficient)))
    of_integer = program.integer[column]
    # A row over integer columns takes its unit from the largest of their coefficients.
    largest = np.full(program.rows, -np.inf)
    np.maximum.at(largest, row[of_integer], entry[of_integer])
    settled = np.isfinite(largest)
    row_unit = np.where(settled, -largest, 0.0)
    unit = np.zeros(program.columns)
    free = ~of_integer
    in_row = np.maximum(np.bincount(row[free], minlength=program.rows), 1)
    in_column = np.maximum(np.bincount(column[free], minlength=program.columns), 1)
    for _ in range(_PASSES if free.any() else 0):
        mean = np.bincount(row[free], entry[free] + unit[column[free]], program.rows) / in_row
        row_unit = np.where(settled, row_unit, -mean)
        unit = -np.bincount(column[free], entry[free] + row_unit[row[free]], program.columns) / in_column
    unit = np.exp2(np.clip(np.round(unit), -60, 60))
    row_factor = np.exp2(np.clip(np.round(row_unit), -60, 60))
    cost = program.cost * unit
    top = float(np.abs(cost).max(initial=0.0))
    fits = top == 0.0 or objective <= top <= 1e4 * objective
    factor = 1.0 if fits else float(np.exp2(np.round(np.log2(objective / top))))
    scaled = replace(
        program,
        cost=cost * factor,
        offset=program.offset * factor,
        lower=program.lower / unit,
        upper=program.upper / unit,
        coefficient=program.coefficient * unit[column] * row_factor[row],
        row_lower=program.row_lower * row_factor,
        row_upper=program.row_upper * row_factor,
        hint=None if program.hint is None else program.hint / unit,
    )
    return Conditioned(scaled, unit, factor)
