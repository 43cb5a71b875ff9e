"""Objectives without a least value: told before a solver is asked for one."""

from __future__ import annotations

import numpy as np

from placedsl.budget import Budget
from placedsl.diagnostics import InputError
from placedsl.grounding.build import Grounded
from placedsl.lowering.endless_direction import with_direction
from placedsl.lowering.lower import lower
from placedsl.lowering.unboundedness import LEAST_FALL, may_be_unbounded
from placedsl.planner.run import Run
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.outcome import heard_by_nobody

#: The solver that looks for a direction: it takes columns without bounds.
_SOLVER = "highs"
#: Seconds for that at most.
_SECONDS = 60.0


def falls_for_ever(run: Run, grounded: Grounded, fixed: tuple[tuple[int, float], ...], position: int) -> bool | None:
    """Whether an objective falls for ever from some point, within the limits of earlier ones; None if undecided.

    Almost every objective is told at sight to have a least value, if it has any.
    """
    program, before = grounded.program, tuple(k for k, _ in fixed)
    if run.problem.execution.run == "operators" or not may_be_unbounded(program, position, before):
        return False
    asked = with_direction(program, position, before)
    try:
        linear = lower(asked, objective=len(asked.objectives) - 1, fixed=fixed).program
    except InputError:
        return None  # the program itself says the same, of its own lines
    left = _SECONDS if run.left is None else min(_SECONDS, run.left)
    if left <= 0.0:
        return None
    budget = Budget(left, workers=run.request.workers or 0, seed=run.request.seed or 0)
    # In a process of its own in any case: it need not go into one with the solver of the run.
    found = run_isolated(_SOLVER, linear, budget, heard_by_nobody)
    if found.termination == "interrupted":
        raise KeyboardInterrupt
    if found.incumbent is not None and found.objective < -LEAST_FALL * float(np.abs(linear.cost).max()):
        return True
    return False if found.termination in ("optimal", "infeasible") else None
