"""The best point that has the 0/1 and integer columns of a given one: a linear program over the others.

Solvers give real columns within their tolerances, CP-SAT on a grid; where an objective is a small difference of large
numbers, that is too much.  With the integer columns settled, every global constraint is rows: conditions hold or do
not, an exact maximum is its largest term, intervals follow one another in the order of their starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.arrays import Floats
from placedsl.ir.linear_rows import LinearRows
from placedsl.ir.program import Origin, Program, RowBlock
from placedsl.ir.row_meaning import meaning

#: Values are brought to this size, of which the linear program's tolerance is a small part.
_SIZE, _LP_TOLERANCE = 1e3, 1e-10
_ORIGIN = Origin("refined")


def refined(program: Program, objective: int, fixed: tuple[tuple[int, float], ...], point: Floats) -> Floats | None:
    """A point of least ``objective`` with the integer columns of ``point``; None where no accurate one is found.

    ``fixed``: (objective, limit) pairs that earlier objectives must stay within.
    """
    point = point[: len(program.lower)]
    free = ~program.integer
    whole = np.where(free, point, np.rint(point))
    blocks = [*program.rows, *_limits(program, fixed)]
    for constraint in program.constraints:
        blocks += meaning(constraint).given(constraint, whole)
    goal = program.objectives[objective]
    cost = np.bincount(goal.column, goal.coefficient, minlength=len(point))
    if not cost[free].any():
        return None
    number = np.cumsum(free) - 1
    scale = _SIZE / max(float(np.abs(point[free]).max(initial=0.0)), 1e-30)
    rows = LinearRows()
    for block in blocks:
        real = free[block.column]
        known = np.bincount(block.row[~real], (block.coefficient * whole[block.column])[~real], block.rows)
        kept = np.bincount(block.row[real], minlength=block.rows) > 0
        place = np.cumsum(kept) - 1
        low, high = (scale * (side - known)[kept] for side in (block.lower, block.upper))
        rows.add(place[block.row[real]], number[block.column[real]], block.coefficient[real], low, high)
    found = rows.minimise(
        cost[free] / max(float(np.abs(cost[free]).max()), 1e-300),
        np.stack((scale * program.lower[free], scale * program.upper[free]), axis=1),
        primal_feasibility_tolerance=_LP_TOLERANCE, dual_feasibility_tolerance=_LP_TOLERANCE,
    )  # fmt: skip
    if found.status != 0:
        return None
    out: Floats = whole.copy()
    out[free] = found.x / scale
    return out


def _limits(program: Program, fixed: tuple[tuple[int, float], ...]) -> Iterator[RowBlock]:
    """Rows that keep earlier objectives within their limits."""
    for position, limit in fixed:
        goal = program.objectives[position]
        zero, none = np.zeros(len(goal.column), dtype=np.int64), np.array([-np.inf])
        yield RowBlock(_ORIGIN, zero, goal.column, goal.coefficient, none, np.array([limit - goal.constant]))
