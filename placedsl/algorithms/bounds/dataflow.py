"""Proven lower bounds on the latency under schedule dataflow.

From quick to strong: the longest path at each node's best device, tensors moved where a node is supported elsewhere
only; the blocks between nodes of a path, each solved for all pairs of devices of its ends; between two rounds of those
a linear program of work, memory and paths together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from placedsl.algorithms.dataflow.arrays import Flow, flow_of
from placedsl.algorithms.dataflow.block_solving import RUNS, improver
from placedsl.algorithms.dataflow.blocks import Chain, chain_of, refined
from placedsl.algorithms.dataflow.kernel import Order
from placedsl.algorithms.dataflow.relaxation import relaxed_latency
from placedsl.algorithms.dataflow.relaxed_kernel import heads
from placedsl.problem import Problem

#: Up to so many nodes times devices the linear program is tried, for so many seconds at most.
_MOST_SHARES, _SECONDS = 12_000, 60.0
#: Up to so many nodes blocks are looked for; how often each is worked on for one pair of devices, before the linear
#: program and in all.
_MOST_NODES, _FIRST_ROUNDS, _ROUNDS = 10_000, 3, 9
#: A block of more nodes is hardly solved: then cuts count that work lies beside.
_LARGE = 120
#: Two bounds that are closer than this are one.
_SAME = 1e-9


def dataflow_bounds(
    problem: Problem, *, upper: Callable[[], float], deadline: float | None, stop: Callable[[], bool]
) -> Iterator[float]:
    """Ever better bounds for a problem that the search knows; inf where nothing is feasible."""
    for bound, _ in bounds_and_orders(flow_of(problem), upper=upper, deadline=deadline, stop=stop):
        yield bound


def bounds_and_orders(
    flow: Flow,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    seed: int = 0,
) -> Iterator[tuple[float, Order | None]]:
    """The same for arrays, with schedules that come about on the way (they need not heed memory).

    ``deadline``: ``time.monotonic()``, None for none.
    """
    if not flow.nodes:
        yield 0.0, None
        return
    best = float(heads(flow).min(axis=1).max())
    yield best, None

    def done() -> bool:
        late = deadline is not None and time.monotonic() >= deadline
        return best >= upper() * (1.0 - _SAME) or stop() or late

    chain: Chain | None = None
    if not done() and flow.nodes <= _MOST_NODES:
        chain = chain_of(flow)
        if max(len(block.nodes) for block in chain.blocks) > _LARGE:
            chain = chain_of(flow, _LARGE)
        best = max(best, chain.bound())
        yield best, None
    for rounds in (_FIRST_ROUNDS, _ROUNDS):
        if chain is not None and not done():
            for bound, order in refined(chain, improver(flow, seed, runs=RUNS if chain.whole else 1), upper, rounds):
                if bound > best or order is not None:
                    best = max(best, bound)
                    yield best, order
                if done():
                    return
        if rounds == _FIRST_ROUNDS and not done() and flow.nodes * flow.devices <= _MOST_SHARES:
            for pairs in (False, True):
                left = _SECONDS if deadline is None else min(_SECONDS, deadline - time.monotonic())
                best = max(best, relaxed_latency(flow, max(left, 0.1), pairs=pairs))
                yield best, None
