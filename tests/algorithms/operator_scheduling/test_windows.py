"""Windows of a schedule, annealed within their boundary: what they end with is a schedule, better or not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.operator_schedules import READINGS, sample, valid

from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.algorithms.operator_scheduling.search import windows as search_windows
from placedsl.algorithms.operator_scheduling.search.initial_orders import is_feasible
from placedsl.algorithms.operator_scheduling.search.repeated_layers import layers_of
from placedsl.algorithms.operator_scheduling.search.search import search_from
from placedsl.algorithms.operator_scheduling.search.windows import windows


@pytest.mark.parametrize("seed", range(24))
def test_what_a_window_ends_with_is_a_schedule(seed: int) -> None:
    case = sample(seed, nodes=30, devices=2 + seed % 2, congestion=READINGS[seed % 4])
    search = search_from(case.instance, None, seed)
    assert search.best is not None
    rng, before = np.random.default_rng(seed), search.value
    for _ in range(10):
        low = int(rng.integers(20))
        last = search_windows._anneal_window(search, search.best, low, low + 10, 5, last=True)
        assert valid(case, last) >= search.value
        assert is_feasible(case.instance, last.device)
        assert valid(case, search.best) == search.value <= before
        before = search.value


@pytest.mark.parametrize("seed", range(12))
def test_windows_around_layers_and_copies_keep_schedules_valid(seed: int) -> None:
    """With groups of nodes that are no layers, so that copies are of little use: what is kept is valid and better."""
    case = sample(seed, nodes=32, devices=2, congestion=READINGS[seed % 4])
    instance = case.instance
    search = search_from(instance, None, seed)
    assert search.best is not None
    layers = layers_of(instance, np.arange(32).reshape(4, 8), np.arange(32))
    before = search.value
    for better in itertools.islice(windows(search, [layers], 4), 12):
        assert valid(case, search.best) == search.value
        assert better == (search.value < before)
        assert is_feasible(instance, search.best.device)
        before = search.value


def test_what_is_no_better_in_one_layer_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """What windows end with goes to the copies although the best schedule stays."""
    case = sample(3, nodes=32, devices=2, congestion={"port"}, sequential=True)
    instance = case.instance
    search = search_from(instance, None, 0)
    assert search.best is not None
    values: list[float] = []

    def watched(_: object, __: object, sequence: OperatorSequence, *___: object) -> list[OperatorSequence]:
        values.append(valid(case, sequence) - search.value)
        return []

    monkeypatch.setattr(search_windows, "copies", watched)
    for _ in windows(search, [layers_of(instance, np.arange(32).reshape(4, 8), np.arange(32))], 40):
        pass
    assert min(values) == 0.0
    assert max(values) > 0.0
