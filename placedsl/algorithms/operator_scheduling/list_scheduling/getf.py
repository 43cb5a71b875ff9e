"""The baseline "getf": groups of devices of like speed by a linear program, and ETF within them.   Su et al. 2020.

The method is for related machines: a device's speed is its total time for all nodes that every device supports,
relative to the fastest.  Devices slower than the fastest by a factor of the number of devices are left out if the
others support all nodes; the others form groups of speeds within a factor gamma = log m / log log m.  The linear
program

    minimise T,  a node's shares of devices add up to 1,  no device's shares take longer than T,
    end(j) >= end(i) + (time of j at its shares) for each edge,  end(j) <= T

gives each node its slowest group such that half of its shares are in it or in faster ones; among these it goes to the
group of largest total speed.  A node is placed on that group's devices by earliest start.  Memory limits are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, scheduling_instance
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import (
    NO_ROOM,
    answer,
    by_earliest_start,
    fits,
    options,
    without_limit,
)
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.budget import Budget
from placedsl.graph.graph import Booleans, Floats, Integers
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def solve(problem: Problem, budget: Budget, progress: Progress) -> tuple[Sequence[int], float, Values]:
    """The GETF schedule; NothingFoundError if the linear program is not solved in time."""
    instance = scheduling_instance(problem)
    allowed = assigned(instance, budget.time_limit)
    if allowed is None:
        raise NothingFoundError("the linear program for groups was not solved within the limit")
    return answer(instance, best(instance, allowed)[1], progress, NO_ROOM)


def best(instance: SchedulingInstance, allowed: Booleans) -> tuple[float, OperatorSequence | None]:
    """The latency and sequence of GETF on the ``allowed`` devices of each node (n x D)."""
    return by_earliest_start(instance, allowed, without_limit(instance))


def groups(instance: SchedulingInstance) -> tuple[Integers, Floats]:
    """D: the group of each device, 0 the fastest (-1: left out as too slow), and D relative speeds."""
    common = np.isfinite(instance.time).all(axis=1)
    total = instance.time[common].sum(axis=0)
    speed = np.where(total > 0.0, total[total > 0.0].min(initial=np.inf) / np.maximum(total, 1e-300), 1.0)
    devices = len(speed)
    gamma = 2.0 if devices < 5 else max(2.0, np.log(devices) / np.log(np.log(devices)))
    group = np.floor(np.log(1.0 / np.minimum(speed, 1.0)) / np.log(gamma) + 1e-9).astype(np.int64)
    fast = speed >= 1.0 / devices
    if options(instance)[:, fast].any(axis=1).all():
        group[~fast] = -1
    return group, speed


def assigned(instance: SchedulingInstance, seconds: float | None = None) -> Booleans | None:
    """n x D flags: the devices of each node's group; None if the limit of ``seconds`` is exceeded."""
    group, speed = groups(instance)
    able = options(instance) & (group >= 0)
    shares = _shares(instance, able, seconds)
    if shares is None:
        return None
    out = np.zeros_like(able)
    kinds = np.unique(group[group >= 0])
    power = np.array([speed[group == k].sum() for k in kinds])
    within = np.stack([shares[:, group == k].sum(axis=1) for k in kinds], axis=1)
    reached = np.cumsum(within, axis=1) >= 0.5 - 1e-9
    slowest = reached.argmax(axis=1)
    choice = np.array([int(power[: last + 1].argmax()) for last in range(len(kinds))])[slowest]
    unit_choice = np.zeros(len(instance.member_start) - 1, dtype=np.int64)
    np.maximum.at(unit_choice, instance.unit, choice)
    for k, kind in enumerate(kinds):
        out[:, group == kind] |= (unit_choice[instance.unit] == k)[:, None]
    out &= able
    nowhere = ~out.any(axis=1)
    out[nowhere] = able[nowhere]
    return out


def _shares(instance: SchedulingInstance, able: Booleans, seconds: float | None) -> Floats | None:
    """n x D: the shares of the linear program; None if the limit of ``seconds`` is exceeded."""
    nodes, devices = able.shape
    node, device = np.nonzero(able)
    pairs = len(node)
    time = instance.time[node, device]
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    source, target = instance.producer[tensor], instance.reader
    edges = len(tensor)
    starts = np.flatnonzero(np.diff(instance.input_start) == 0)
    e, end, last = np.arange(edges), pairs + np.arange(nodes), pairs + nodes
    # Rows: load of each device, edges, nodes that read nothing, end of all.
    first, second, third = devices, devices + edges, devices + edges + len(starts)
    order = np.argsort(node, kind="stable")
    begin = np.searchsorted(node[order], np.arange(nodes + 1))
    count = np.diff(begin)[target]
    of_edge = np.repeat(e, count)
    at = np.repeat(begin[target], count) + np.arange(len(of_edge)) - np.repeat(np.cumsum(count) - count, count)
    pair_of_edge = order[at]
    number = np.full(nodes, -1)
    number[starts] = np.arange(len(starts))
    reads_nothing = np.flatnonzero(number[node] >= 0)
    rows = np.concatenate([
        device, np.arange(devices), first + e, first + e, first + of_edge, second + number[node[reads_nothing]],
        second + np.arange(len(starts)), third + np.arange(nodes), third + np.arange(nodes),
    ])  # fmt: skip
    columns = np.concatenate([
        np.arange(pairs), np.full(devices, last), end[source], end[target], pair_of_edge, reads_nothing,
        end[starts], end, np.full(nodes, last),
    ])  # fmt: skip
    entries = np.concatenate([
        time, -np.ones(devices), np.ones(edges), -np.ones(edges), time[pair_of_edge], time[reads_nothing],
        -np.ones(len(starts)), np.ones(nodes), -np.ones(nodes),
    ])  # fmt: skip
    height = third + nodes
    matrix = coo_array((entries, (rows, columns)), shape=(height, last + 1)).tocsr()
    whole = coo_array((np.ones(pairs), (node, np.arange(pairs))), shape=(nodes, last + 1)).tocsr()
    goal = np.zeros(last + 1)
    goal[last] = 1.0
    settings = {} if seconds is None else {"time_limit": seconds}
    solved = linprog(
        goal, A_ub=matrix, b_ub=np.zeros(height), A_eq=whole, b_eq=np.ones(nodes), method="highs", options=settings
    )
    if solved.x is None:
        return None
    out = np.zeros((nodes, devices))
    out[node, device] = solved.x[:pairs]
    return out


__all__ = ["assigned", "best", "fits", "groups", "solve"]
