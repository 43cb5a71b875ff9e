"""Blocks that several processes refine: bounds that hold, and less work for each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.cluster_members import Hub
from support.operator_schedules import Sample, optimum, sample

from placedsl.algorithms.operator_scheduling.bounds import streams
from placedsl.algorithms.operator_scheduling.bounds.streams import bounds_and_sequences
from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of, refine
from placedsl.algorithms.operator_scheduling.decomposition.shared_blocks import SharedBlocks


def side_by_side(case: Sample, members: int, best: float) -> list[float]:
    """The bound of each of so many members that take turns."""
    hub = Hub(members)
    steps = [
        bounds_and_sequences(case.instance, upper=lambda: best, exchange=line, turn=turn)
        for turn, line in enumerate(hub.lines)
    ]
    found = [0.0] * members
    running = set(range(members))
    while running:
        for k in sorted(running):
            step = next(steps[k], None)
            if step is None:
                running.remove(k)
            else:
                found[k] = max(found[k], step[0])
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 60, 4))
def test_bounds_hold_and_are_about_as_good(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_LARGE", 4)
    monkeypatch.setattr(streams, "_SMALL", 2)
    for seed in range(first, first + 4):
        case = sample(seed, nodes=6, devices=2)
        best = optimum(case)
        alone = max((bound for bound, _ in bounds_and_sequences(case.instance, upper=lambda best=best: best)))
        together = side_by_side(case, 3, best)
        assert max(together) <= best * (1.0 + 1e-9), seed
        # Prices are searched for from where blocks stand, which is another way now (of 60 seeds one ends lower, by 7%).
        assert together[0] >= 0.9 * min(alone, best), seed


def line_of_blocks(blocks: int, inside: int, seed: int) -> Sample:
    """Nodes that all others are comparable with, and so many different ones between two of them."""
    rng = np.random.default_rng(seed)
    nodes = blocks * (inside + 1) + 1
    case = sample(seed, nodes=nodes, devices=2, sequential=True)
    case.time = rng.uniform(1.0, 2.0, (nodes, 2))
    case.memory, case.groups = np.zeros(nodes), []
    case.room[:] = np.inf
    reads = []
    for k in range(0, nodes - 1, inside + 1):
        reads += [(k, v) for v in range(k + 1, k + inside + 1)]
        reads += [(v, k + inside + 1) for v in range(k + 1, k + inside + 1)]
    case.producer = sorted({u for u, _ in reads})
    case.reads = [(case.producer.index(u), w) for u, w in reads]
    given = np.zeros((0, 2, 2))
    size = np.ones(len(case.producer))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": size})
    return case


def test_each_refines_a_part() -> None:
    case = line_of_blocks(12, 5, 1)

    def refined(members: int) -> tuple[float, list[int]]:
        hub = Hub(members)
        calls = [0] * members
        running = []
        for turn, line in enumerate(hub.lines):
            chain = chain_of(case.instance)
            assert len(chain.blocks) >= 12
            shared = SharedBlocks([chain], line, takes_work=True)
            improve = shared.watched(BlockImprover(case.instance, turn))

            def counted(block, a, b, needed, turn=turn, improve=improve):  # type: ignore[no-untyped-def]
                calls[turn] += 1
                improve(block, a, b, needed)

            steps = refine(chain, counted, lambda: np.inf, 1, shared.taken, turn)
            running.append((shared, steps))
        bound = 0.0
        for shared, steps in itertools.islice(itertools.cycle(running), 4000):
            shared.exchange()
            step = next(steps, None)
            if step is not None:
                bound = max(bound, step[0])
        return bound, calls

    bound, (alone,) = refined(1)
    together, calls = refined(3)
    assert together == pytest.approx(bound, rel=0.02)
    assert sum(calls) <= alone + 12
    assert max(calls) <= 0.6 * alone
