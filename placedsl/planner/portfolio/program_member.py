"""The whole program as a member: for problems of which dynamic programming has not even a first placement."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.planner.portfolio.portfolio import PlannerChannel
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.registry import get


def solve_program(
    channel: PlannerChannel, problem: Problem, formulation: Formulation, solver: str, budget: Budget
) -> None:
    """Say what a solver finds; a bound of inf once it has proven that there is no placement at all.

    The problem has no variables of its own.
    """
    features = get(solver).features
    grounded = build(problem, formulation)
    lowered = lower(grounded.program, native=features.native, integral=features.integers_only, objective=0, fixed=())

    def heard(point: Floats | None, _value: float, bound: float) -> bool:
        if point is not None:
            channel.report(grounded.placement(point), -np.inf)
        if bound > -np.inf:
            channel.report(None, bound)
        return False

    outcome = run_isolated(solver, lowered.program, budget, heard)
    if outcome.termination == "infeasible":
        channel.report(None, np.inf)
