"""Compiled: the most valuable set of units whose load a device can bear, over the layered graph of ``state_graph``.

:func:`concave_envelopes` bounds the value from above by one backward sweep; :func:`decompose` gives the convex
combination of sets that attains that bound; :func:`label_setting` finds the best set by a forward sweep that keeps, for
each state, the labels (load, value) that are not dominated and whose bound exceeds a threshold.  Where there are too
many, labels of nearly the same value are joined to the one with the least load, which carries the most that the others
are worth more: the sets found are real ones, and what is carried makes their value an upper bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.partitions.bounds.state_graph_kernel import StateGraph
from placedsl.arrays import Booleans, Floats, Integers

#: Less than any value.
NOTHING = -1e300


class Envelopes(NamedTuple):
    """For each state a concave piecewise linear function of the remaining load, by its vertices (m in all).

    ``load``, ``value``   m: a vertex, by ascending load and value
    ``move``, ``child``   m: the vertex is the completion by this move and then by vertex ``child``
    ``second_move``, ``second_child``, ``share``   m: where the function is cut off at the largest load, the vertex is a
                          combination: ``1 - share`` of the first completion and ``share`` of the second
    ``begin``, ``end``    s: the vertices of each state
    """

    load: Floats
    value: Floats
    move: Integers
    child: Integers
    second_move: Integers
    second_child: Integers
    share: Floats
    begin: Integers
    end: Integers


class Labels(NamedTuple):
    """Sets of the units so far, m at most, those of one state by ascending load and value.

    ``load`` seconds; ``value``; ``slack``: no set that was joined to it is worth more than that in addition, whatever
    follows; ``parent``: the label it extends; ``taken``: whether the last unit is in the set.
    ``start``   s + 1 offsets: the labels of each state
    """

    load: Floats
    value: Floats
    slack: Floats
    parent: Integers
    taken: Booleans
    start: Integers


# Longer than 80 lines: helper functions on parts of the named tuples make the loops two to four times slower.
@kernel(allocates=True)
def concave_envelopes(graph: StateGraph, price: Floats, largest: float, envelopes: Envelopes) -> bool:
    """Fill the envelopes: at each state no completion is worth more than its envelope at the completion's load.

    ``price`` n by layer; ``largest`` seconds.  Completions whose load would exceed ``largest`` even after the cheapest
    path to the state are left out, which makes this bound stronger than a price on the load.  Returns False if the
    arrays are too short.
    """
    _, work, state_start, move_start, source, target, taken, cost, by_source, before, _, _, _, _ = graph
    load, value, move, child, second_move, second_child, share, begin, end = envelopes
    layers = len(work)
    count = 0
    space = len(load)
    size = 64
    current_load, current_value, current_move, current_child = (
        np.empty(size),
        np.empty(size),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    merged_load, merged_value, merged_move, merged_child = (
        np.empty(size),
        np.empty(size),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    for s in range(state_start[layers], state_start[layers + 1]):
        load[count] = 0.0
        value[count] = 0.0
        begin[s] = count
        count += 1
        end[s] = count
    for i in range(layers - 1, -1, -1):
        x = move_start[i]
        for s in range(state_start[i], state_start[i + 1]):
            number = 0
            load_left = largest - before[s]
            begin[s] = count
            end[s] = count
            while x < move_start[i + 1] and source[by_source[x]] == s:
                e = by_source[x]
                x += 1
                successor = target[e]
                if end[successor] == begin[successor]:
                    continue
                added_load = cost[e]
                added_value = 0.0
                if taken[e]:
                    added_load += work[i]
                    added_value = price[i]
                if load[begin[successor]] + added_load > load_left:
                    continue
                need = number + end[successor] - begin[successor]
                if need > size:
                    size = 2 * need
                    current_load, merged_load = (
                        np.concatenate((current_load[:number], np.empty(size - number))),
                        np.empty(size),
                    )
                    current_value, merged_value = (
                        np.concatenate((current_value[:number], np.empty(size - number))),
                        np.empty(size),
                    )
                    current_move, merged_move = (
                        np.concatenate((current_move[:number], np.empty(size - number, np.int64))),
                        np.empty(size, np.int64),
                    )
                    current_child, merged_child = (
                        np.concatenate((current_child[:number], np.empty(size - number, np.int64))),
                        np.empty(size, np.int64),
                    )
                p = 0
                y = begin[successor]
                r = 0
                while p < number or y < end[successor]:
                    if y >= end[successor] or (p < number and current_load[p] <= load[y] + added_load):
                        merged_load[r], merged_value[r], merged_move[r], merged_child[r] = (
                            current_load[p],
                            current_value[p],
                            current_move[p],
                            current_child[p],
                        )
                        p += 1
                    else:
                        merged_load[r], merged_value[r], merged_move[r], merged_child[r] = (
                            load[y] + added_load,
                            value[y] + added_value,
                            e,
                            y,
                        )
                        y += 1
                    r += 1
                current_load, merged_load = merged_load, current_load
                current_value, merged_value = merged_value, current_value
                current_move, merged_move = merged_move, current_move
                current_child, merged_child = merged_child, current_child
                number = r
            if count + number + 1 > space:
                return False
            first = count
            for p in range(number):
                if count > first and current_value[p] <= value[count - 1]:
                    continue
                if count > first and current_load[p] <= load[count - 1]:
                    count -= 1
                while count - first >= 2 and (value[count - 1] - value[count - 2]) * (
                    current_load[p] - load[count - 1]
                ) <= (current_value[p] - value[count - 1]) * (load[count - 1] - load[count - 2]):
                    count -= 1
                load[count] = current_load[p]
                value[count] = current_value[p]
                move[count] = current_move[p]
                child[count] = current_child[p]
                share[count] = 0.0
                count += 1
            while count - first >= 2 and load[count - 2] >= load_left:
                count -= 1
            if count - first >= 2 and load[count - 1] > load_left:
                portion = (load_left - load[count - 2]) / (load[count - 1] - load[count - 2])
                value[count - 1] = value[count - 2] + portion * (value[count - 1] - value[count - 2])
                load[count - 1] = load_left
                second_move[count - 1] = move[count - 1]
                second_child[count - 1] = child[count - 1]
                move[count - 1] = move[count - 2]
                child[count - 1] = child[count - 2]
                share[count - 1] = portion
            end[s] = count
    return True


@kernel(allocates=True)
def decompose(graph: StateGraph, envelopes: Envelopes) -> Floats:
    """n by layer: the share of each unit in the combination of sets that attains the bound of the first state."""
    begin, end = envelopes.begin, envelopes.end
    weight = np.zeros(end[0])
    out = np.zeros(len(graph.order))
    weight[end[0] - 1] = 1.0
    for i in range(len(graph.order)):
        for s in range(graph.state_start[i], graph.state_start[i + 1]):
            for y in range(begin[s], end[s]):
                if weight[y] > 0.0:
                    one = weight[y] * (1.0 - envelopes.share[y])
                    weight[envelopes.child[y]] += one
                    if graph.taken[envelopes.move[y]]:
                        out[i] += one
                    if envelopes.share[y] > 0.0:
                        two = weight[y] * envelopes.share[y]
                        weight[envelopes.second_child[y]] += two
                        if graph.taken[envelopes.second_move[y]]:
                            out[i] += two
    return out


# Longer than 80 lines: as ``concave_envelopes``.
@kernel(allocates=True)
def label_setting(
    graph: StateGraph, envelopes: Envelopes, labels: Labels, price: Floats, largest: float, threshold: float, keep: int
) -> int:
    """Fill the labels; returns their number (-1: no space for all).

    ``price`` n by layer; ``largest`` seconds.  About ``keep`` labels per state stay.  No set is worth more than the
    largest of ``threshold`` and value and slack together of a label of the last layer.
    """
    _, work, state_start, move_start, source, target, taken, cost, _, _, _ = graph[:11]
    dominating_start = graph.dominating_start
    envelope_load, envelope_value, _, _, _, _, _, begin, end = envelopes
    load, value, slack, parent, taken_last, start = labels
    layers = len(work)
    space = len(load)
    load[0] = 0.0
    value[0] = 0.0
    slack[0] = 0.0
    parent[0] = -1
    taken_last[0] = False
    start[0] = 0
    start[1] = 1
    count = 1
    for i in range(layers):
        e = move_start[i]
        first = count
        for s in range(state_start[i + 1], state_start[i + 2]):
            low, high = begin[s], end[s]
            number = 0
            most = 0
            last = e
            while last < move_start[i + 1] and target[last] == s:
                most += start[source[last] + 1] - start[source[last]]
                last += 1
            current, merged = np.empty((3, most)), np.empty((3, most))
            current_parent, merged_parent = np.empty(most, np.int64), np.empty(most, np.int64)
            current_taken, merged_taken = np.empty(most, np.bool_), np.empty(most, np.bool_)
            while e < last:
                added_load = cost[e]
                added_value = 0.0
                if taken[e]:
                    added_load += work[i]
                    added_value = price[i]
                y, z = start[source[e]], start[source[e] + 1]
                x = 0
                r = 0
                best = NOTHING
                g = high - 1
                while x < number or (y < z and high > low):
                    new_load = np.inf
                    new_value = NOTHING
                    if y < z:
                        new_load = load[y] + added_load
                        if high == low or new_load + envelope_load[low] > largest:
                            y = z
                            continue
                        new_value = value[y] + added_value
                    if x < number and (
                        y >= z or current[0, x] < new_load or (current[0, x] == new_load and current[1, x] >= new_value)
                    ):
                        if current[1, x] > best:
                            best = current[1, x]
                            merged[0, r], merged[1, r], merged[2, r] = current[0, x], best, current[2, x]
                            merged_parent[r], merged_taken[r] = current_parent[x], current_taken[x]
                            r += 1
                        else:
                            merged[2, r - 1] = max(merged[2, r - 1], current[1, x] + current[2, x] - best)
                        x += 1
                    else:
                        most_value = new_value + slack[y]
                        if most_value > best:
                            load_left = largest - new_load
                            while g > low and envelope_load[g] > load_left:
                                g -= 1
                            bound = most_value + envelope_value[g]
                            if g < high - 1:
                                slope = (envelope_value[g + 1] - envelope_value[g]) / (
                                    envelope_load[g + 1] - envelope_load[g]
                                )
                                bound += (load_left - envelope_load[g]) * slope
                            if bound > threshold:
                                if new_value > best:
                                    best = new_value
                                    merged[0, r], merged[1, r], merged[2, r] = new_load, new_value, slack[y]
                                    merged_parent[r], merged_taken[r] = y, taken[e]
                                    r += 1
                                else:
                                    merged[2, r - 1] = max(merged[2, r - 1], most_value - best)
                        y += 1
                current, merged = merged, current
                current_parent, merged_parent = merged_parent, current_parent
                current_taken, merged_taken = merged_taken, current_taken
                number = r
                e += 1
            if number > keep:
                near = (current[1, number - 1] - current[1, 0]) / keep
                r = 0
                for x in range(1, number):
                    if current[1, x] - current[1, r] <= near:
                        current[2, r] = max(current[2, r], current[1, x] + current[2, x] - current[1, r])
                    else:
                        r += 1
                        current[0, r], current[1, r], current[2, r] = current[0, x], current[1, x], current[2, x]
                        current_parent[r], current_taken[r] = current_parent[x], current_taken[x]
                number = r + 1
            if count + number > space:
                return -1
            for x in range(number):
                load[count], value[count], slack[count] = current[0, x], current[1, x], current[2, x]
                parent[count] = current_parent[x]
                taken_last[count] = current_taken[x]
                count += 1
            start[s + 1] = count
        if dominating_start[state_start[i + 2]] > dominating_start[state_start[i + 1]]:
            count = _drop_dominated(graph, labels, i + 1, first, count)
    return count


@kernel(no_cpython_wrapper=True, allocates=True)
def _drop_dominated(graph: StateGraph, labels: Labels, layer: int, first: int, count: int) -> int:
    """Drop the labels of a layer (from ``first`` on) that one of another state dominates whatever follows."""
    state_start, dominating_start = graph.state_start, graph.dominating_start
    dominating_state, dominating_cost = graph.dominating_state, graph.dominating_cost
    load, value, slack, parent, taken_last, start = labels
    stays = np.ones(count - first, np.bool_)
    a = first
    for s in range(state_start[layer], state_start[layer + 1]):
        z = start[s + 1]
        for d in range(dominating_start[s], dominating_start[s + 1]):
            other, cost = dominating_state[d], dominating_cost[d]
            x = first if other == state_start[layer] else start[other]
            other_end, best = start[other + 1], NOTHING
            for y in range(a, z):
                while x < other_end and load[x] <= load[y] - cost:
                    best = value[x]
                    x += 1
                if best >= value[y] + slack[y]:
                    stays[y - first] = False
        a = z
    a = first
    count = first
    for s in range(state_start[layer], state_start[layer + 1]):
        z = start[s + 1]
        for y in range(a, z):
            if stays[y - first]:
                load[count], value[count], slack[count] = load[y], value[y], slack[y]
                parent[count], taken_last[count] = parent[y], taken_last[y]
                count += 1
        a = z
        start[s + 1] = count
    return count
