"""A problem with more nodes held together: what searches and baselines make smaller problems with."""

from __future__ import annotations

from dataclasses import replace

from placedsl.arrays import Integers
from placedsl.problem.problem import Constraint, Problem


def with_colocation(problem: Problem, labels: Integers, reason: str) -> Problem:
    """The same problem where nodes with one label (n of them) share a device; ``reason`` is no attribute's name.

    Its placements are placements of the problem itself, so that its values are reached and its bounds prove nothing.
    """
    goal = problem.objectives[0]
    rule = Constraint(reason, "colocated", reason, goal.body, goal.span)
    return replace(problem, groups={**problem.groups, reason: labels}, constraints=(*problem.constraints, rule))
