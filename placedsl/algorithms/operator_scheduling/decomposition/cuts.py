"""The nodes that cut an instance into blocks.

Between two cuts lie the successors of the one that are predecessors of the other.  Work beside a cut is in no block,
and the bound by blocks does not count it.  Cuts with nothing beside them lose nothing.  Others are nodes of a path with
little beside it, chosen so that as much work as possible is in blocks that can be solved.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.decomposition.cuts_kernel import places_along, weight_beside, widest_path
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.arrays import Booleans, Floats, Integers

#: The number of cuts, and of candidates for them: the nodes of the path with the least work beside them.
_MOST = 3000
#: The weight of work in blocks that are too large to be solved.
_LARGE = 0.5
#: A node is worth the more for a path the less work is beside it; so little, as a share of all, is as good as none.
_LITTLE = 1e-5


def exact_cuts(instance: SchedulingInstance) -> Integers:
    """The nodes that all others come before or after, in topological order; of more than 3,000 an even share.

    All later nodes come after one if each of them reads from it or from a later one: the first of them then reads from
    it, and so on.  For earlier nodes it is the same the other way round.
    """
    nodes = instance.nodes
    place = np.empty(nodes, dtype=np.int64)
    place[instance.topological] = np.arange(nodes)
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    source, target = place[instance.producer[tensor]], place[instance.reader]
    latest_read, first_reader = np.full(nodes + 1, -1), np.full(nodes + 1, nodes)
    np.maximum.at(latest_read, target, source)
    np.minimum.at(first_reader, source + 1, target)
    latest_read[nodes], first_reader[0] = nodes, -1  # nothing follows the last, nothing is before the first
    number = np.arange(nodes)
    after = np.minimum.accumulate(latest_read[::-1])[::-1][1:] >= number
    before = np.maximum.accumulate(first_reader)[:-1] <= number
    found = instance.topological[after & before]
    return integers(found[:: max(-(-len(found) // _MOST), 1)])


def not_bypassed(instance: SchedulingInstance, cuts: Integers) -> Integers:
    """Those of the cuts that no tensor bypasses, from a node before the cut to one after it."""
    last, first = places_along(instance, cuts)
    place = np.full(instance.nodes, -1)
    place[cuts] = np.arange(len(cuts))
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    source, target = instance.producer[tensor], instance.reader
    begin = np.where(place[source] >= 0, place[source] + 1, first[source])
    end = np.where(place[target] >= 0, place[target] - 1, last[target])
    long = begin <= end
    change = np.bincount(begin[long], minlength=len(cuts) + 1) - np.bincount(end[long] + 1, minlength=len(cuts) + 1)
    return integers(cuts[np.cumsum(change)[: len(cuts)] == 0])


def beside_blocks(instance: SchedulingInstance, cuts: Integers) -> tuple[Booleans, Integers, Integers]:
    """Flags of the nodes in no block between two of the cuts in a row, and :func:`places_along` them."""
    last, first = places_along(instance, cuts)
    beside = first != last + 1
    beside[cuts] = False
    return beside, last, first


def chosen_cuts(instance: SchedulingInstance, *most: int) -> list[Integers]:
    """Nodes of a path, in its order, such that most of the work is in blocks of at most ``most`` nodes; for each of
    these numbers.
    """
    work = np.where(np.isfinite(instance.time), instance.time, np.inf).min(axis=1)
    beside = weight_beside(instance, work)
    path = widest_path(instance, 1.0 / (np.maximum(beside, 0.0) + _LITTLE * max(float(work.sum()), 1e-300)))
    candidates = path[np.sort(np.argsort(beside[path], kind="stable")[:_MOST])]
    last, first = places_along(instance, candidates)
    return [integers(candidates[_best_chain(work, candidates, last, first, nodes)]) for nodes in most]


def _best_chain(work: Floats, candidates: Integers, last: Integers, first: Integers, most: int) -> Integers:
    """The places of those candidates whose blocks have the largest total value; more cuts on ties.

    The block between candidates i and j has the nodes with ``last`` >= i and ``first`` <= j; its value is its work,
    discounted if it has more than ``most`` nodes.
    """
    count = len(candidates)
    worth = np.zeros(count + 1)  # of the best chain that ends in a candidate, by place + 1; 0: before all
    came = np.zeros(count + 2, dtype=np.int64)
    small = 1e-9 * float(work.sum())
    by_first = np.argsort(first, kind="stable")
    begins = np.searchsorted(first[by_first], np.arange(count + 2))
    inside, nodes = np.zeros(count + 1), np.zeros(count + 1)  # of nodes with first <= j, by last + 1
    for j in range(count + 1):
        new = by_first[begins[j] : begins[j + 1]]
        np.add.at(inside, last[new] + 1, work[new])
        np.add.at(nodes, last[new] + 1, 1.0)
        within, number = (np.cumsum(of[j::-1])[::-1] for of in (inside, nodes))  # between each earlier cut and j
        value = np.where(number <= most, within, _LARGE * within) + worth[: j + 1]
        came[j + 1] = best = int(len(value) - 1 - value[::-1].argmax())
        if j < count:
            worth[j + 1] = value[best] + work[candidates[j]] + small
    chain, at = [], int(came[count + 1])
    while at > 0:
        chain.append(at - 1)
        at = int(came[at])
    return np.array(chain[::-1], dtype=np.int64)
