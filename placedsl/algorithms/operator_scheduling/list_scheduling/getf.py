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
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.budget import Budget
from placedsl.graph.order import csr, rows_of
from placedsl.ir.linear_rows import LinearRows
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
    share, end, last = np.arange(pairs), pairs + np.arange(nodes), pairs + nodes
    start, of_node = csr(node, share, nodes)
    edge, reader_at = rows_of(start, target)
    first, first_at = rows_of(start, starts)
    rows = LinearRows()
    # The load of each device, both ends of each edge, the end of nodes that read nothing, and the end of all.
    rows.at_most(np.concatenate([device, np.arange(devices)]), np.concatenate([share, np.full(devices, last)]),
                 np.concatenate([time, -np.ones(devices)]), np.zeros(devices))  # fmt: skip
    rows.at_most(
        np.concatenate([np.arange(edges), np.arange(edges), edge]),
        np.concatenate([end[source], end[target], of_node[reader_at]]),
        np.concatenate([np.ones(edges), -np.ones(edges), time[of_node[reader_at]]]), np.zeros(edges),
    )  # fmt: skip
    rows.at_most(
        np.concatenate([first, np.arange(len(starts))]), np.concatenate([of_node[first_at], end[starts]]),
        np.concatenate([time[of_node[first_at]], -np.ones(len(starts))]), np.zeros(len(starts)),
    )  # fmt: skip
    rows.at_most(np.tile(np.arange(nodes), 2), np.concatenate([end, np.full(nodes, last)]),
                 np.concatenate([np.ones(nodes), -np.ones(nodes)]), np.zeros(nodes))  # fmt: skip
    rows.equal(node, share, np.ones(pairs), np.ones(nodes))
    goal = np.zeros(last + 1)
    goal[last] = 1.0
    solved = rows.minimise(goal, seconds=seconds)
    if solved.x is None:
        return None
    out = np.zeros((nodes, devices))
    out[node, device] = solved.x[:pairs]
    return out


__all__ = ["assigned", "best", "fits", "groups", "solve"]
