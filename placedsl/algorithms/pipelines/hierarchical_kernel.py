"""The kernels of the search for pipelines over clusters of devices, compiled once and cached.

What a cluster has lies between two ideals.  Which edges leave the cluster follows from both; those that surely do are
known from the first alone, which bounds from below what the stages inside cost for any second one.  Clusters within
clusters are searched in the same way, depth by depth: an edge that leaves several of them is paid once for each.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.cluster_arrays import ClusterProblem, ClusterReach, Members
from placedsl.algorithms.pipelines.cluster_stages_kernel import find_leaving_edges
from placedsl.algorithms.pipelines.replicated_kernel import NEVER, ReplicationStates, after, copies_needed
from placedsl.algorithms.stages.cut_edges_kernel import contained
from placedsl.arrays import Integers, Integers16, Integers32

#: What ``frame`` holds of a cluster that is being searched: its kind, the ideals that it lies between, whether it is
#: searched again and in which run, how many of how many ideals have been gone on from; of the last of them, which kind
#: of clusters within goes on, how far its list has been gone through, and whether it is being searched again.
KIND, LOW, HIGH, AGAIN, RUN, AT, NUMBER, BASE, PART, CURSOR, WAITING = range(11)
FRAME = 11


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def _members(x: int, depth: int, given: ClusterProblem, room: ClusterReach) -> Members:
    """A cluster of kind x for the search."""
    kinds, every = given.kinds, given.every
    rows = slice(kinds.first[x], kinds.first[x + 1])
    replicas = ReplicationStates(
        kinds.digits[rows], kinds.stride[x], kinds.number[x], kinds.main[x], every.takes, kinds.allowed[x], every.sync,
        every.summed, every.alone,
    )  # fmt: skip
    needed = given.needed[max(0, depth - 1)]
    return Members(replicas, kinds.direct[rows], depth == 0, given.fits, needed, room.state[depth], room.spare[depth])


@kernel(nogil=True, no_cpython_wrapper=True)
def _remaining(x: int, depth: int, given: ClusterProblem, room: ClusterReach) -> None:
    """Of each state of a cluster of kind x, what is left for the rest at the most."""
    kinds, every = given.kinds, given.every
    for s in range(kinds.first[x + 1] - kinds.first[x]):
        state = 0
        for c in range(len(every.devices)):
            used = every.devices[c] - room.left[depth, c] + kinds.used[kinds.first[x] + s, c]
            if c == every.main:
                room.spare[depth, s] = every.devices[c] - used
            else:
                state += used * every.stride[c]
        room.state[depth, s] = state


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def _rows(slot: int, ideals: int, room: ClusterReach) -> Integers16:
    """K x s: the part of ``reach`` that is a slot's."""
    return room.reach[room.start[slot] : room.start[slot] + ideals * room.width[slot]].reshape(ideals, room.width[slot])


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def _origins(slot: int, ideals: int, room: ClusterReach) -> Integers32:
    """K x s x 3: the part of ``origin`` that is a slot's."""
    rows = room.origin[room.start[slot] : room.start[slot] + ideals * room.width[slot]]
    return rows.reshape(ideals, room.width[slot], 3)


# More than ten arguments: the innermost loop builds no tuple for them.
@kernel(nogil=True, no_cpython_wrapper=True)
def _step(
    base: int, goal: int, p: int, there: Integers16, depth: int, given: ClusterProblem, members: Members,
    reach: Integers16, origin: Integers32, room: ClusterReach, seen: Integers,
) -> None:  # fmt: skip
    """Reach ``goal`` from ``base`` by stage p, on each class of devices; ``there``: what reaches ``base``."""
    stages, far, replicas, bound = given.stages, given.edges, members.replicas, given.bound
    loads, sending = stages.load.shape[1], stages.load.shape[1] - replicas.alone
    seen[2] += 1
    for c in range(len(replicas.allowed)):
        if stages.load[p, 0, c] == np.inf:
            continue
        sent = max(0.0, replicas.sync[c, goal] - replicas.sync[c, base])
        largest, alone = 0.0, 0.0
        for q in range(sending):
            largest = max(largest, stages.load[p, q, c])
        for q in range(sending, loads):
            alone = max(alone, stages.load[p, q, c])
        copies = copies_needed(largest, alone, sent, replicas.allowed[c], replicas.summed, bound)
        if not copies or not _gains(goal, c, copies, 0, there, members, reach):
            continue
        seen[3] += 1
        largest, alone = 0.0, 0.0
        for q in range(loads):
            reading = stages.load[p, q, c]
            for i in range(room.leaving[depth, 0]):
                e = room.bought[depth, i, 0]
                if far.code[base, e] >> 1 != far.code[goal, e] >> 1:
                    reading += far.read[q, c, room.bought[depth, i, 1]]
            for i in range(room.leaving[depth, 1]):
                e = room.sold[depth, i, 0]
                if far.code[goal, e] & 1 and not far.code[base, e] & 1:
                    reading += far.make[q, c, room.sold[depth, i, 1]]
            if q < sending:
                largest = max(largest, reading)
            else:
                alone = max(alone, reading)
        copies = copies_needed(largest, alone, sent, replicas.allowed[c], replicas.summed, bound)
        if copies:
            _take(base, goal, c, copies, 0, there, members, reach, origin)


