"""The kernels of the search for replicated pipelines, compiled once and cached.

At a load that must not be exceeded, what a stage needs is a number of devices: the least allowed one follows from its
load on one device and its weights in closed form.  So an ideal is worth the fewest devices that reach it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.stages.cut_edges_kernel import (
    StagePairs,
    contained,
    edge_costs,
    largest_load,
    least_load,
    mark_cuts,
)
from placedsl.arrays import Booleans, Floats, Integers, Integers16, Integers32

#: The number of devices of what is not reached.
NEVER = 2**14
#: So many pairs are looked at in the time that one is evaluated in.
EVALUATED = 16


class ReplicationStates(NamedTuple):
    """What devices there are and how they share a stage.  s states: how many devices of each class but ``main``.

    ``digits``   s x c (0 for ``main``);  ``stride``  c: one more device of class c is ``state + stride[c]``
    ``devices``  c how many there are
    ``takes``    c x (n + 1) the weight that so many devices can take within the load, at most
    ``allowed``  c x (n + 1) the least allowed number of devices that is no less; 0: none
    ``sync``     c x K how long an ideal's units take to send their weights once
    ``summed``   weights are sent after the rest, not beside it
    ``alone``    how many loads, the last ones, no weights are sent in: components of stages after ``pairs.loads``
    """

    digits: Integers
    stride: Integers
    devices: Integers
    main: int
    takes: Integers
    allowed: Integers
    sync: Floats
    summed: bool
    alone: int


@kernel(nogil=True)
def replicated_load(load: float, sync: float, copies: int, summed: bool) -> float:
    """The load of each of ``copies`` devices that share a stage, from that of one and the time to send its weights."""
    sent = (copies - 1) / copies * sync
    return load / copies + sent if summed else max(load / copies, sent)


@kernel(nogil=True, no_cpython_wrapper=True)
def copies_needed(load: float, alone: float, sync: float, allowed: Integers, summed: bool, bound: float) -> int:
    """The fewest devices that share a stage within a load; 0 where no number does.

    ``alone``: the largest load in which no weights are sent;  ``allowed``: a class's row.
    """
    if load <= bound and alone <= bound:
        return 1
    most = len(allowed) - 1
    if most < 2 or bound <= 0.0:
        return 0
    ratio = alone / bound
    if load > bound:
        if summed and sync >= bound:
            return 0
        ratio = max(ratio, (load - sync) / (bound - sync) if summed else load / bound)
    if ratio > most:
        return 0
    copies = allowed[max(2, int(np.ceil(ratio * (1.0 - 1e-12))))]
    while copies:
        if replicated_load(load, sync, copies, summed) <= bound and alone / copies <= bound:
            return int(copies)
        if copies == most or (not summed and load / copies <= bound and alone / copies <= bound):
            return 0  # what exceeds the load is sending weights, which only grows
        copies = allowed[copies + 1]
    return 0


@kernel(nogil=True, no_cpython_wrapper=True)
def _largest_alone(pairs: StagePairs, base: int, goal: int, c: int, paid: Floats, alone: int) -> float:
    """The largest of the loads of a stage in which no weights are sent."""
    largest = 0.0
    for q in range(pairs.loads, pairs.loads + alone):
        largest = max(largest, pairs.unit_sum[q, c, goal] - pairs.unit_sum[q, c, base] + paid[q, c])
    return largest


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def inherit(
    ideal: int, replicas: ReplicationStates, reach: Integers16, origin: Integers32
) -> Booleans:  # fmt: skip
    """What is reached without some device is reached with it: note it, and return which states gain nothing."""
    digits, stride = replicas.digits, replicas.stride
    useless = np.zeros(len(digits), dtype=np.bool_)
    for s in range(len(digits)):
        for c in range(len(stride)):
            if digits[s, c] and reach[ideal, s - stride[c]] <= reach[ideal, s]:
                useless[s] = True
                reach[ideal, s] = reach[ideal, s - stride[c]]
                origin[ideal, s] = origin[ideal, s - stride[c]]
    return useless


@kernel(nogil=True, no_cpython_wrapper=True)
def _open_states(
    ideal: int, replicas: ReplicationStates, left: Integers16, reach: Integers16,
    origin: Integers32, states: Integers, free: Integers,
) -> int:  # fmt: skip
    """Collect the states in which an ideal can be gone on from; how many there are.

    ``free``: the most devices of each class that are free in one of them.
    """
    digits, count, main = replicas.digits, replicas.devices, replicas.main
    useless = inherit(ideal, replicas, reach, origin)
    ways = 0
    free[:] = 0
    for s in range(len(digits)):
        used = reach[ideal, s]
        if used == NEVER or useless[s] or used + left[ideal, s] > count[main]:
            continue
        states[ways] = s
        ways += 1
        for c in range(len(count)):
            free[c] = max(free[c], count[c] - (used if c == main else digits[s, c]))
    return ways


@kernel(nogil=True, no_cpython_wrapper=True)
def _reached(
    base: int, goal: int, s: int, c: int, copies: int, replicas: ReplicationStates, left: Integers16,
    reach: Integers16, origin: Integers32,
) -> None:  # fmt: skip
    """Note that an ideal is reached from another one in state ``s``, by a stage on so many devices of class ``c``."""
    into, used = after(s, reach[base, s], c, copies, replicas)
    if into >= 0 and used < reach[goal, into] and used + left[goal, into] <= replicas.devices[replicas.main]:
        reach[goal, into] = used
        origin[goal, into, 0] = base
        origin[goal, into, 1] = c
        origin[goal, into, 2] = copies


@kernel(nogil=True, allocates=True)
def extend(
    first: int, patience: int, pairs: StagePairs, replicas: ReplicationStates, bound: float, left: Integers16,
    reach: Integers16, origin: Integers32, seen: Integers,
) -> int:  # fmt: skip
    """Extend ideals from ``first`` on by every stage that devices can share within ``bound``; where it got to.

    It stops when it has looked at ``patience`` pairs, one that is evaluated counting as many.

    ``reach[i, s]``: the fewest devices of the main class with which, beside those of state s, ideal i is reached;
    ``left[i, s]``: how many of them the rest needs at least.  ``origin[i, s]``: where the last stage begins, its
    class, and its devices.  ``seen``: ideals that were extended, pairs looked at, pairs of subsets, pairs evaluated.
    """
    weight = pairs.weight
    digits, stride, _, _, takes, allowed, sync, summed, alone = replicas
    everything, classes = len(weight) - 1, len(stride)
    paid = np.zeros((pairs.limit.shape[0], classes))
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    ways_state = np.zeros(len(digits), dtype=np.int64)
    free = np.zeros(classes, dtype=np.int64)
    least = np.zeros(classes, dtype=np.int64)
    start = seen[1] + EVALUATED * seen[3]
    for base in range(first, everything):
        if seen[1] + EVALUATED * seen[3] - start > patience:
            return base
        ways = _open_states(base, replicas, left, reach, origin, ways_state, free)
        if ways == 0:
            continue
        seen[0] += 1
        mark_cuts(pairs, base, mark, True)
        for c in range(classes):
            least[c] = 1 if free[c] else 0
        for goal in range(base + 1, everything + 1):
            # How many devices the weight alone needs, of each class.
            some = False
            for c in range(classes):
                while least[c] and takes[c, least[c]] < weight[goal] - weight[base]:
                    least[c] = allowed[c, least[c] + 1] if least[c] < free[c] else 0
                if least[c] > free[c]:
                    least[c] = 0
                some = some or least[c] > 0
            if not some:
                break
            seen[1] += 1
            better = False
            for c in range(classes):
                if least[c] and _useful(base, goal, c, least[c], replicas, ways_state[:ways], left, reach):
                    better = True
                    break
            if not better or not contained(pairs, base, goal):
                continue
            seen[2] += 1
            ready = False
            for c in range(classes):
                if not least[c] or pairs.unsupported[c, goal] != pairs.unsupported[c, base]:
                    continue
                sent = max(0.0, sync[c, goal] - sync[c, base])
                load = least_load(pairs, base, goal, c, np.inf)
                if load == np.inf:
                    continue
                copies = copies_needed(load, 0.0, sent * (1.0 - 1e-9), allowed[c], summed, bound)
                copies = max(copies, least[c]) if copies else 0
                if not copies or not _useful(base, goal, c, copies, replicas, ways_state[:ways], left, reach):
                    continue
                if not ready:
                    seen[3] += 1
                    ready = True
                    edge_costs(pairs, base, goal, mark, False, paid)
                load = largest_load(pairs, base, goal, c, paid, np.inf)
                if load == np.inf:
                    continue
                unsent = _largest_alone(pairs, base, goal, c, paid, alone)
                copies = copies_needed(load, unsent, sent, allowed[c], summed, bound)
                if not copies:
                    continue
                for i in range(ways):
                    _reached(base, goal, ways_state[i], c, copies, replicas, left, reach, origin)
        mark_cuts(pairs, base, mark, False)
    return everything


@kernel(nogil=True)
def after(state: int, used: int, c: int, copies: int, replicas: ReplicationStates) -> tuple[int, int]:
    """The state and the devices of the main class after so many more of class c; -1 where there are too few."""
    if c == replicas.main:
        return (state if used + copies <= replicas.devices[c] else -1), used + copies
    if replicas.digits[state, c] + copies > replicas.devices[c]:
        return -1, used
    return state + copies * replicas.stride[c], used


@kernel(nogil=True, no_cpython_wrapper=True)
def _useful(
    base: int, goal: int, c: int, copies: int, replicas: ReplicationStates, states: Integers, left: Integers16,
    reach: Integers16,
) -> bool:  # fmt: skip
    """Whether some way to ``base`` and so many devices of class c reach ``goal`` with fewer, and can go on."""
    for i in range(len(states)):
        s = states[i]
        into, used = after(s, reach[base, s], c, copies, replicas)
        if into >= 0 and used < reach[goal, into] and used + left[goal, into] <= replicas.devices[replicas.main]:
            return True
    return False
