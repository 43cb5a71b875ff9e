"""The baseline "m-sct": small communication times.   Hanen and Munier 1995, with memory Jeon et al. 2020 (Baechi).

A linear program gives each node at most one favourite child, which should follow on its device without a transfer:

    minimise w,  start(i) + time(i) + move(i, j) x(i, j) <= start(j),  start(i) + time(i) <= w,
    at least all but one of a node's x(i, .) and of its x(., j) are 1

j is the favourite child of i if x(i, j) < 1/2.  The list schedule is ETF on devices with room, but a device stays free
for the favourite child of its last node, as long as the longest transfer could take, unless a node could start
anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, scheduling_instance
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import (
    NO_ROOM,
    answer,
    by_earliest_start,
    fits,
    options,
)
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, mean_times
from placedsl.arrays import Integers
from placedsl.budget import Budget
from placedsl.ir.linear_rows import LinearRows
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """The m-sct schedule; NothingFoundError if the linear program is not solved in time."""
    instance = scheduling_instance(problem)
    favourite = favourite_children(instance, budget.time_limit)
    if favourite is None:
        raise NothingFoundError("the linear program for favourite children was not solved within the limit")
    return answer(instance, best(instance, favourite)[1], progress, NO_ROOM)


def best(instance: SchedulingInstance, favourite: Integers) -> tuple[float, OperatorSequence | None]:
    """The latency and sequence of m-sct for given favourite children (n)."""
    _, moving = mean_times(instance)
    reserved = float(moving.max(initial=0.0))
    return by_earliest_start(instance, options(instance), instance.memory_limit, favourite, reserved)


def favourite_children(instance: SchedulingInstance, seconds: float | None = None) -> Integers | None:
    """n: the favourite child of each node (-1: none); None if the limit of ``seconds`` is exceeded."""
    work, moving = mean_times(instance)
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    if not len(tensor):
        return np.full(instance.nodes, -1)
    source, target, cost = instance.producer[tensor], instance.reader, moving[tensor]
    nodes, edges = instance.nodes, len(tensor)
    e, v = np.arange(edges), np.arange(nodes)
    x, last = nodes + e, nodes + edges
    children, parents = (np.unique(side, return_inverse=True)[1] for side in (source, target))
    rows, ones, one = LinearRows(), np.ones(edges), np.ones(nodes)
    # Precedence, the end of all, at most one favourite child and at most one favourite parent.
    rows.at_most(np.tile(e, 3), np.concatenate([source, target, x]), np.concatenate([ones, -ones, cost]), -work[source])
    rows.at_most(np.tile(v, 2), np.concatenate([v, np.full(nodes, last)]), np.concatenate([one, -one]), -work)
    for group in (children, parents):
        rows.at_most(group, x, -ones, 1.0 - np.bincount(group).astype(float))
    goal = np.zeros(last + 1)
    goal[last] = 1.0
    bounds = np.zeros((last + 1, 2))
    bounds[:, 1] = np.inf
    bounds[x, 1] = 1.0
    solved = rows.minimise(goal, bounds, seconds=seconds)
    if solved.x is None:
        return None
    out = np.full(nodes, -1)
    chosen = np.flatnonzero(solved.x[x] < 0.5 - 1e-9)
    out[source[chosen]] = target[chosen]
    return out


__all__ = ["best", "favourite_children", "fits", "solve"]
