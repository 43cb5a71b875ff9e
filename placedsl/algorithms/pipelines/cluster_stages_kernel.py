"""Stages inside clusters, listed once for a load, and the edges that leave a cluster; compiled once and cached."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.cluster_arrays import ClusterProblem, ClusterReach
from placedsl.algorithms.pipelines.replicated_kernel import EVALUATED, ReplicationStates, copies_needed
from placedsl.algorithms.stages.cut_edges_kernel import StagePairs, contained, edge_costs, mark_cuts, streamed
from placedsl.arrays import Floats, Integers, Integers32


@kernel(nogil=True, allocates=True)
def list_cluster_stages(
    first: int, patience: int, pairs: StagePairs, replicas: ReplicationStates, bound: float, start: Integers,
    goal: Integers32, load: Floats,
) -> tuple[int, bool]:  # fmt: skip
    """List the stages from ideal ``first`` on, until all are listed, the room is full or ``patience`` pairs have been
    looked at, one that is evaluated counting as many; where to go on, and whether the room is full.

    ``replicas``: of the largest numbers of devices that a cluster has.
    """
    weight = pairs.weight
    devices, takes, allowed, sync, summed = (
        replicas.devices, replicas.takes, replicas.allowed, replicas.sync, replicas.summed
    )  # fmt: skip
    classes, loads = len(devices), load.shape[1]
    widest = np.int64(0)
    for c in range(classes):
        widest = max(widest, takes[c, devices[c]])
    paid = np.zeros((pairs.limit.shape[0], classes))
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    looked = np.int64(0)
    for base in range(first, len(weight)):
        if looked > patience:
            return base, False
        filled = start[base]
        mark_cuts(pairs, base, mark, True)
        for end in range(base + 1, len(weight)):
            if weight[end] - weight[base] > widest:
                break
            looked += 1
            if not contained(pairs, base, end):
                continue
            looked += EVALUATED
            if filled == len(goal):
                return base, True
            edge_costs(pairs, base, end, mark, False, paid)
            some = False
            for c in range(classes):
                fits = pairs.unsupported[c, end] == pairs.unsupported[c, base]
                largest, alone = 0.0, 0.0
                for q in range(pairs.limit.shape[0]):
                    reading = pairs.unit_sum[q, c, end] - pairs.unit_sum[q, c, base] + paid[q, c]
                    if q == 0:
                        reading += streamed(pairs, base, end, c)
                    if q < loads:
                        load[filled, q, c] = reading
                        if q < pairs.loads:
                            largest = max(largest, reading)
                        else:
                            alone = max(alone, reading)
                    elif reading > pairs.limit[q, c]:
                        fits = False
                if fits:
                    sent = max(0.0, sync[c, end] - sync[c, base])
                    copies = copies_needed(largest, alone, sent, allowed[c], summed, bound)
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
    return len(weight), False


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def find_leaving_edges(depth: int, low: int, high: int, given: ClusterProblem, room: ClusterReach) -> bool:
    """Collect the edges that leave what is between two ideals, or a cluster around it; whether some do not surely.

    Without ``high`` (-1) only those that surely do.
    """
    far = given.edges
    code, level, edges = far.code, depth - 1, len(far.readers)
    bought, sold = 0, 0
    # Of those that leave a cluster around it: what has a part further on.
    for i in range(room.leaving[level, 0]):
        if code[low, room.bought[level, i, 0]] >> 1 < far.readers[room.bought[level, i, 0]]:
            room.bought[depth, bought] = room.bought[level, i]
            bought += 1
    for i in range(room.leaving[level, 1]):
        if not code[low, room.sold[level, i, 0]] & 1:
            room.sold[depth, sold] = room.sold[level, i]
            sold += 1
    for j in range(far.cut_start[low], far.cut_start[low + 1]):
        e = far.cut_edge[j]
        if not far.paid[level, e]:
            continue
        if code[low, e] & 1:
            room.bought[depth, bought, 0] = e
            room.bought[depth, bought, 1] = level * edges + e
            bought += 1
        else:
            room.sold[depth, sold, 0] = e
            room.sold[depth, sold, 1] = level * edges + e
            sold += 1
    room.leaving[depth, 2] = bought
    room.leaving[depth, 3] = sold
    if high >= 0:
        for j in range(far.cut_start[high], far.cut_start[high + 1]):
            e = far.cut_edge[j]
            before, held = code[low, e], code[high, e]
            if not far.paid[level, e]:
                continue
            if not held & 1:
                if held != before:
                    room.bought[depth, bought, 0] = e
                    room.bought[depth, bought, 1] = level * edges + e
                    bought += 1
            elif before == 0:
                room.sold[depth, sold, 0] = e
                room.sold[depth, sold, 1] = level * edges + e
                sold += 1
    room.leaving[depth, 0] = bought
    room.leaving[depth, 1] = sold
    return bool(bought > room.leaving[depth, 2] or sold > room.leaving[depth, 3])