@kernel(nogil=True, no_cpython_wrapper=True)
def _gains(
    goal: int, member: int, copies: int, further: int, there: Integers16, members: Members,
    reach: Integers16,
) -> bool:  # fmt: skip
    """Whether so many of a member reach ``goal`` with fewer devices than is known, and the rest can do.

    ``further``: devices of a cluster within.
    """
    for s in range(len(members.replicas.digits)):
        if there[s] != NEVER:
            into, used = after(s, there[s], member, copies, members.replicas)
            if into >= 0 and used + further < reach[goal, into] and _goes_on(goal, into, used, members):
                return True
    return False


@kernel(nogil=True, no_cpython_wrapper=True)
def _take(
    base: int, goal: int, member: int, copies: int, further: int, there: Integers16, members: Members,
    reach: Integers16, origin: Integers32,
) -> None:  # fmt: skip
    """Reach ``goal`` by so many of a member in every state in which that is better."""
    for s in range(len(members.replicas.digits)):
        if there[s] == NEVER:
            continue
        into, used = after(s, there[s], member, copies, members.replicas)
        if into >= 0 and used + further < reach[goal, into] and _goes_on(goal, into, used, members):
            reach[goal, into] = used + further
            origin[goal, into, 0] = base
            origin[goal, into, 1] = member
            origin[goal, into, 2] = copies


@kernel(nogil=True, no_cpython_wrapper=True)
def _goes_on(goal: int, state: int, used: int, members: Members) -> bool:
    """Whether enough devices are left for the rest; ``used`` of the main class, where there is one."""
    if members.machine:
        return bool(members.fits[goal, state])
    counted = used if members.replicas.main >= 0 else 0
    return bool(counted + members.needed[goal, members.state[state]] <= members.spare[state])


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def _forget_dominated(ideal: int, replicas: ReplicationStates, reach: Integers16) -> bool:
    """Forget the states in which an ideal is reached as well with less; whether it is reached in any."""
    digits = replicas.digits
    some = False
    for s in range(len(digits) - 1, -1, -1):
        if reach[ideal, s] == NEVER:
            continue
        some = True
        for t in range(s):
            if reach[ideal, t] <= reach[ideal, s] and (digits[t] <= digits[s]).all():
                reach[ideal, s] = NEVER
                break
    return some


@kernel(nogil=True, no_cpython_wrapper=True)
def _fewest(there: Integers16, direct: Integers) -> int:
    """The fewest devices that reach an ideal."""
    fewest = NEVER
    for s in range(len(direct)):
        if there[s] != NEVER:
            fewest = min(fewest, there[s] + direct[s])
    return fewest


@kernel(nogil=True, no_cpython_wrapper=True)
def _mark(x: int, depth: int, low: int, high: int, given: ClusterProblem, room: ClusterReach, run: int) -> None:
    """Mark the ideals on the way to ``high``, and which of them have a part of an edge that does not surely leave.

    Nothing reaches the latter yet.
    """
    far = given.edges
    reach = _rows(2 * depth + 1, len(given.pairs.weight), room)
    for i in range(room.number[2 * depth]):
        goal = room.listed[2 * depth, i]
        if goal > high:
            break
        if goal != high and not contained(given.pairs, goal, high):
            continue
        touched = goal == high
        for k in range(room.leaving[depth, 2], room.leaving[depth, 0]):
            e = room.bought[depth, k, 0]
            touched = touched or far.code[goal, e] >> 1 != far.code[low, e] >> 1
        for k in range(room.leaving[depth, 3], room.leaving[depth, 1]):
            touched = touched or far.code[goal, room.sold[depth, k, 0]] & 1 != 0
        room.mark[depth, goal] = 2 * run + touched
        if touched:
            reach[goal, : given.kinds.first[x + 1] - given.kinds.first[x]] = NEVER


