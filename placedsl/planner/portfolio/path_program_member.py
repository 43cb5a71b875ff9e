"""The program over paths as a member: placements of the best paths, and bounds of thresholds without one."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.pipelines.path_program.applies import NAME
from placedsl.arrays import Integers
from placedsl.planner.portfolio.portfolio import Member, PlannerChannel
from placedsl.problem.problem import Problem


def search_paths(channel: PlannerChannel, problem: Problem, seed: int) -> None:
    """Say what the search over paths finds and proves; a bound of inf where there is no placement at all."""
    from placedsl.algorithms.pipelines.path_program.solve import solve

    def found(placement: Integers) -> None:
        channel.report(placement, -np.inf)

    def prove(bound: float) -> None:
        channel.report(None, bound)

    solve(problem, found, prove, seed=seed)


def member(problem: Problem, seed: int) -> Member:
    """The member for a problem."""
    return Member(NAME, search_paths, (problem, seed))
