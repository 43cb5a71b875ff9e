"""The whole program as a member: for problems of which dynamic programming has not even a first placement."""

from __future__ import annotations

import numpy as np

from placedsl.formulation import Formulation
from placedsl.graph.graph import Floats
from placedsl.lowering.lower import lower
from placedsl.portfolio.portfolio import Link
from placedsl.problem import Problem
from placedsl.program.build import build
from placedsl.solvers.interface import Budget
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.registry import get


def solve_program(link: Link, problem: Problem, formulation: Formulation, solver: str, budget: Budget) -> None:
    """Say what a solver finds; a bound of inf once it has proven that there is no placement at all.

    The problem has no variables of its own.
    """
    features = get(solver).features
    grounded = build(problem, formulation)
    lowered = lower(grounded.program, native=features.native, integral=features.integers_only, objective=0, fixed=())

    def heard(point: Floats | None, _value: float, bound: float) -> bool:
        if point is not None:
            link.say(grounded.placement(point), -np.inf)
        if bound > -np.inf:
            link.say(None, bound)
        return False

    outcome = run_isolated(solver, lowered.program, budget, heard)
    if outcome.termination == "infeasible":
        link.say(None, np.inf)
