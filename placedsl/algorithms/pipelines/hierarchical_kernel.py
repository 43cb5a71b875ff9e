"""The kernels of the search for pipelines over clusters of devices, compiled once and cached.

What a cluster has lies between two ideals.  Which edges leave the cluster follows from both; those that surely do are
known from the first alone, which bounds from below what the stages inside cost for any second one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from placedsl.algorithms.pipelines.cluster_arrays import (
    ClusterEdges,
    ClusterProblem,
    ClusterReach,
    Leaving,
    OuterReach,
    RemainingNeed,
)
from placedsl.algorithms.pipelines.replicated_kernel import NEVER, ReplicationStates, after, copies_needed
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs, contained, edge_costs, mark_cuts
from placedsl.arrays import Floats, Integers, Integers16, Integers32


@njit(cache=True, nogil=True)
def list_cluster_stages(
    first: int, pairs: StagePairs, replicas: ReplicationStates, bound: float, start: Integers, goal: Integers32,
    load: Floats,
) -> int:  # fmt: skip
    """List the stages from ideal ``first`` on, until all are listed or the room is full; where to go on.

    ``replicas``: of the largest numbers of devices that a cluster has.
    """
    weight = pairs.weight
    devices, takes, allowed, sync, summed = (
        replicas.devices, replicas.takes, replicas.allowed, replicas.sync, replicas.summed
    )  # fmt: skip
    classes = len(devices)
    widest = np.int64(0)
    for c in range(classes):
        widest = max(widest, takes[c, devices[c]])
    paid = np.zeros((pairs.limit.shape[0], classes))
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    for base in range(first, len(weight)):
        filled = start[base]
        mark_cuts(pairs, base, mark, True)
        for end in range(base + 1, len(weight)):
            if weight[end] - weight[base] > widest:
                break
            if not contained(pairs, base, end):
                continue
            if filled == len(goal):
                return base
            edge_costs(pairs, base, end, mark, False, paid)
            some = False
            for c in range(classes):
                fits = pairs.unsupported[c, end] == pairs.unsupported[c, base]
                largest = 0.0
                for q in range(pairs.limit.shape[0]):
                    reading = pairs.unit_sum[q, c, end] - pairs.unit_sum[q, c, base] + paid[q, c]
                    if q < pairs.loads:
                        load[filled, q, c] = reading
                        largest = max(largest, reading)
                    elif reading > pairs.limit[q, c]:
                        fits = False
                if fits:
                    sent = max(0.0, sync[c, end] - sync[c, base])
                    copies = copies_needed(largest, sent, allowed[c], summed, bound)
                    fits = 0 < copies <= devices[c]
                if fits:
                    some = True
                else:
                    load[filled, 0, c] = np.inf
            if some:
                goal[filled] = end
                filled += 1
        mark_cuts(pairs, base, mark, False)
        start[base + 1] = filled
    return len(weight)


@njit(cache=True, nogil=True)
def _leaving(low: int, high: int, far: ClusterEdges, workspace: ClusterReach) -> Leaving:
    """Collect the edges that leave what is between two ideals; without ``high`` (-1) those that surely do."""
    bought, sold = 0, 0
    for j in range(far.cut_start[low], far.cut_start[low + 1]):
        e = far.cut_edge[j]
        if far.code[low, e] & 1:
            workspace.bought[bought] = e
            bought += 1
        else:
            workspace.sold[sold] = e
            sold += 1
    surely = bought, sold
    if high >= 0:
        for j in range(far.cut_start[high], far.cut_start[high + 1]):
            e = far.cut_edge[j]
            before, held = far.code[low, e], far.code[high, e]
            if not held & 1:
                if held != before:
                    workspace.bought[bought] = e
                    bought += 1
            elif before == 0:
                workspace.sold[sold] = e
                sold += 1
    return Leaving(bought, sold, surely[0], surely[1])


@njit(cache=True, nogil=True)
def _step(
    base: int, goal: int, p: int, there: Integers16, leaving: Leaving, given: ClusterProblem, workspace: ClusterReach,
    seen: Integers,
) -> None:  # fmt: skip
    """Reach ``goal`` from ``base`` by stage p, on each class of devices; ``there``: what reaches ``base``."""
    stages, far, replicas, bound, need = given.stages, given.edges, given.replicas, given.bound, given.need
    reach, origin = workspace.reach, workspace.origin
    loads = stages.load.shape[1]
    seen[2] += 1
    for c in range(len(replicas.devices)):
        if stages.load[p, 0, c] == np.inf:
            continue
        sent = max(0.0, replicas.sync[c, goal] - replicas.sync[c, base])
        largest = 0.0
        for q in range(loads):
            largest = max(largest, stages.load[p, q, c])
        copies = copies_needed(largest, sent, replicas.allowed[c], replicas.summed, bound)
        if not copies or not _gains(goal, c, copies, there, replicas, need, reach):
            continue
        seen[3] += 1
        largest = 0.0
        for q in range(loads):
            reading = stages.load[p, q, c]
            for i in range(leaving.bought):
                e = workspace.bought[i]
                if far.code[base, e] >> 1 != far.code[goal, e] >> 1:
                    reading += far.read[q, c, e]
            for i in range(leaving.sold):
                e = workspace.sold[i]
                if far.code[goal, e] & 1 and not far.code[base, e] & 1:
                    reading += far.make[q, c, e]
            largest = max(largest, reading)
        copies = copies_needed(largest, sent, replicas.allowed[c], replicas.summed, bound)
        if not copies:
            continue
        for s in range(len(replicas.digits)):
            if there[s] == NEVER:
                continue
            into, used = after(s, there[s], c, copies, replicas)
            if into >= 0 and used < reach[goal, into] and _goes_on(goal, into, used, need):
                reach[goal, into] = used
                origin[goal, into, 0] = base
                origin[goal, into, 1] = c
                origin[goal, into, 2] = copies


@njit(cache=True, nogil=True)
def _gains(
    goal: int, c: int, copies: int, there: Integers16, replicas: ReplicationStates, need: RemainingNeed,
    reach: Integers16,
) -> bool:  # fmt: skip
    """Whether so many devices of class c reach ``goal`` with fewer than is known, and the rest can do."""
    for s in range(len(replicas.digits)):
        if there[s] != NEVER:
            into, used = after(s, there[s], c, copies, replicas)
            if into >= 0 and used < reach[goal, into] and _goes_on(goal, into, used, need):
                return True
    return False


@njit(cache=True, nogil=True)
def _goes_on(goal: int, state: int, used: int, need: RemainingNeed) -> bool:
    """Whether enough devices are left for the rest."""
    return bool(used + need.needed[goal, need.state[state]] <= need.spare)


@njit(cache=True, nogil=True)
def _forget_dominated(ideal: int, replicas: ReplicationStates, reach: Integers16) -> None:
    """Forget the states in which an ideal is reached as well with less."""
    digits = replicas.digits
    for s in range(len(digits) - 1, 0, -1):
        for t in range(s):
            if reach[ideal, t] <= reach[ideal, s] and (digits[t] <= digits[s]).all():
                reach[ideal, s] = NEVER
                break


@njit(cache=True, nogil=True)
def _fewest(ideal: int, replicas: ReplicationStates, reach: Integers16) -> int:
    """The fewest devices that reach an ideal."""
    fewest = NEVER
    for s in range(len(replicas.digits)):
        if reach[ideal, s] != NEVER:
            fewest = min(fewest, reach[ideal, s] + replicas.digits[s].sum())
    return fewest


@njit(cache=True, nogil=True)
def inside(low: int, high: int, given: ClusterProblem, workspace: ClusterReach, seen: Integers) -> int:
    """Reach from ideal ``low`` on with the devices of one cluster that ends at ``high``; how many are reached.

    ``high`` < 0: as if only edges left the cluster that surely do.
    """
    stages, pairs, replicas = given.stages, given.pairs, given.replicas
    leaving = _leaving(low, high, given.edges, workspace)
    reach, origin = workspace.reach, workspace.origin
    top = high if high >= 0 else len(reach) - 1
    states = len(replicas.digits)
    reach[low : top + 1, :states] = NEVER
    reach[low, 0] = 0
    origin[low, 0, 0] = -1
    count = 0
    for base in range(low, top + 1):
        some = False
        for s in range(states):
            some = some or reach[base, s] != NEVER
        if not some:
            continue
        workspace.listed[count] = base
        count += 1
        _forget_dominated(base, replicas, reach)
        if base == top:
            break
        for p in range(stages.start[base], stages.start[base + 1]):
            goal = stages.goal[p]
            if goal > top:
                break
            seen[1] += 1
            if high < 0 or goal == high or contained(pairs, goal, high):
                _step(base, goal, p, reach[base], leaving, given, workspace, seen)
    return count


@njit(cache=True, nogil=True)
def _ended(
    low: int, high: int, listed: int, leaving: Leaving, given: ClusterProblem, free: ClusterReach,
    workspace: ClusterReach,
    seen: Integers,
) -> int:  # fmt: skip
    """The fewest devices of one cluster from ``low`` to ``high``; ``free`` is as if only the sure edges left it.

    Where no stage on the way to an ideal touches another edge that leaves the cluster, ``free`` has it right.
    """
    stages, far, replicas = given.stages, given.edges, given.replicas
    seen[0] += 1
    run = 2 * seen[0]
    states = len(replicas.digits)
    for i in range(listed):
        goal = free.listed[i]
        if goal > high:
            break
        if goal != high and not contained(given.pairs, goal, high):
            continue
        touched = goal == high
        for k in range(leaving.surely_bought, leaving.bought):
            e = workspace.bought[k]
            touched = touched or far.code[goal, e] >> 1 != far.code[low, e] >> 1
        for k in range(leaving.surely_sold, leaving.sold):
            touched = touched or far.code[goal, workspace.sold[k]] & 1 != 0
        workspace.mark[goal] = run + touched
        if not touched:
            continue
        workspace.reach[goal, :states] = NEVER
        for j in range(stages.until[goal], stages.until[goal + 1]):
            base = stages.base[j]
            seen[1] += 1
            if base < low or workspace.mark[base] >> 1 != run >> 1:
                continue
            there = workspace.reach[base] if workspace.mark[base] & 1 else free.reach[base]
            _step(base, goal, stages.which[j], there, leaving, given, workspace, seen)
        _forget_dominated(goal, replicas, workspace.reach)
    return int(_fewest(high, replicas, workspace.reach))


@njit(cache=True, nogil=True)
def spread(
    low: int, first: int, listed: int, outer: OuterReach, given: ClusterProblem, free: ClusterReach,
    workspace: ClusterReach,
    seen: Integers, patience: int,
) -> int:  # fmt: skip
    """Give a cluster what is between ideal ``low`` and each ideal from ``first`` on; where to go on, K at the end.

    ``free``: what :func:`inside` wrote for no end in particular, ``listed`` how many ideals it reached.
    """
    ways, number, fewest, fits, value, came = outer
    replicas = given.replicas
    until = seen[1] + patience
    for high in range(first, len(value)):
        least = _fewest(high, replicas, free.reach)
        if least == NEVER:
            continue
        wanted = False
        for i in range(len(ways)):
            known = value[high, ways[i, 1]]
            if fits[high, ways[i, 1]] and (known == NEVER or (fewest and value[low, ways[i, 0]] + least < known)):
                wanted = True
        if not wanted:
            continue
        leaving = _leaving(low, high, given.edges, workspace)
        if leaving.bought > leaving.surely_bought or leaving.sold > leaving.surely_sold:
            least = _ended(low, high, listed, leaving, given, free, workspace, seen)
        if least != NEVER:
            for i in range(len(ways)):
                into, used = ways[i, 1], value[low, ways[i, 0]] + least
                if fits[high, into] and (value[high, into] == NEVER or (fewest and used < value[high, into])):
                    value[high, into] = used
                    came[high, into, 0] = low
                    came[high, into, 1] = number
        if seen[1] > until:
            return high + 1
    return len(value)
