"""Compiled: the layered graph of the sets of units that a device can bear, as arrays, and least loads in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Floats, Integers


class StateGraph(NamedTuple):
    """The layered graph of one device class: n layers of moves between n + 1 layers of states, s states in all.

    ``order``          n: the unit of each layer
    ``work``           n seconds by layer
    ``state_start``    n + 2 offsets: the states of layer i are ``state_start[i]:state_start[i + 1]``
    ``move_start``     n + 1 offsets into the moves, which are sorted by layer and target state
    ``source``, ``target``, ``taken``, ``cost``  of each move: its states, whether the unit is in the set, and the
                       seconds of the hyperedges that it cuts
    ``by_source``      the moves of each layer, sorted by source state
    ``before``, ``after``  s: the least load of reaching a state, and of going on from it to the end
    ``dominating_start``, ``dominating_state``, ``dominating_cost``  by state: other states of its layer from which
                       every completion costs at most ``dominating_cost`` seconds more
    """

    order: Integers
    work: Floats
    state_start: Integers
    move_start: Integers
    source: Integers
    target: Integers
    taken: Booleans
    cost: Floats
    by_source: Integers
    before: Floats
    after: Floats
    dominating_start: Integers
    dominating_state: Integers
    dominating_cost: Floats


@kernel(allocates=True)
def least_loads(
    layers: int, states: int, move_start: Integers, source: Integers, target: Integers, taken: Booleans, cost: Floats,
    work: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """The least load of reaching each state, and of going on from it to the end (s each; inf: impossible)."""
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
