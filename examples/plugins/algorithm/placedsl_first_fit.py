"""An algorithm: first fit, decreasing.  A heuristic for throughput with the simple lower bound.

The longest operator first, each to the device on which the largest load grows least.  Moving tensors is left out while
placing; the evaluator counts it.
"""

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.interface import Progress
from placedsl.algorithms.simple_bounds import simple_bound
from placedsl.algorithms.supports import Supports, reasons_against
from placedsl.budget import Budget
from placedsl.problem.problem import Problem

SUPPORTS = Supports(objectives=("time_per_sample",), constraints=frozenset(("memory",)))


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply: another goal, or something that it does not look at."""
    return reasons_against(problem, SUPPORTS)


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """One device an operator, or None where first fit finds no room."""
    left = problem.memory_limits.copy()
    load = np.zeros(len(left))
    placement = np.full(problem.graph.nodes, -1)
    for node in np.argsort(-problem.time.min(axis=1), kind="stable"):
        grown = np.where(left >= problem.graph.memory[node], load + problem.time[node], np.inf)
        device = int(grown.argmin())
        if not np.isfinite(grown[device]):
            return None, simple_bound(problem)
        placement[node] = device
        load[device] = grown[device]
        left[device] -= problem.graph.memory[node]
    return placement.tolist(), simple_bound(problem)
