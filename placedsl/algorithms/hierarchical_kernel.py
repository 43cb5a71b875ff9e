"""The kernels of the search for pipelines over clusters of devices, compiled once and cached.

What a cluster has lies between two ideals.  Which edges leave the cluster follows from both; those that surely do are
known from the first alone, which bounds from below what the stages inside cost for any second one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.algorithms.pair_costs import contained, edges_paid, marked
from placedsl.algorithms.replicated_kernel import NEVER, after, copies_needed
from placedsl.graph.graph import Floats, Integers


class Stretches(NamedTuple):
    """The stages that the devices of a cluster can take within a load: P pairs of ideals by the first of them.

    ``start``, ``goal``   those that begin at ideal i end at ``goal[start[i]:start[i + 1]]``, ascending
    ``load``   P x loads x c on one device, without what leaves the cluster (inf: not on this class)
    ``until``, ``base``, ``which``   those that end at ideal i begin at ``base[until[i]:until[i + 1]]``, and are these
    """

    start: Integers
    goal: np.ndarray
    load: Floats
    until: Integers
    base: np.ndarray
    which: np.ndarray


class Far(NamedTuple):
    """The f edges that cost something where they leave a cluster.

    ``code``   K x f how much of each is inside an ideal: 1 for what makes it + 2 for each reader
    ``cut_start``, ``cut_edge``   which of them each ideal cuts;  ``readers``  f
    ``read``, ``make``   loads x c x f what is paid on top
    """

    code: np.ndarray
    cut_start: Integers
    cut_edge: np.ndarray
    readers: np.ndarray
    read: Floats
    make: Floats


class Room(NamedTuple):
    """What the search inside one cluster writes: see ``extend`` of the replicated pipeline.  K x s and K x s x 3.

    ``bought``, ``sold``   f edges whose maker, or some reader, is outside the cluster
    ``listed``   K the ideals that are reached;  ``mark``  K in which run, times two, one more where the costs of the
                 stages inside depend on where the cluster ends
    """

    reach: np.ndarray
    origin: np.ndarray
    bought: np.ndarray
    sold: np.ndarray
    listed: np.ndarray
    mark: Integers


class Onward(NamedTuple):
    """What the rest of the pipeline needs, once a cluster has used some of its devices.

    ``needed``  K x states of all devices: the devices of the main class that the rest needs at least
    ``state``   per state of the cluster which of these states is the one of all other classes
    ``spare``   how many devices of the main class there are in this cluster and in those left
    """

    needed: np.ndarray
    state: Integers
    spare: int


@njit(cache=True, nogil=True)
def stretches(first, pairs, copying, bound, start, goal, load):  # type: ignore[no-untyped-def]
    """List the stages from ideal ``first`` on, until all are listed or the room is full; where to go on.

    ``copying``: of the largest numbers of devices that a cluster has.
    """
    weight = pairs.weight
    devices, takes, allowed, sync, summed = (
        copying.devices, copying.takes, copying.allowed, copying.sync, copying.summed
    )  # fmt: skip
    classes = len(devices)
    widest = np.int64(0)
    for c in range(classes):
        widest = max(widest, takes[c, devices[c]])
    paid = np.zeros((pairs.limit.shape[0], classes))
    mark = np.zeros(pairs.read_meter.shape[2], dtype=np.int32)
    for base in range(first, len(weight)):
        filled = start[base]
        marked(pairs, base, mark, True)
        for end in range(base + 1, len(weight)):
            if weight[end] - weight[base] > widest:
                break
            if not contained(pairs, base, end):
                continue
            if filled == len(goal):
                return base
            edges_paid(pairs, base, end, mark, paid)
            some = False
            for c in range(classes):
                fits = pairs.blocked[c, end] == pairs.blocked[c, base]
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
        marked(pairs, base, mark, False)
        start[base + 1] = filled
    return len(weight)


@njit(cache=True, nogil=True)
def _leaving(low, high, far, room):  # type: ignore[no-untyped-def]
    """Which edges leave what is between two ideals; without ``high`` those that surely do.

    Returns how many are bought and sold, and how many of these surely.
    """
    bought, sold = 0, 0
    for j in range(far.cut_start[low], far.cut_start[low + 1]):
        e = far.cut_edge[j]
        if far.code[low, e] & 1:
            room.bought[bought] = e
            bought += 1
        else:
            room.sold[sold] = e
            sold += 1
    surely = bought, sold
    if high >= 0:
        for j in range(far.cut_start[high], far.cut_start[high + 1]):
            e = far.cut_edge[j]
            before, held = far.code[low, e], far.code[high, e]
            if not held & 1:
                if held != before:
                    room.bought[bought] = e
                    bought += 1
            elif before == 0:
                room.sold[sold] = e
                sold += 1
    return bought, sold, surely[0], surely[1]


@njit(cache=True, nogil=True)
def _step(  # type: ignore[no-untyped-def]
    base, goal, p, there, count, stages, far, copying, bound, onward, room, reach, origin, seen
):
    """Reach ``goal`` from ``base`` by stage p, on each class of devices; ``there``: what reaches ``base``."""
    bought, sold = count
    loads = stages.load.shape[1]
    seen[2] += 1
    for c in range(len(copying.devices)):
        if stages.load[p, 0, c] == np.inf:
            continue
        sent = max(0.0, copying.sync[c, goal] - copying.sync[c, base])
        largest = 0.0
        for q in range(loads):
            largest = max(largest, stages.load[p, q, c])
        copies = copies_needed(largest, sent, copying.allowed[c], copying.summed, bound)
        if not copies or not _gains(goal, c, copies, there, copying, onward, reach):
            continue
        seen[3] += 1
        largest = 0.0
        for q in range(loads):
            reading = stages.load[p, q, c]
            for i in range(bought):
                e = room.bought[i]
                if far.code[base, e] >> 1 != far.code[goal, e] >> 1:
                    reading += far.read[q, c, e]
            for i in range(sold):
                e = room.sold[i]
                if far.code[goal, e] & 1 and not far.code[base, e] & 1:
                    reading += far.make[q, c, e]
            largest = max(largest, reading)
        copies = copies_needed(largest, sent, copying.allowed[c], copying.summed, bound)
        if not copies:
            continue
        for s in range(len(copying.digits)):
            if there[s] == NEVER:
                continue
            into, used = after(s, there[s], c, copies, copying)
            if into >= 0 and used < reach[goal, into] and _goes_on(goal, into, used, onward):
                reach[goal, into] = used
                origin[goal, into, 0] = base
                origin[goal, into, 1] = c
                origin[goal, into, 2] = copies


@njit(cache=True, nogil=True)
def _gains(goal, c, copies, there, copying, onward, reach):  # type: ignore[no-untyped-def]
    for s in range(len(copying.digits)):
        if there[s] != NEVER:
            into, used = after(s, there[s], c, copies, copying)
            if into >= 0 and used < reach[goal, into] and _goes_on(goal, into, used, onward):
                return True
    return False


@njit(cache=True, nogil=True)
def _goes_on(goal, state, used, onward):  # type: ignore[no-untyped-def]
    return used + onward.needed[goal, onward.state[state]] <= onward.spare


@njit(cache=True, nogil=True)
def _pruned(ideal, copying, reach):  # type: ignore[no-untyped-def]
    """Forget the states in which an ideal is reached as well with less."""
    digits = copying.digits
    for s in range(len(digits) - 1, 0, -1):
        for t in range(s):
            if reach[ideal, t] <= reach[ideal, s] and (digits[t] <= digits[s]).all():
                reach[ideal, s] = NEVER
                break


@njit(cache=True, nogil=True)
def _fewest(ideal, copying, reach):  # type: ignore[no-untyped-def]
    fewest = NEVER
    for s in range(len(copying.digits)):
        if reach[ideal, s] != NEVER:
            fewest = min(fewest, reach[ideal, s] + copying.digits[s].sum())
    return fewest


@njit(cache=True, nogil=True)
def inside(low, high, stages, pairs, far, copying, bound, onward, room, seen):  # type: ignore[no-untyped-def]
    """Reach from ideal ``low`` on with the devices of one cluster that ends at ``high``; how many are reached.

    ``high`` < 0: as if only edges left the cluster that surely do.
    """
    bought, sold, _, _ = _leaving(low, high, far, room)
    reach, origin = room.reach, room.origin
    top = high if high >= 0 else len(reach) - 1
    states = len(copying.digits)
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
        room.listed[count] = base
        count += 1
        _pruned(base, copying, reach)
        if base == top:
            break
        for p in range(stages.start[base], stages.start[base + 1]):
            goal = stages.goal[p]
            if goal > top:
                break
            seen[1] += 1
            if high < 0 or goal == high or contained(pairs, goal, high):
                _step(base, goal, p, reach[base], (bought, sold), stages, far, copying, bound, onward, room, reach,
                      origin, seen)  # fmt: skip
    return count


@njit(cache=True, nogil=True)
def _ended(  # type: ignore[no-untyped-def]
    low, high, listed, count, known, stages, pairs, far, copying, bound, onward, free, room, seen
):
    """The fewest devices of one cluster from ``low`` to ``high``; ``free`` is as if only the ``known`` edges left it.

    Where no stage on the way to an ideal touches another edge that leaves the cluster, ``free`` has it right.
    """
    seen[0] += 1
    run = 2 * seen[0]
    bought, sold = count
    states = len(copying.digits)
    for i in range(listed):
        goal = free.listed[i]
        if goal > high:
            break
        if goal != high and not contained(pairs, goal, high):
            continue
        touched = goal == high
        for k in range(known[0], bought):
            e = room.bought[k]
            touched = touched or far.code[goal, e] >> 1 != far.code[low, e] >> 1
        for k in range(known[1], sold):
            touched = touched or far.code[goal, room.sold[k]] & 1 != 0
        room.mark[goal] = run + touched
        if not touched:
            continue
        room.reach[goal, :states] = NEVER
        for j in range(stages.until[goal], stages.until[goal + 1]):
            base = stages.base[j]
            seen[1] += 1
            if base < low or room.mark[base] >> 1 != run >> 1:
                continue
            there = room.reach[base] if room.mark[base] & 1 else free.reach[base]
            _step(base, goal, stages.which[j], there, count, stages, far, copying, bound, onward, room, room.reach,
                  room.origin, seen)  # fmt: skip
        _pruned(goal, copying, room.reach)
    return _fewest(high, copying, room.reach)


@njit(cache=True, nogil=True)
def spread(  # type: ignore[no-untyped-def]
    low, first, listed, ways, number, fewest, fits, value, came, stages, pairs, far, copying, bound, onward, free, room,
    seen, patience
):  # fmt: skip
    """Give a cluster what is between ideal ``low`` and each ideal from ``first`` on; where to go on, K at the end.

    ``ways``: pairs of states of clusters before and after; ``number``: which class of clusters.  ``value[i, s]``: with
    how many devices ideal i is reached by the clusters of state s, where ``fewest`` as few as possible; ``fits``: which
    of them matter; ``came``: where the last cluster begins, and its class.  ``free``: what :func:`inside` wrote for no
    end in particular, ``listed`` how many it reached.
    """
    until = seen[1] + patience
    for high in range(first, len(value)):
        least = _fewest(high, copying, free.reach)
        if least == NEVER:
            continue
        wanted = False
        for i in range(len(ways)):
            known = value[high, ways[i, 1]]
            if fits[high, ways[i, 1]] and (known == NEVER or (fewest and value[low, ways[i, 0]] + least < known)):
                wanted = True
        if not wanted:
            continue
        bought, sold, already_bought, already_sold = _leaving(low, high, far, room)
        if bought > already_bought or sold > already_sold:
            least = _ended(low, high, listed, (bought, sold), (already_bought, already_sold), stages, pairs, far,
                           copying, bound, onward, free, room, seen)  # fmt: skip
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
