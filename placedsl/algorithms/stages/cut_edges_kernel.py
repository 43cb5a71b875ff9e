"""Compiled: the cost of the stage between two ideals, from sums over units and from the edges that the ideals cut.

For a stage J \\ I, sums over units are differences of prefix sums.  An edge that only one of I and J cuts is paid once.
An edge that both cut is paid once if the stage holds part of it, and not at all otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Floats, Integers, Integers32


class CutEdges(NamedTuple):
    """The edges that each of K ideals cuts.

    Ideal i cuts ``edge[start[i]:start[i + 1]]``; ``code`` is the part of each that lies inside the ideal: 1 for the
    producer + 2 for each reader.
    """

    start: Integers
    edge: Integers32
    code: Integers32


class StagePairs(NamedTuple):
    """K ideals by weight, a subset before its supersets; the stages between them.

    m cost components, c classes, e edges, W words per ideal.

    ``weight``      K whole numbers that grow with the ideal
    ``words``       W x K positions packed into lanes whose highest bit, set in ``top``, is free
    ``unit_sum``    m x c x K sums of the unit costs;  ``unsupported``  c x K how many units the class does not support
    ``cuts``        the edges that each ideal cuts
    ``own``         m x c x K edge costs of the ideal itself;  ``rest``  the same for its complement
    ``component``, ``kind``   the pairs of component and class for which some edge costs something
    ``even``        m x c: input and output cost of every edge are equal
    ``per_byte``, ``room``   c: a stage streams each byte of the last component beyond its room, in its first load
    ``input_cost``, ``output_cost``, ``limit``, ``loads``   as in
                    :class:`placedsl.algorithms.stages.stage_costs.StageCostModel`
    """

    weight: Integers
    words: NDArray[np.uint64]
    top: np.uint64
    unit_sum: Floats
    unsupported: Integers
    cuts: CutEdges
    own: Floats
    rest: Floats
    component: Integers
    kind: Integers
    even: Booleans
    input_cost: Floats
    output_cost: Floats
    limit: Floats
    loads: int
    per_byte: Floats
    room: Floats


@kernel(allocates=True)
def cut_edges(
    positions: NDArray[np.unsignedinteger], unit_start: Integers, unit: Integers, touch_start: Integers,
    touched: Integers32, role: Integers32, readers: Integers32,
) -> CutEdges:  # fmt: skip
    """The edges that each ideal cuts; ``positions`` is K x chains.  Quick where neighbouring ideals differ little."""
    ideals, chains = positions.shape
    inside = np.zeros(len(readers), dtype=np.int32)
    place = np.full(len(readers), -1, dtype=np.int32)
    active = np.empty(len(readers), dtype=np.int32)
    count, used = 0, 0
    at = np.zeros(chains, dtype=np.int64)
    start = np.zeros(ideals + 1, dtype=np.int64)
    allocated = 16 * ideals + 1024
    edge = np.empty(allocated, dtype=np.int32)
    code = np.empty(allocated, dtype=np.int32)
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
        if used + count > allocated:
            allocated = 2 * (allocated + count)
            longer = np.empty(allocated, dtype=np.int32)
            longer[:used] = edge[:used]
            edge = longer
            longer = np.empty(allocated, dtype=np.int32)
            longer[:used] = code[:used]
            code = longer
        for j in range(count):
            edge[used] = active[j]
            code[used] = inside[active[j]]
            used += 1
        start[i + 1] = used
    return CutEdges(start, edge[:used], code[:used])


@kernel(allocates=True)
def cut_costs(cuts: CutEdges, input_cost: Floats, output_cost: Floats) -> tuple[Floats, Floats]:
    """The edge costs of each ideal, and those of its complement: both m x c x K."""
    components, classes = input_cost.shape[:2]
    ideals = len(cuts.start) - 1
    own = np.zeros((components, classes, ideals))
    rest = np.zeros((components, classes, ideals))
    for i in range(ideals):
        for j in range(cuts.start[i], cuts.start[i + 1]):
            e = cuts.edge[j]
            made = cuts.code[j] & 1
            for q in range(components):
                for c in range(classes):
                    own[q, c, i] += output_cost[q, c, e] if made else input_cost[q, c, e]
                    rest[q, c, i] += input_cost[q, c, e] if made else output_cost[q, c, e]
    return own, rest


@kernel(nogil=True, no_cpython_wrapper=True)
def contained(pairs: StagePairs, small: int, large: int) -> bool:
    """Whether one ideal is a subset of the other."""
    for w in range(pairs.words.shape[0]):
        if ((pairs.words[w, large] | pairs.top) - pairs.words[w, small]) & pairs.top != pairs.top:
            return False
    return True


@kernel(nogil=True, no_cpython_wrapper=True)
def mark_cuts(pairs: StagePairs, ideal: int, mark: Integers32, on: bool) -> None:
    """Write into ``mark`` (e entries) the code of each edge that the ideal cuts, or 0 again."""
    cuts = pairs.cuts
    for j in range(cuts.start[ideal], cuts.start[ideal + 1]):
        mark[cuts.edge[j]] = cuts.code[j] if on else 0


@kernel(nogil=True)
def edge_costs(pairs: StagePairs, small: int, large: int, mark: Integers32, large_marked: bool, paid: Floats) -> None:
    """The edge costs of the stage into ``paid[m, c]``, for the pairs of component and class that have any.

    One of the two ideals has been marked: ``large_marked`` says which.  The edges of the other are walked over.
    """
    cuts, count = pairs.cuts, len(pairs.component)
    for k in range(count):
        q, c = pairs.component[k], pairs.kind[k]
        paid[q, c] = pairs.own[q, c, large] + pairs.rest[q, c, small]
    other = small if large_marked else large
    for j in range(cuts.start[other], cuts.start[other + 1]):
        e = cuts.edge[j]
        marked = mark[e]
        if marked == 0:
            continue
        before, after = (cuts.code[j], marked) if large_marked else (marked, cuts.code[j])
        made = (after & 1) != 0 and (before & 1) == 0
        some = after != before
        for k in range(count):
            q, c = pairs.component[k], pairs.kind[k]
            read, make = pairs.input_cost[q, c, e], pairs.output_cost[q, c, e]
            change = -(make if after & 1 else read) - (read if before & 1 else make)
            if some:
                change += make if made else read
            paid[q, c] += change


@kernel(nogil=True, allocates=True)
def all_stages(pairs, inside, edges):  # type: ignore[no-untyped-def]
    """Fill in which ideals lie in which, and what the stages between them read and send."""
    count = len(pairs.weight)
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    paid = np.zeros((pairs.limit.shape[0], edges.shape[2]))
    for base in range(count):
        inside[base, base] = True
        mark_cuts(pairs, base, mark, True)
        for goal in range(base + 1, count):
            if contained(pairs, base, goal):
                inside[base, goal] = True
                edge_costs(pairs, base, goal, mark, False, paid)
                for k in range(edges.shape[2]):
                    edges[base, goal, k] = max(paid[0, k], 0.0)
        mark_cuts(pairs, base, mark, False)


@kernel(nogil=True, no_cpython_wrapper=True)
def streamed(pairs: StagePairs, small: int, large: int, c: int) -> float:
    """How long the stage streams on one device of class c what does not fit: sums of whole bytes are exact."""
    if pairs.per_byte[c] == 0.0:
        return 0.0
    memory = pairs.limit.shape[0] - 1
    beyond = pairs.unit_sum[memory, c, large] - pairs.unit_sum[memory, c, small] - pairs.room[c]
    out: float = max(beyond, 0.0) * pairs.per_byte[c]
    return out


@kernel(nogil=True)
def largest_load(pairs: StagePairs, small: int, large: int, c: int, paid: Floats, bound: float) -> float:
    """The largest load of the stage on one device of class c; inf where that is above ``bound`` or not allowed."""
    largest = 0.0
    for q in range(pairs.limit.shape[0]):
        cost = pairs.unit_sum[q, c, large] - pairs.unit_sum[q, c, small] + paid[q, c]
        if q == 0:
            cost += streamed(pairs, small, large, c)
        if cost > pairs.limit[q, c] or (q < pairs.loads and cost > bound):
            return np.inf
        if q < pairs.loads:
            largest = max(largest, cost)
    return largest


@kernel(nogil=True, no_cpython_wrapper=True)
def least_load(pairs: StagePairs, small: int, large: int, c: int, bound: float) -> float:
    """A lower bound on that load, from the units and from the two ideals' own cuts."""
    largest = 0.0
    for q in range(pairs.limit.shape[0]):
        cost = pairs.unit_sum[q, c, large] - pairs.unit_sum[q, c, small]
        if pairs.even[q, c]:
            cost += abs(pairs.own[q, c, large] - pairs.own[q, c, small])
        if q == 0:
            cost += streamed(pairs, small, large, c)
        cost *= 1.0 - 1e-9
        if cost > pairs.limit[q, c] or (q < pairs.loads and cost > bound):
            return np.inf
        if q < pairs.loads:
            largest = max(largest, cost)
    return largest
