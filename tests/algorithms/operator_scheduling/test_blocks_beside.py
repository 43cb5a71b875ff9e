"""Blocks with work beside them in the search: each step keeps a schedule valid, and devices of cuts move together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from support.operator_schedules import Sample, sample, valid

from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of, sequence_of
from placedsl.algorithms.operator_scheduling.search.blocks_beside import BlocksBeside, chain_with_work_beside
from placedsl.algorithms.operator_scheduling.search.initial_orders import is_feasible
from placedsl.algorithms.operator_scheduling.search.schedule_search import ScheduleSearch
from placedsl.algorithms.operator_scheduling.search.search import run, search_from

#: Nodes of a block of :func:`layers`, its cut not counted.
WIDE = 40


def layers(seed: int, count: int, beside: int, devices: int) -> Sample:
    """Layers of forty nodes between two cuts each, which read each other at random, and nodes beside that read from the
    first cut and are read in some layer.
    """
    rng = np.random.default_rng(seed)
    reads: set[tuple[int, int]] = set()
    cuts = [k * (WIDE + 1) for k in range(count + 1)]
    nodes = cuts[-1] + 1 + beside
    for before, after in itertools.pairwise(cuts):
        for v in range(before + 1, after):
            reads |= {(before, v), (v, after)}
            reads |= {(u, v) for u in range(before + 1, v) if rng.random() < 0.05}
    for k in range(beside):
        v = cuts[-1] + 1 + k
        reads |= {(cuts[0], v), (v, int(rng.integers(cuts[1] + 1, cuts[-1] + 1)))}
    case = sample(seed, nodes=nodes, devices=devices, congestion=({"port"}, {"link"})[seed % 2], sequential=True)
    case.time = rng.integers(1, 6, (nodes, devices)).astype(float)
    case.memory, case.room = rng.integers(0, 4, nodes).astype(float), np.full(devices, np.inf)
    if rng.random() < 0.5:
        case.room[:] = np.floor(0.7 * case.memory.sum())
    case.producer = sorted({u for u, _ in reads})
    case.reads = sorted((case.producer.index(u), w) for u, w in reads)
    case.groups = [rng.integers(0, nodes // 2, nodes)] if rng.random() < 0.3 else []
    sizes, given = rng.integers(0, 4, len(case.producer)).astype(float), np.zeros((0, devices, devices))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": sizes})
    return case


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(24))
def test_no_step_makes_a_schedule_worse_or_invalid(seed: int) -> None:
    case = layers(seed, 4, 6, 2 + seed % 2)
    search = search_from(case.instance, None, seed)
    chain = chain_with_work_beside(case.instance)
    assert search.best is not None
    assert chain is not None
    value = search.value
    blocks = BlocksBeside(search, chain, prove=seed % 8 == 0)
    for _ in itertools.islice(blocks.run(), 12):
        assert valid(case, search.best) == search.value <= value
        assert is_feasible(case.instance, search.best.device)
        value = search.value


def test_cuts_move_together() -> None:
    """All work is on the second device, where it takes four times as long as on the first; to move one layer alone is
    no gain, for a transfer takes as long as it.
    """
    case = layers(1, 4, 2, 2)
    case.time[:, 0], case.time[:, 1] = 1.0, 4.0
    case.memory[:], case.room[:], case.groups = 0.0, np.inf, []
    given = np.full((len(case.producer), 2, 2), 25.0) * (1.0 - np.eye(2))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given})
    instance = case.instance
    slow = sequence_of(instance, np.ones(instance.nodes, dtype=np.int64), np.zeros(instance.nodes))
    search = ScheduleSearch(instance, slow, schedule_of(instance, slow)[0], 0)
    chain = chain_with_work_beside(instance)
    assert chain is not None
    assert search.value == 4.0 * instance.nodes
    for _ in BlocksBeside(search, chain, prove=False).run():
        pass
    assert valid(case, search.best) == search.value
    assert search.value < 2.0 * instance.nodes


def test_what_is_beside_moves_with_its_cut() -> None:
    """All is on the second device, and sixty nodes beside the layers take as long on the first; each of them reads a
    tensor of its own from the first cut, which takes ten times as long to come there.
    """
    case = layers(1, 4, 60, 2)
    beside = np.arange(len(case.time)) > 4 * (WIDE + 1)
    case.time[:, 0], case.time[:, 1] = np.where(beside, 1.0, 3.0), 1.0
    case.memory[:], case.room[:], case.groups = 0.0, np.inf, []
    known = case.producer
    case.producer = [*known, *[0] * int(beside.sum())]
    own = [(len(known) + k, int(v)) for k, v in enumerate(np.flatnonzero(beside))]
    case.reads = [(t, v) for t, v in case.reads if known[t] or not beside[v]] + own
    seconds = np.where(beside[case.producer], 0.1, 25.0)
    seconds[len(known) :] = 10.0
    given = seconds[:, None, None] * (1.0 - np.eye(2))
    moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(len(seconds))})
    case.moves = moves
    instance = case.instance
    alone = sequence_of(instance, np.ones(instance.nodes, dtype=np.int64), np.zeros(instance.nodes))
    search = ScheduleSearch(instance, alone, schedule_of(instance, alone)[0], 0)
    chain = chain_with_work_beside(instance)
    assert chain is not None
    assert search.value == instance.nodes
    for _ in BlocksBeside(search, chain, prove=False).run():
        pass
    assert search.best is not None
    assert valid(case, search.best) == search.value
    assert search.value < 200.0
    assert (search.best.device[beside] == 0).mean() > 0.5


def test_the_search_has_them_where_transfers_are_congested(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search as a whole comes to them, and keeps what they find valid."""
    steps = 0

    def counted(self: BlocksBeside) -> Iterator[bool]:
        nonlocal steps
        for better in unchanged(self):
            steps += 1
            yield better

    unchanged = BlocksBeside.run
    monkeypatch.setattr(BlocksBeside, "run", counted)
    case = layers(3, 6, 8, 3)
    case.groups, case.room[:] = [], np.inf
    search = search_from(case.instance, None, 0)
    first = search.value
    for _ in run(search):
        assert valid(case, search.best) == search.value <= first
        if steps > 6 or search.proven:
            break
    assert steps > 6
    assert search.value < first