@kernel(nogil=True, no_cpython_wrapper=True)
def _begin(
    x: int, depth: int, low: int, high: int, again: bool, given: ClusterProblem, room: ClusterReach, seen: Integers
) -> None:  # fmt: skip
    """Begin to reach all ideals from ``low`` up to ``high``, by the members of a cluster of kind x.

    The edges that leave the cluster are in ``room``.  ``again``: some leave it as it ends at ``high``, beside those
    that did so when this was run before; where nothing on the way to an ideal touches one of them, that had it right.
    """
    frame, slot = room.frame[depth], 2 * depth + again
    frame[KIND], frame[LOW], frame[HIGH], frame[AGAIN], frame[AT], frame[PART] = x, low, high, again, 0, -1
    if again:
        seen[0] += 1
        frame[RUN] = seen[0]
        _mark(x, depth, low, high, given, room, seen[0])
        frame[NUMBER] = room.number[slot - 1]
        return
    reach = _rows(slot, len(given.pairs.weight), room)
    for i in range(room.number[slot]):
        reach[room.listed[slot, i]] = NEVER
    room.number[slot] = 0
    _remaining(x, depth, given, room)
    frame[NUMBER] = high - low + 1
    reach[low, 0] = 0
    _origins(slot, len(given.pairs.weight), room)[low, 0, 0] = -1


@kernel(nogil=True, no_cpython_wrapper=True)
def _advance(depth: int, given: ClusterProblem, room: ClusterReach, seen: Integers) -> bool:
    """Go on from ideal to ideal by the devices of a cluster; whether one is met that clusters within may go on from."""
    stages, pairs, kinds, frame = given.stages, given.pairs, given.kinds, room.frame[depth]
    x, low, high, again, run = frame[KIND], frame[LOW], frame[HIGH], frame[AGAIN] != 0, frame[RUN]
    ideals, classes = len(pairs.weight), kinds.allowed.shape[1]
    slot, whole = 2 * depth + (1 if again else 0), high == ideals - 1
    members = _members(x, depth, given, room)
    reach, origin, free = _rows(slot, ideals, room), _origins(slot, ideals, room), _rows(2 * depth, ideals, room)
    bare = True  # all devices are in clusters within
    for c in range(classes):
        bare = bare and not members.replicas.devices[c]
    while frame[AT] < frame[NUMBER]:
        base = np.int64(room.listed[2 * depth, frame[AT]]) if again else low + frame[AT]
        frame[AT] += 1
        if base > high:
            break
        fresh = True
        if again:
            if room.mark[depth, base] >> 1 != run:
                continue
            fresh = room.mark[depth, base] & 1 != 0
            for j in range(stages.until[base], stages.until[base + 1] if fresh and not bare else stages.until[base]):
                begin = stages.base[j]
                seen[1] += 1
                if begin >= low and room.mark[depth, begin] >> 1 == run:
                    there = reach[begin] if room.mark[depth, begin] & 1 else free[begin]
                    _step(begin, base, stages.which[j], there, depth, given, members, reach, origin, room, seen)
        if fresh and not _forget_dominated(base, members.replicas, reach):
            continue
        if not again:
            room.listed[slot, room.number[slot]] = base
            room.number[slot] += 1
        if base == high:
            break
        if not again and not bare:
            for p in range(stages.start[base], stages.start[base + 1]):
                goal = stages.goal[p]
                if goal > high:
                    break
                seen[1] += 1
                if whole or goal == high or contained(pairs, goal, high):
                    _step(base, goal, p, reach[base], depth, given, members, reach, origin, room, seen)
        if kinds.main[x] < 0:
            frame[BASE], frame[PART], frame[CURSOR], frame[WAITING] = base, 0, -1, 0
            return True
    return False


