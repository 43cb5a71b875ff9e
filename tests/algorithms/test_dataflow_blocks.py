"""Blocks between nodes that all others come before or after: schedules of them are schedules of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from flows import sample

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.block_solving import improver
from placedsl.algorithms.dataflow.blocks import absorb, assembled, chain_of, refined
from placedsl.algorithms.dataflow.kernel import schedule
from placedsl.algorithms.dataflow.starts import starts


def diamonds(seed: int, number: int, wide: int) -> Flow:
    """Diamonds one after the other, each of ``wide`` nodes between two."""
    nodes = number * (wide + 1) + 1
    case = sample(seed, nodes=nodes, devices=3, congestion={"port"} if seed % 2 else set(), sequential=True)
    rng = np.random.default_rng(seed)
    case.time, case.memory, case.room = (
        rng.integers(1, 9, (nodes, 3)).astype(float),
        np.zeros(nodes),
        np.full(3, np.inf),
    )
    case.producer, case.reads, case.groups = list(range(nodes - 1)), [], []
    for first in range(0, nodes - 1, wide + 1):
        for v in range(first + 1, first + wide + 1):
            case.reads += [(first, v), (v, first + wide + 1)]
    given = rng.integers(1, 6, (nodes - 1, 3, 3)) * (1.0 - np.eye(3))
    case.moves = type(case.moves)(**{**vars(case.moves), "given": given})
    return case.flow


@pytest.mark.parametrize("seed", range(12))
def test_what_a_schedule_is_better_in_is_kept(seed: int) -> None:
    flow = diamonds(seed, 3, 3)
    chain = chain_of(flow)
    assert chain.whole
    assert set(range(0, flow.nodes, 4)) <= set(chain.nodes.tolist())
    for order in starts(flow):
        absorb(chain, order)
        takes, path = chain.shortest(lambda block: block.takes)
        assert takes <= schedule(flow, order)[0] + 1e-9
        assert schedule(flow, assembled(chain, path))[0] == pytest.approx(takes)


@pytest.mark.parametrize("seed", range(6))
def test_better_schedules_without_proofs(seed: int) -> None:
    flow = diamonds(seed, 4, 4)
    chain, proving = chain_of(flow), chain_of(flow)
    least = [block.least.copy() for block in chain.blocks]
    value = np.inf
    for _, order in refined(chain, improver(flow, seed, prove=False), lambda: np.inf, 2):
        value = value if order is None else min(value, schedule(flow, order)[0])
    assert all((a == block.least).all() for a, block in zip(least, chain.blocks, strict=True))
    for bound, order in refined(proving, improver(flow, seed), lambda: np.inf, 9):
        assert bound <= value + 1e-9
        value = value if order is None else min(value, schedule(flow, order)[0])
    assert bound == pytest.approx(value)
