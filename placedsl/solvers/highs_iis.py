"""Which of the columns assumed to be zero make a program infeasible: HiGHS's irreducible system of the relaxation.

HiGHS finds such a system for linear programs only.  Where the relaxation of the program is feasible, nothing is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.ir.program import LinearProgram
from placedsl.solvers.interface import Outcome
from placedsl.solvers.outcome import Clock

#: Rows and columns that a ray of the relaxation rests on, made irreducible (HiGHS's kIisStrategyFromLp + …Irreducible).
_STRATEGY = 6


def refutation(model: Any, program: LinearProgram, clock: Clock, version: str) -> Outcome:
    """Solve the relaxation of ``model``, which holds ``program``; ``core`` has the assumed columns that conflict."""
    import highspy

    columns = program.assumed_zero
    model.changeColsIntegrality(
        program.columns, np.arange(program.columns, dtype=np.int32), np.zeros(program.columns, dtype=np.uint8)
    )
    model.changeColsCost(
        program.columns, np.arange(program.columns, dtype=np.int32), np.zeros(program.columns, dtype=np.float64)
    )
    for column in columns.tolist():
        model.changeColBounds(column, 0.0, 0.0)
    if clock.left is not None:
        model.setOptionValue("time_limit", clock.left)
    model.setOptionValue("iis_strategy", _STRATEGY)
    model.run()
    message = "the relaxation does not tell why"
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        status, found = model.getIis()
        if status == highspy.HighsStatus.kOk and len(found.row_index_):
            core = tuple(sorted(set(columns.tolist()) & set(found.col_index_)))
            return Outcome("infeasible", None, np.inf, -np.inf, "", clock.seconds, version, {}, core)
    return Outcome("error", None, np.inf, -np.inf, message, clock.seconds, version)
