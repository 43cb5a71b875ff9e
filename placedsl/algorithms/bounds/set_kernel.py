"""The dearest set of units whose load a device can bear: kernels over the layered graph of ``frontier``.

``hulls`` bounds it from above in one backward sweep; ``mixture`` says of which sets that bound is a mixture;
``labels`` finds it by a forward sweep that keeps, for each state, the labels (load, value) that are not dominated
and whose bound exceeds a threshold.  Numba compiles each once and keeps the result on disk.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from placedsl.graph.graph import Booleans, Floats, Integers

NOTHING = -1e300


@njit(cache=True)
def least_loads(
    layers: int, states: int, move_start: Integers, source: Integers, target: Integers, taken: Booleans, cost: Floats,
    work: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """By state the least load of reaching it, and of going on from it to the end (inf: impossible)."""
    before = np.full(states, np.inf)
    after = np.full(states, np.inf)
    before[0] = 0.0
    for i in range(layers):
        for e in range(move_start[i], move_start[i + 1]):
            load = before[source[e]] + cost[e] + (work[i] if taken[e] else 0.0)
            before[target[e]] = min(before[target[e]], load)
    after[states - 1] = 0.0
    for i in range(layers - 1, -1, -1):
        for e in range(move_start[i], move_start[i + 1]):
            load = after[target[e]] + cost[e] + (work[i] if taken[e] else 0.0)
            after[source[e]] = min(after[source[e]], load)
    return before, after


@njit(cache=True)
def hulls(
    layers: int, state_start: Integers, move_start: Integers, source: Integers, target: Integers, taken: Booleans,
    cost: Floats, by_source: Integers, before: Floats, work: Floats, price: Floats, largest: float, load: Floats,
    value: Floats, move: Integers, child: Integers, move2: Integers, child2: Integers, share: Floats, begin: Integers,
    end: Integers,
) -> bool:  # fmt: skip
    """For each state a concave function of the load that remains, no less than the value of any completion.

    A completion whose load would exceed ``largest`` even after the cheapest way to the state is left out, which
    is what makes this stronger than pricing the load.  Vertex y is the completion by ``move[y]`` and then vertex
    ``child[y]``; where the function is cut off it is the mixture of that (1 - share) and ``move2``, ``child2``
    (share).  False: the arrays are too short.
    """
    n = 0
    space = len(load)
    size = 64
    ml, mv, me, my = np.empty(size), np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    ol, ov, oe, oy = np.empty(size), np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    for s in range(state_start[layers], state_start[layers + 1]):
        load[n] = 0.0
        value[n] = 0.0
        begin[s] = n
        n += 1
        end[s] = n
    for i in range(layers - 1, -1, -1):
        x = move_start[i]
        for s in range(state_start[i], state_start[i + 1]):
            k = 0
            room = largest - before[s]
            begin[s] = n
            end[s] = n
            while x < move_start[i + 1] and source[by_source[x]] == s:
                e = by_source[x]
                x += 1
                d = target[e]
                if end[d] == begin[d]:
                    continue
                dl = cost[e]
                dv = 0.0
                if taken[e]:
                    dl += work[i]
                    dv = price[i]
                if load[begin[d]] + dl > room:
                    continue
                need = k + end[d] - begin[d]
                if need > size:
                    size = 2 * need
                    ml, ol = np.concatenate((ml[:k], np.empty(size - k))), np.empty(size)
                    mv, ov = np.concatenate((mv[:k], np.empty(size - k))), np.empty(size)
                    me, oe = np.concatenate((me[:k], np.empty(size - k, np.int64))), np.empty(size, np.int64)
                    my, oy = np.concatenate((my[:k], np.empty(size - k, np.int64))), np.empty(size, np.int64)
                p = 0
                y = begin[d]
                r = 0
                while p < k or y < end[d]:
                    if y >= end[d] or (p < k and ml[p] <= load[y] + dl):
                        ol[r], ov[r], oe[r], oy[r] = ml[p], mv[p], me[p], my[p]
                        p += 1
                    else:
                        ol[r], ov[r], oe[r], oy[r] = load[y] + dl, value[y] + dv, e, y
                        y += 1
                    r += 1
                ml, ol = ol, ml
                mv, ov = ov, mv
                me, oe = oe, me
                my, oy = oy, my
                k = r
            if n + k + 1 > space:
                return False
            b = n
            for p in range(k):
                if n > b and mv[p] <= value[n - 1]:
                    continue
                if n > b and ml[p] <= load[n - 1]:
                    n -= 1
                while n - b >= 2 and (value[n - 1] - value[n - 2]) * (ml[p] - load[n - 1]) <= (mv[p] - value[n - 1]) * (
                    load[n - 1] - load[n - 2]
                ):
                    n -= 1
                load[n] = ml[p]
                value[n] = mv[p]
                move[n] = me[p]
                child[n] = my[p]
                share[n] = 0.0
                n += 1
            while n - b >= 2 and load[n - 2] >= room:
                n -= 1
            if n - b >= 2 and load[n - 1] > room:
                t = (room - load[n - 2]) / (load[n - 1] - load[n - 2])
                value[n - 1] = value[n - 2] + t * (value[n - 1] - value[n - 2])
                load[n - 1] = room
                move2[n - 1] = move[n - 1]
                child2[n - 1] = child[n - 1]
                move[n - 1] = move[n - 2]
                child[n - 1] = child[n - 2]
                share[n - 1] = t
            end[s] = n
    return True


@njit(cache=True)
def mixture(
    layers: int, state_start: Integers, taken: Booleans, begin: Integers, end: Integers, move: Integers,
    child: Integers, move2: Integers, child2: Integers, share: Floats,
) -> Floats:  # fmt: skip
    """By layer how much of the unit is in the mixture of sets that the highest vertex of the first state stands for."""
    weight = np.zeros(end[0])
    out = np.zeros(layers)
    weight[end[0] - 1] = 1.0
    for i in range(layers):
        for s in range(state_start[i], state_start[i + 1]):
            for y in range(begin[s], end[s]):
                if weight[y] > 0.0:
                    one = weight[y] * (1.0 - share[y])
                    weight[child[y]] += one
                    if taken[move[y]]:
                        out[i] += one
                    if share[y] > 0.0:
                        two = weight[y] * share[y]
                        weight[child2[y]] += two
                        if taken[move2[y]]:
                            out[i] += two
    return out


@njit(cache=True)
def labels(
    layers: int, state_start: Integers, move_start: Integers, source: Integers, target: Integers, taken: Booleans,
    cost: Floats, rival_start: Integers, rival: Integers, rival_cost: Floats, work: Floats, price: Floats,
    largest: float, threshold: float, keep: int, hull_load: Floats, hull_value: Floats, begin: Integers, end: Integers,
    load: Floats, value: Floats, parent: Integers, chosen: Booleans, start: Integers,
) -> tuple[int, float]:  # fmt: skip
    """Fill the labels; how many there are (-1: too many), and the best bound among those dropped.

    At most ``keep`` labels a state stay, those with the best bounds.  No set is worth more than the best of
    ``threshold``, the dropped bound and the labels of the last layer.
    """
    space = len(load)
    load[0] = 0.0
    value[0] = 0.0
    parent[0] = -1
    chosen[0] = False
    start[0] = 0
    start[1] = 1
    n = 1
    lost = NOTHING
    for i in range(layers):
        e = move_start[i]
        first = n
        for s in range(state_start[i + 1], state_start[i + 2]):
            ha, hz = begin[s], end[s]
            k = 0
            most = 0
            f = e
            while f < move_start[i + 1] and target[f] == s:
                most += start[source[f] + 1] - start[source[f]]
                f += 1
            bl, bv, bp, bc = np.empty(most), np.empty(most), np.empty(most, np.int64), np.empty(most, np.bool_)
            cl, cv, cp, cc = np.empty(most), np.empty(most), np.empty(most, np.int64), np.empty(most, np.bool_)
            while e < f:
                dl = cost[e]
                dv = 0.0
                if taken[e]:
                    dl += work[i]
                    dv = price[i]
                y, z = start[source[e]], start[source[e] + 1]
                x = 0
                r = 0
                best = NOTHING
                g = hz - 1
                while x < k or (y < z and hz > ha):
                    ll = np.inf
                    vv = NOTHING
                    if y < z:
                        ll = load[y] + dl
                        if hz == ha or ll + hull_load[ha] > largest:
                            y = z
                            continue
                        vv = value[y] + dv
                    if x < k and (y >= z or bl[x] < ll or (bl[x] == ll and bv[x] >= vv)):
                        if bv[x] > best:
                            best = bv[x]
                            cl[r], cv[r], cp[r], cc[r] = bl[x], bv[x], bp[x], bc[x]
                            r += 1
                        x += 1
                    else:
                        if vv > best:
                            room = largest - ll
                            while g > ha and hull_load[g] > room:
                                g -= 1
                            u = vv + hull_value[g]
                            if g < hz - 1:
                                slope = (hull_value[g + 1] - hull_value[g]) / (hull_load[g + 1] - hull_load[g])
                                u += (room - hull_load[g]) * slope
                            if u > threshold:
                                best = vv
                                cl[r], cv[r], cp[r], cc[r] = ll, vv, y, taken[e]
                                r += 1
                        y += 1
                bl, cl = cl, bl
                bv, cv = cv, bv
                bp, cp = cp, bp
                bc, cc = cc, bc
                k = r
                e += 1
            if k > keep:
                u_of = np.empty(k)
                g = hz - 1
                for x in range(k):
                    room = largest - bl[x]
                    while g > ha and hull_load[g] > room:
                        g -= 1
                    u_of[x] = bv[x] + hull_value[g]
                    if g < hz - 1:
                        slope = (hull_value[g + 1] - hull_value[g]) / (hull_load[g + 1] - hull_load[g])
                        u_of[x] += (room - hull_load[g]) * slope
                least = np.sort(u_of)[k - keep]
                r = 0
                for x in range(k):
                    if u_of[x] < least or r >= keep:
                        lost = max(lost, u_of[x])
                    else:
                        bl[r], bv[r], bp[r], bc[r] = bl[x], bv[x], bp[x], bc[x]
                        r += 1
                k = r
            if n + k > space:
                return -1, lost
            for x in range(k):
                load[n] = bl[x]
                value[n] = bv[x]
                parent[n] = bp[x]
                chosen[n] = bc[x]
                n += 1
            start[s + 1] = n
        if rival_start[state_start[i + 2]] > rival_start[state_start[i + 1]]:
            # Drop labels to which one of another state is at least as good, whatever follows.
            stays = np.ones(n - first, np.bool_)
            a = first
            for s in range(state_start[i + 1], state_start[i + 2]):
                z = start[s + 1]
                for d in range(rival_start[s], rival_start[s + 1]):
                    o = rival[d]
                    x = first if o == state_start[i + 1] else start[o]
                    xz = start[o + 1]
                    best = NOTHING
                    for y in range(a, z):
                        while x < xz and load[x] <= load[y] - rival_cost[d]:
                            best = value[x]
                            x += 1
                        if best >= value[y]:
                            stays[y - first] = False
                a = z
            a = first
            n = first
            for s in range(state_start[i + 1], state_start[i + 2]):
                z = start[s + 1]
                for y in range(a, z):
                    if stays[y - first]:
                        load[n], value[n], parent[n], chosen[n] = load[y], value[y], parent[y], chosen[y]
                        n += 1
                a = z
                start[s + 1] = n
    return n, lost
