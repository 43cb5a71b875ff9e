"""Blocks between nodes that all others come before or after: schedules of them are schedules of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from support.operator_schedules import sample

from placedsl.algorithms.operator_scheduling.decomposition import block_solving
from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, absorb, assemble, chain_of, refine
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of
from placedsl.algorithms.operator_scheduling.search.initial_orders import initial_orders


def diamonds(seed: int, number: int, wide: int) -> SchedulingInstance:
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
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given})
    return case.instance


@pytest.mark.parametrize("seed", range(12))
def test_what_a_schedule_is_better_in_is_kept(seed: int) -> None:
    instance = diamonds(seed, 3, 3)
    chain = chain_of(instance)
    assert chain.whole
    assert set(range(0, instance.nodes, 4)) <= set(chain.nodes.tolist())
    for sequence in initial_orders(instance):
        absorb(chain, sequence)
        takes, path = chain.shortest(lambda block: block.latency)
        assert takes <= schedule_of(instance, sequence)[0] + 1e-9
        assert schedule_of(instance, assemble(chain, path))[0] == pytest.approx(takes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_better_schedules_without_proofs(seed: int) -> None:
    instance = diamonds(seed, 4, 4)
    chain, proving = chain_of(instance), chain_of(instance)
    least = [block.lower_bound.copy() for block in chain.blocks]
    value = np.inf
    for _, sequence in refine(chain, BlockImprover(instance, seed, prove=False), lambda: np.inf, 2):
        value = value if sequence is None else min(value, schedule_of(instance, sequence)[0])
    assert all((a == block.lower_bound).all() for a, block in zip(least, chain.blocks, strict=True))
    for bound, sequence in refine(proving, BlockImprover(instance, seed), lambda: np.inf, 9):
        assert bound <= value + 1e-9
        value = value if sequence is None else min(value, schedule_of(instance, sequence)[0])
    assert bound == pytest.approx(value)


@pytest.mark.parametrize("restarts", [0, 1, 5])
def test_restarts_begin_from_list_schedules_in_turn(restarts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = diamonds(1, 2, 9)
    block = max(chain_of(instance).blocks, key=lambda block: len(block.nodes))
    inner = block.with_fixed_ends(instance, 0, 0)
    listed = sorted(schedule_of(inner, sequence)[0] for sequence in initial_orders(inner))
    begun: list[float] = []
    best = 0

    def anneal(
        block: Block, a: int, b: int, inner: SchedulingInstance, rng: object, runs: int, steps: int,
        first: OperatorSequence | None = None,
    ) -> None:  # fmt: skip
        nonlocal best
        if first is None:
            best += 1
            return
        begun.append(schedule_of(inner, first)[0])

    monkeypatch.setattr(block_solving, "_anneal", anneal)
    BlockImprover(instance, 0, prove=False, restarts=restarts)(block, 0, 0, np.inf)
    assert begun == [listed[run % 3] for run in range(restarts)]
    assert best == 1
