"""Compiled: the largest load of a plan of which the stages, and not yet their options, are known."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.knapsack_kernel import time_within
from placedsl.algorithms.pipelines.parallel_plans.options import YES, Demand
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent
from placedsl.algorithms.stages.cut_edges_kernel import edge_costs, mark_cuts


@kernel(nogil=True, allocates=True)
def largest_load(pairs, terms, space, stages, bound):  # type: ignore[no-untyped-def]
    """The largest load of some stages, with options that stay within ``bound``; inf where none are found.

    ``stages``: n x 5 the ideals that a stage lies between, the position of its degree, its copies, samples in flight.
    """
    kinds, largest = terms.of_kind.shape[1], 0.0
    paid = np.zeros((pairs.limit.shape[0], len(terms.degree)))
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    count, kinds_there = np.zeros(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
    for i in range(len(stages)):
        base, goal, g, copies = stages[i, 0], stages[i, 1], stages[i, 2], stages[i, 3]
        mark_cuts(pairs, base, mark, True)
        edge_costs(pairs, base, goal, mark, False, paid)
        mark_cuts(pairs, base, mark, False)
        edges, there = max(paid[0, g], 0.0), 0
        for c in range(kinds):
            count[c] = terms.of_kind[goal, c] - terms.of_kind[base, c]
            if count[c]:
                kinds_there[there] = c
                there += 1
        capacity = terms.capacity - (terms.sharded[g, goal] - terms.sharded[g, base]) / copies
        exchange = times_sent(terms.exchange, copies)
        demand = Demand(
            kinds_there[:there], count, g, stages[i, 4], exchange, bound * copies - edges, capacity
        )  # fmt: skip
        answer, time = time_within(terms.table, demand, space)
        if answer != YES:
            return np.inf
        largest = max(largest, (time + edges) / copies)
    return largest