@kernel(nogil=True, no_cpython_wrapper=True)
def _left_within(
    depth: int, member: int, there: Integers16, digits: Integers, devices: Integers, given: ClusterProblem,
    room: ClusterReach,
) -> bool:  # fmt: skip
    """What is left at the most where one more of a member can be used, into the next ``left``; whether it can."""
    kinds = given.kinds
    used = kinds.used[kinds.first[room.frame[depth, KIND]] :]
    some = False
    for s in range(len(digits)):
        if there[s] != NEVER and digits[s, member] < devices[member]:
            for c in range(used.shape[1]):
                left = room.left[depth, c] - used[s, c]
                room.left[depth + 1, c] = max(left, room.left[depth + 1, c]) if some else left
            some = True
    return some


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def _go_within(depth: int, given: ClusterProblem, room: ClusterReach, seen: Integers) -> bool:
    """Go on from one ideal by the clusters within a cluster; whether one of them has begun, and has to be searched.

    It is searched as if only those edges left it that surely do, and again for each end where more do.
    """
    kinds, frame = given.kinds, room.frame[depth]
    x, high, again, base = frame[KIND], frame[HIGH], frame[AGAIN] != 0, frame[BASE]
    ideals, classes = len(given.pairs.weight), kinds.allowed.shape[1]
    slot, within = 2 * depth + (1 if again else 0), 2 * depth + 2
    members = _members(x, depth, given, room)
    replicas = members.replicas
    reach, origin = _rows(slot, ideals, room), _origins(slot, ideals, room)
    free, repeated = _rows(within, ideals, room), _rows(within + 1, ideals, room)
    there = reach[base]
    if again and room.mark[depth, base] & 1 == 0:
        there = _rows(2 * depth, ideals, room)[base]
    while frame[PART] < kinds.part.shape[1] and kinds.part[x, frame[PART]] >= 0:
        y, member = kinds.part[x, frame[PART]], classes + frame[PART]
        if frame[CURSOR] < 0:
            if not _left_within(depth, member, there, replicas.digits, replicas.devices, given, room):
                frame[PART] += 1
                continue
            find_leaving_edges(depth + 1, base, -1, given, room)
            _begin(y, depth + 1, base, high, False, given, room, seen)
            frame[CURSOR] = 0
            return True
        direct = kinds.direct[kinds.first[y] : kinds.first[y + 1]]
        while frame[CURSOR] < room.number[within]:
            goal = np.int64(room.listed[within, frame[CURSOR]])
            least = NEVER
            if frame[WAITING]:
                frame[WAITING] = 0
                least = _fewest(repeated[goal], direct)
            elif goal != base and (not again or room.mark[depth, goal] == 2 * frame[RUN] + 1):
                least = _fewest(free[goal], direct)
                further = least if given.fewest else 0
                if not _gains(goal, member, 1, further, there, members, reach):
                    least = NEVER
                elif find_leaving_edges(depth + 1, base, goal, given, room):
                    _begin(y, depth + 1, base, goal, True, given, room, seen)
                    frame[WAITING] = 1
                    return True
            if least != NEVER:
                _take(base, goal, member, 1, least if given.fewest else 0, there, members, reach, origin)
            frame[CURSOR] += 1
        frame[PART] += 1
        frame[CURSOR] = -1
    frame[PART] = -1
    if not given.fewest and (again or depth == 0) and (reach[high, : len(replicas.digits)] != NEVER).any():
        frame[AT] = frame[NUMBER]
    return False


@kernel(nogil=True, allocates=True)
def begin(
    x: int, depth: int, low: int, high: int, given: ClusterProblem, room: ClusterReach, seen: Integers
) -> None:  # fmt: skip
    """Begin to reach ``high`` from ``low`` by a cluster of kind x.

    ``room`` has the edges that leave what is around it; depth 0 is the machine.
    """
    room.left[depth] = given.every.devices
    if depth:
        find_leaving_edges(depth, low, high, given, room)
    _begin(x, depth, low, high, False, given, room, seen)


@kernel(nogil=True)
def go_on(
    depth: int, bottom: int, given: ClusterProblem, room: ClusterReach, seen: Integers, patience: int
) -> int:  # fmt: skip
    """Search on at a depth until what has begun at depth ``bottom`` is done; at which depth it stops, if not.

    It stops after so many more pairs.
    """
    until = seen[1] + patience
    while depth >= bottom:
        if seen[1] > until:
            return depth
        if room.frame[depth, PART] < 0 and not _advance(depth, given, room, seen):
            depth -= 1
        elif room.frame[depth, PART] >= 0 and _go_within(depth, given, room, seen):
            depth += 1
    return depth
