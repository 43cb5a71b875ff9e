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
    ``widest``  the weight that one device can take at most
    """

    digits: Integers
    stride: Integers
    total: Integers
    takes: Integers
    room: Floats
    widest: int


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
def _edges_paid(  # type: ignore[no-untyped-def]
    small, large, mark, cut_start, cut_edge, cut_code, from_none, to_all, meter, kind, read_meter, make_meter, paid
):
    """What the stage pays for edges on the pairs of meter and class where there is something to pay: ``paid[m, c]``."""
    pairs = len(meter)
    for k in range(pairs):
        q, c = meter[k], kind[k]
        paid[q, c] = from_none[q, c, large] + to_all[q, c, small]
    for j in range(cut_start[large], cut_start[large + 1]):
        e = cut_edge[j]
        before = mark[e]
        if before == 0:
            continue
        after = cut_code[j]
        made = (after & 1) != 0 and (before & 1) == 0
        some = after != before
        for k in range(pairs):
            q, c = meter[k], kind[k]
            read, make = read_meter[q, c, e], make_meter[q, c, e]
            change = -(make if after & 1 else read) - (read if before & 1 else make)
            if some:
                change += make if made else read
            paid[q, c] += change


@njit(cache=True)
def _load(small, large, c, unit_sum, limit, loads, paid, bound):  # type: ignore[no-untyped-def]
    """The largest load of the stage on a device of class c; inf where it is not allowed or above ``bound``."""
    largest = 0.0
    for q in range(limit.shape[0]):
        reading = unit_sum[q, c, large] - unit_sum[q, c, small] + paid[q, c]
        if reading > limit[q, c] or (q < loads and reading > bound):
            return np.inf
        if q < loads:
            largest = max(largest, reading)
    return largest


@njit(cache=True)
def _at_least(small, large, c, unit_sum, from_none, even, limit, loads, bound):  # type: ignore[no-untyped-def]
    """A load that the stage exceeds, from its units and the cuts by themselves; inf where it is not allowed."""
    largest = 0.0
    for q in range(limit.shape[0]):
        reading = unit_sum[q, c, large] - unit_sum[q, c, small]
        if even[q, c]:
            reading += abs(from_none[q, c, large] - from_none[q, c, small])
        reading *= 1.0 - 1e-9
        if reading > limit[q, c] or (q < loads and reading > bound):
            return np.inf
        if q < loads:
            largest = max(largest, reading)
    return largest


@njit(cache=True)
def extend(first, last, exact, lattice, costs, states, value, limit, seen):  # type: ignore[no-untyped-def]
    """Extend ideals ``first`` to ``last - 1`` by every stage that one device can take.

    ``value[i, s]``: the least largest load of a chain from nothing to ideal i by the devices of state s; where not
    ``exact``, 0 for whatever stays within the limit.  ``limit[0]``: the largest load of interest; falls where exact.
    ``seen``: ideals that were extended, pairs looked at, pairs of subsets, pairs evaluated.
    """
    weight, words, top, unit_sum, blocked, memory, cut_start, cut_edge, cut_code, from_none, to_all = lattice
    meter, kind, even, read_meter, make_meter, limits, loads = costs
    digits, stride, count, takes, room, widest = states
    everything = len(weight) - 1
    total, whole = weight[everything], memory[everything]
    classes = len(stride)
    paid = np.zeros((limits.shape[0], classes))
    mark = np.zeros(read_meter.shape[2], dtype=np.int32)
    # A way on from an ideal: the state it has, the class of the next device, and the state with that device.
    most = len(takes) * classes
    way_value, way_class, way_into = np.zeros(most), np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    way_weight = np.zeros(most, dtype=np.int64)
    words_here = np.zeros(words.shape[0], dtype=np.uint64)
    for base in range(first, last):
        if base == everything:
            continue
        ways = 0
        lightest = np.int64(2**62)
        for s in range(len(takes)):
            here = value[base, s]
            if here == np.inf or here > limit[0]:
                continue
            if total - weight[base] > takes[s] or whole - memory[base] > room[s]:
                continue
            useful = True
            for c in range(classes):
                if digits[s, c] and value[base, s - stride[c]] <= here:
                    useful = False  # as good with a device less
                    break
            if not useful:
                continue
            for c in range(classes):
                if digits[s, c] < count[c]:
                    way_value[ways], way_class[ways], way_into[ways] = here, c, s + stride[c]
                    way_weight[ways] = total - takes[s + stride[c]]
                    lightest = min(lightest, way_weight[ways])
                    ways += 1
        if ways == 0:
            continue
        seen[0] += 1
        begin, end = base + 1, everything + 1
        while begin < end:
            middle = (begin + end) >> 1
            if weight[middle] < lightest:
                begin = middle + 1
            else:
                end = middle
        for j in range(cut_start[base], cut_start[base + 1]):
            mark[cut_edge[j]] = cut_code[j]
        for w in range(len(words_here)):
            words_here[w] = words[w, base]
        reach = weight[base] + widest
        for goal in range(begin, everything + 1):
            if weight[goal] > reach:
                break
            seen[1] += 1
            better = False
            for i in range(ways):
                if way_value[i] < value[goal, way_into[i]] and weight[goal] >= way_weight[i]:
                    better = True
                    break
            if not better:
                continue
            inside = True
            for w in range(len(words_here)):
                if ((words[w, goal] | top) - words_here[w]) & top != top:
                    inside = False
                    break
            if not inside:
                continue
            seen[2] += 1
            ready = False
            for c in range(classes):
                if blocked[c, goal] != blocked[c, base]:
                    continue
                least = _at_least(base, goal, c, unit_sum, from_none, even, limits, loads, limit[0])
                if least == np.inf:
                    continue
                better = False
                for i in range(ways):
                    if way_class[i] != c or weight[goal] < way_weight[i]:
                        continue
                    if (max(way_value[i], least) if exact else 0.0) < value[goal, way_into[i]]:
                        better = True
                        break
                if not better:
                    continue
                if not ready:
                    seen[3] += 1
                    ready = True
                    _edges_paid(base, goal, mark, cut_start, cut_edge, cut_code, from_none, to_all, meter, kind,
                                read_meter, make_meter, paid)  # fmt: skip
                load = _load(base, goal, c, unit_sum, limits, loads, paid, limit[0])
                if load == np.inf:
                    continue
                for i in range(ways):
                    if way_class[i] == c and weight[goal] >= way_weight[i]:
                        reached = max(way_value[i], load) if exact else 0.0
                        if reached < value[goal, way_into[i]]:
                            value[goal, way_into[i]] = reached
                            if goal == everything and exact and reached < limit[0]:
                                limit[0] = reached
        for j in range(cut_start[base], cut_start[base + 1]):
            mark[cut_edge[j]] = 0


@njit(cache=True)
def previous(goal, state, exact, lattice, costs, states, value, limit):  # type: ignore[no-untyped-def]
    """A stage that ends at ideal ``goal`` in ``state`` with the value there: where it begins, and its class.

    (-1, -1) where there is none.
    """
    weight, words, top, unit_sum, blocked, _, cut_start, cut_edge, cut_code, from_none, to_all = lattice
    meter, kind, _, read_meter, make_meter, limits, loads = costs
    digits, stride, _, _, _, widest = states
    bound = value[goal, state] if exact else limit
    paid = np.zeros((limits.shape[0], len(stride)))
    mark = np.zeros(read_meter.shape[2], dtype=np.int32)
    for base in range(goal - 1, -1, -1):
        if weight[goal] - weight[base] > widest:
            break
        for c in range(len(stride)):
            if digits[state, c] == 0 or value[base, state - stride[c]] > value[goal, state]:
                continue
            if blocked[c, goal] != blocked[c, base] or not _contained(base, goal, words, top):
                continue
            for j in range(cut_start[base], cut_start[base + 1]):
                mark[cut_edge[j]] = cut_code[j]
            _edges_paid(base, goal, mark, cut_start, cut_edge, cut_code, from_none, to_all, meter, kind, read_meter,
                        make_meter, paid)  # fmt: skip
            for j in range(cut_start[base], cut_start[base + 1]):
                mark[cut_edge[j]] = 0
            if _load(base, goal, c, unit_sum, limits, loads, paid, bound) < np.inf:
                return base, c
    return -1, -1
