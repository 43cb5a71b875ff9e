"""An algorithm: first fit, decreasing.  A heuristic for throughput with the simple lower bound.

The longest operator first, each to the device on which the largest load grows least.  Moving tensors is left out while
placing; the evaluator counts it.
"""

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.interface import Budget, Progress
from placedsl.algorithms.simple_bound import simple_bound
from placedsl.expressions import Provided
from placedsl.problem import Problem


def fits(problem: Problem) -> Sequence[str]:
    """Why it does not apply: another goal, or a constraint that it does not look at."""
    goal = problem.objectives[0]
    against = [f"it does not look at {rule.name}" for rule in problem.rules if rule.built_in != "memory"]
    if not (isinstance(goal.body, Provided) and goal.body.name == "time_per_sample"):
        against.append(f"it minimises time_per_sample, not {goal.name}")
    return against


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int] | None, float]:
    """One device an operator, or None where first fit finds no room."""
    limited = any(rule.built_in == "memory" for rule in problem.rules)
    room = problem.device_memory if limited else np.full(len(problem.machine.devices), np.inf)
    load, left = np.zeros(len(room)), room.copy()
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
