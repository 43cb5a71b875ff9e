"""The bound by work that devices share: never above the optimum, and above longest paths where work decides."""

from __future__ import annotations

import numpy as np
import pytest
from support.operator_schedules import optimum, sample

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import earliest_end
from placedsl.algorithms.operator_scheduling.bounds.work import work_bound
from placedsl.algorithms.operator_scheduling.decomposition import blocks as of_blocks
from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 600, 20))
def test_no_bound_is_above_the_optimum(first: int) -> None:
    for seed in range(first, first + 20):
        case = sample(seed, nodes=4 + seed % 2, devices=2 + seed % 2, sequential=seed % 5 > 0)
        case.room[:] = np.inf
        instance, best = case.instance, optimum(case)
        bound = work_bound(instance)
        assert bound <= best, seed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("few", [1, 6])
@pytest.mark.parametrize("seed", range(60))
def test_blocks_with_their_work(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks as well, whatever their size and the number of devices."""
    monkeypatch.setattr(of_blocks, "_BY_WORK", 0)
    monkeypatch.setattr(of_blocks, "_FEW", few)
    case = sample(seed, nodes=5, devices=2, sequential=True)
    case.room[:] = np.inf
    for most in (None, 3):
        assert chain_of(case.instance, most).bound() <= optimum(case) * (1 + 1e-12)


def test_equal_work_is_divided() -> None:
    """Twelve nodes of one second beside one another, on three devices: four seconds, where the longest path is one."""
    case = sample(0, nodes=12, devices=3, sequential=True)
    case.time, case.producer, case.reads, case.groups = np.ones((12, 3)), [], [], []
    instance = case.instance
    assert float(earliest_end(instance).max()) == 1.0
    assert work_bound(instance) == pytest.approx(4.0)


def test_a_device_that_is_far_away_is_of_no_use() -> None:
    """Two nodes that read a tensor which takes ten seconds to another device: they run one after the other."""
    case = sample(0, nodes=3, devices=2, sequential=True)
    case.time, case.groups = np.array([[1.0, np.inf], [3.0, 3.0], [3.0, 3.0]]), []
    case.producer, case.reads = [0], [(0, 1), (0, 2)]
    given = np.array([[[0.0, 10.0], [10.0, 0.0]]])
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(1)})
    assert work_bound(case.instance) == pytest.approx(7.0)
