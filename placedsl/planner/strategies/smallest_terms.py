"""The smallest term of an objective: what tells a bound just below zero from a gap.

A gap is a share of the value, and a value of zero whose terms are all zero has no size.  What is left there is told
from nothing by the data: a millionth of the smallest number that the objective adds up is rounding.
"""

from __future__ import annotations

import numpy as np

from placedsl.ir.program import LinearProgram
from placedsl.solvers.outcome import row_of_entry

#: Real columns are followed through the rows that define them by others so often.
_MOST_STEPS = 32


def smallest_term(program: LinearProgram) -> float:
    """The least that one unit of an integer column changes the objective, directly or through real columns; 0 where
    there is no such column."""
    row, column = row_of_entry(program), program.column
    size = np.abs(program.coefficient)
    scale = np.abs(program.cost)  # how much a unit of each column counts, 0 where that is not known
    reached = scale > 0.0
    for _ in range(_MOST_STEPS):
        # A row gives the others the scale that its real columns have, relative to their coefficients.
        given = np.where(reached[column] & ~program.integer[column] & (size > 0.0), scale[column] / size, np.inf)
        of_row = np.full(program.rows, np.inf)
        np.minimum.at(of_row, row, given)
        passed = np.full(program.columns, np.inf)
        some = np.isfinite(of_row[row]) & (size > 0.0)
        np.minimum.at(passed, column[some], (of_row[row] * size)[some])
        new = ~reached & np.isfinite(passed)
        if not new.any():
            break
        scale[new] = passed[new]
        reached |= new
    terms = scale[reached & program.integer & (program.lower < program.upper)]
    return float(terms.min(initial=np.inf)) if len(terms) else 0.0
