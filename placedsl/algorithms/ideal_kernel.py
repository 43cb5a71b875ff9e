"""The kernels of the dynamic program over ideals, compiled once and cached.

What a stage J \\ I costs comes from the two ideals alone: sums of its units as differences of prefix sums, and of the
edges that I and J cut.  An edge that only one of them cuts is paid once; one that both cut is paid once where the stage
has some of it, and not at all where it has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.graph.graph import Floats, Integers


class Lattice(NamedTuple):
    """K ideals, a subset always before its supersets, the empty one first and everything last.  W words an ideal.

    ``weight``      K whole numbers that grow with the ideal
    ``words``       W x K positions packed into lanes whose highest bit, set in ``top``, is free
    ``unit_sum``    m x c x K sums of the unit meters;  ``blocked``  c x K how many units the class does not support
    ``memory``      K sums of memory
    ``cut_start``, ``cut_edge``, ``cut_code``   the edges that ideal i cuts, and how much of each is inside:
                    1 for what makes it + 2 for each reader
    ``from_none``   m x c x K what the ideal itself pays for edges;  ``to_all``  the same for what is left without it
    ``key``, ``near``   c x K: the first load of a stage J \\ I is at least ``key[J] - near[I]``
    """

    weight: Integers
    words: np.ndarray
    top: np.uint64
    unit_sum: Floats
    blocked: Integers
    memory: Floats
    cut_start: Integers
    cut_edge: np.ndarray
    cut_code: np.ndarray
    from_none: Floats
    to_all: Floats
    key: Floats
    near: Floats


class Costs(NamedTuple):
    """What stages pay and may take: see :class:`placedsl.algorithms.stages.Stages`.

    ``paid_meter``, ``paid_class``   the pairs of meter and class for which an edge costs something;
    ``even``   m x c: reading and making cost the same
    ``loads``  how many meters are loads
    """

    paid_meter: Integers
    paid_class: Integers
    even: np.ndarray
    read_meter: Floats
    make_meter: Floats
    limit: Floats
    loads: int


class States(NamedTuple):
    """How many devices of each class have been used, s states.

    ``digits``  s x c;  ``stride``  c: one more device of class c is ``state + stride[c]``;  ``total``  c
    ``takes``   s: the weight that the devices that are left can take;  ``room``  s: their memory
    ``widest``  the weight that one device can take at most;  ``share``  c: the weight that it takes at least
    ``turn``    the states by the number of devices used;  ``whole``  the weight of everything
    """

    digits: Integers
    stride: Integers
    total: Integers
    takes: Integers
    room: Floats
    widest: int
    share: Integers
    turn: Integers
    whole: int


@njit(cache=True)
def cut_lists(positions, unit_start, unit, touch_start, touched, role, readers):  # type: ignore[no-untyped-def]
    """The edges that each ideal cuts: start, edge, code.  Neighbouring ideals should differ little."""
    ideals, chains = positions.shape
    inside = np.zeros(len(readers), dtype=np.int32)
    place = np.full(len(readers), -1, dtype=np.int32)
    active = np.empty(len(readers), dtype=np.int32)
    count, used = 0, 0
    at = np.zeros(chains, dtype=np.int64)
    start = np.zeros(ideals + 1, dtype=np.int64)
    room = 16 * ideals + 1024
    edge = np.empty(room, dtype=np.int32)
    code = np.empty(room, dtype=np.int32)
    for i in range(ideals):
        for c in range(chains):
            goal = np.int64(positions[i, c])
            while at[c] != goal:
                if at[c] < goal:
                    u, sign = unit[unit_start[c] + at[c]], 1
                    at[c] += 1
                else:
                    at[c] -= 1
                    u, sign = unit[unit_start[c] + at[c]], -1
                for j in range(touch_start[u], touch_start[u + 1]):
                    e = touched[j]
                    inside[e] += sign * role[j]
                    cut = 0 < inside[e] <= 2 * readers[e]
                    if cut and place[e] < 0:
                        place[e] = count
                        active[count] = e
                        count += 1
                    elif not cut and place[e] >= 0:
                        count -= 1
                        other = active[count]
                        active[place[e]] = other
                        place[other] = place[e]
                        place[e] = -1
        if used + count > room:
            room = 2 * (room + count)
            longer = np.empty(room, dtype=np.int32)
            longer[:used] = edge[:used]
            edge = longer
            longer = np.empty(room, dtype=np.int32)
            longer[:used] = code[:used]
            code = longer
        for j in range(count):
            edge[used] = active[j]
            code[used] = inside[active[j]]
            used += 1
        start[i + 1] = used
    return start, edge[:used], code[:used]


@njit(cache=True)
def cut_costs(cut_start, cut_edge, cut_code, read_meter, make_meter):  # type: ignore[no-untyped-def]
    """What each ideal pays for the edges that it cuts, and what its complement pays: both m x c x K."""
    meters, classes = read_meter.shape[:2]
    ideals = len(cut_start) - 1
    own = np.zeros((meters, classes, ideals))
    rest = np.zeros((meters, classes, ideals))
    for i in range(ideals):
        for j in range(cut_start[i], cut_start[i + 1]):
            e = cut_edge[j]
            made = cut_code[j] & 1
            for q in range(meters):
                for c in range(classes):
                    own[q, c, i] += make_meter[q, c, e] if made else read_meter[q, c, e]
                    rest[q, c, i] += read_meter[q, c, e] if made else make_meter[q, c, e]
    return own, rest


@njit(cache=True)
def _contained(small, large, words, top):  # type: ignore[no-untyped-def]
    inside = True
    for w in range(words.shape[0]):
        if ((words[w, large] | top) - words[w, small]) & top != top:
            inside = False
            break
    return inside


@njit(cache=True)
def _edges_paid(small, large, mark, lattice, costs, paid):  # type: ignore[no-untyped-def]
    """What the stage pays for edges on the pairs of meter and class where there is something to pay: ``paid[m, c]``.

    ``mark``: how much the large ideal has inside of each edge that it cuts, 0 for the others.
    """
    meter, kind = costs.paid_meter, costs.paid_class
    for k in range(len(meter)):
        q, c = meter[k], kind[k]
        paid[q, c] = lattice.from_none[q, c, large] + lattice.to_all[q, c, small]
    for j in range(lattice.cut_start[small], lattice.cut_start[small + 1]):
        e = lattice.cut_edge[j]
        after = mark[e]
        if after == 0:
            continue
        before = lattice.cut_code[j]
        made = (after & 1) != 0 and (before & 1) == 0
        some = after != before
        for k in range(len(meter)):
            q, c = meter[k], kind[k]
            read, make = costs.read_meter[q, c, e], costs.make_meter[q, c, e]
            change = -(make if after & 1 else read) - (read if before & 1 else make)
            if some:
                change += make if made else read
            paid[q, c] += change


@njit(cache=True)
def _marked(ideal, mark, lattice, on):  # type: ignore[no-untyped-def]
    """Put down what the ideal has of each edge that it cuts, or wipe it out."""
    for j in range(lattice.cut_start[ideal], lattice.cut_start[ideal + 1]):
        mark[lattice.cut_edge[j]] = lattice.cut_code[j] if on else 0


@njit(cache=True)
def _load(small, large, c, lattice, costs, paid, bound):  # type: ignore[no-untyped-def]
    """The largest load of the stage on a device of class c; inf where it is not allowed or above ``bound``."""
    largest = 0.0
    for q in range(costs.limit.shape[0]):
        reading = lattice.unit_sum[q, c, large] - lattice.unit_sum[q, c, small] + paid[q, c]
        if reading > costs.limit[q, c] or (q < costs.loads and reading > bound):
            return np.inf
        if q < costs.loads:
            largest = max(largest, reading)
    return largest


@njit(cache=True)
def _at_least(small, large, c, lattice, costs, bound):  # type: ignore[no-untyped-def]
    """A load that the stage exceeds, from its units and the cuts by themselves; inf where it is not allowed."""
    largest = 0.0
    for q in range(costs.limit.shape[0]):
        reading = lattice.unit_sum[q, c, large] - lattice.unit_sum[q, c, small]
        if costs.even[q, c]:
            reading += abs(lattice.from_none[q, c, large] - lattice.from_none[q, c, small])
        reading *= 1.0 - 1e-9
        if reading > costs.limit[q, c] or (q < costs.loads and reading > bound):
            return np.inf
        if q < costs.loads:
            largest = max(largest, reading)
    return largest


@njit(cache=True)
def join(exact, lattice, costs, states, value, limit, cursor, seen, patience):  # type: ignore[no-untyped-def]
    """State after state, for every ideal a stage that ends there: the best, or where not ``exact`` any.

    ``value[i, s]``: the least largest load of a chain from nothing to ideal i by the devices of state s, nan where that
    is of no interest; where not ``exact``, 0 for whatever stays within the limit.  The stages that end at an ideal are
    looked at by rising bounds of their loads, so that the first ones do and the rest can be left.
    ``limit[0]``: the largest load of interest; falls where exact.  ``cursor``: turn, class and ideal to go on from,
    after so many pairs as ``patience`` says; True when done.  ``seen``: pairs looked at, of subsets, evaluated.
    """
    weight, words, top, key, near = lattice.weight, lattice.words, lattice.top, lattice.key, lattice.near
    digits, stride, turn, memory = states.digits, states.stride, states.turn, lattice.memory
    everything = len(weight) - 1
    whole = memory[everything]
    classes, lanes = len(stride), words.shape[0]
    paid = np.zeros((costs.limit.shape[0], classes))
    mark = np.zeros(costs.read_meter.shape[2], dtype=np.int32)
    bases = np.empty(len(weight), dtype=np.int64)
    left = patience
    while cursor[0] < len(turn):
        s = turn[cursor[0]]
        c = cursor[1]
        if c == classes:
            if not exact and value[everything, s] == 0.0:
                return True
            cursor[0] += 1
            cursor[1] = 0
            continue
        count = 0
        if digits[s, c] > 0:
            p = s - stride[c]
            for i in range(everything):
                if not value[i, p] <= limit[0] or value[i, p] == np.inf or whole - memory[i] > states.room[p]:
                    continue
                useful = True
                for d in range(classes):
                    if digits[p, d] and value[i, p - stride[d]] <= value[i, p]:
                        useful = False  # as good with a device less
                        break
                if useful:
                    bases[count] = i
                    count += 1
        if count == 0:
            cursor[1] += 1
            cursor[2] = 0
            continue
        chosen = bases[:count]
        chosen = chosen[np.argsort(-near[c][chosen])]
        here = near[c][chosen]
        before = value[:, s - stride[c]][chosen]
        packed = np.empty((count, lanes), dtype=np.uint64)
        for w in range(lanes):
            packed[:, w] = words[w][chosen]
        lightest = weight[chosen].min() + states.share[c]
        hint = 0
        for goal in range(cursor[2], everything + 1):
            best = value[goal, s]
            if np.isnan(best) or weight[goal] < lightest or whole - memory[goal] > states.room[s]:
                continue
            for d in range(classes):
                if digits[s, d] and value[goal, s - stride[d]] < best:
                    best = value[goal, s - stride[d]]
            if not exact and best == 0.0:
                continue
            if left <= 0:
                cursor[2] = goal
                return False
            highest = min(best, limit[0]) * (1.0 + 1e-9)
            ready = False
            for turned in range(-1, count):
                # First the one that was best for the goal before.
                k = hint if turned < 0 else turned
                if key[c, goal] - here[k] > highest:
                    if turned < 0:
                        continue
                    break
                left -= 1
                seen[0] += 1
                if before[k] >= best:
                    continue
                base = chosen[k]
                stage = weight[goal] - weight[base]
                if stage < states.share[c] or stage > states.widest:
                    continue
                inside = True
                for w in range(lanes):
                    if ((words[w, goal] | top) - packed[k, w]) & top != top:
                        inside = False
                        break
                if not inside or base >= goal:
                    continue
                seen[1] += 1
                if lattice.blocked[c, goal] != lattice.blocked[c, base]:
                    continue
                least = _at_least(base, goal, c, lattice, costs, limit[0])
                if not (max(before[k], least) if exact else least) < best:
                    continue
                left -= 8
                seen[2] += 1
                if not ready:
                    ready = True
                    _marked(goal, mark, lattice, True)
                _edges_paid(base, goal, mark, lattice, costs, paid)
                load = _load(base, goal, c, lattice, costs, paid, limit[0])
                reached = max(before[k], load) if exact else 0.0
                if load == np.inf or not reached < best:
                    continue
                best = reached
                hint = k
                value[goal, s] = reached
                if not exact:
                    break
                if goal == everything:
                    limit[0] = min(limit[0], reached)
                highest = min(best, limit[0]) * (1.0 + 1e-9)
            if ready:
                _marked(goal, mark, lattice, False)
        cursor[1] += 1
        cursor[2] = 0
    return True


@njit(cache=True)
def previous(goal, state, exact, lattice, costs, states, value, limit):  # type: ignore[no-untyped-def]
    """A stage that ends at ideal ``goal`` in ``state`` with the value there: where it begins, and its class.

    (-1, -1) where there is none.
    """
    weight, digits, stride = lattice.weight, states.digits, states.stride
    bound = value[goal, state] if exact else limit
    paid = np.zeros((costs.limit.shape[0], len(stride)))
    mark = np.zeros(costs.read_meter.shape[2], dtype=np.int32)
    _marked(goal, mark, lattice, True)
    for base in range(goal - 1, -1, -1):
        if weight[goal] - weight[base] > states.widest:
            break
        for c in range(len(stride)):
            if digits[state, c] == 0 or not value[base, state - stride[c]] <= value[goal, state]:
                continue
            if lattice.blocked[c, goal] != lattice.blocked[c, base]:
                continue
            if not _contained(base, goal, lattice.words, lattice.top):
                continue
            _edges_paid(base, goal, mark, lattice, costs, paid)
            if _load(base, goal, c, lattice, costs, paid, bound) < np.inf:
                return base, c
    return -1, -1
