"""The bound of placements: rows of the one-machine relaxation, and CP-SAT over devices alone."""

from __future__ import annotations

import numpy as np
import pytest
from support.operator_schedules import READINGS, Sample, optimum, sample

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import earliest_end
from placedsl.algorithms.operator_scheduling.bounds.placement_bound import placement_bound
from placedsl.algorithms.operator_scheduling.exact_cp_sat import solve_exactly


def bound(case: Sample, upper: float, low: float = 0.0) -> float:
    return placement_bound(case.instance, low, upper, effort=10.0, seed=0)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 240, 8))
def test_no_bound_is_above_the_optimum(first: int) -> None:
    for seed in range(first, first + 8):
        case = sample(seed, nodes=5, devices=2 + seed % 2, congestion=READINGS[seed % 4])
        best = optimum(case)
        if best == np.inf:
            continue
        solved = solve_exactly(case.instance, None, 2.0 * best + 1.0, effort=20.0, seed=seed, one_machine=True)
        assert solved.final
        assert solved.bound == pytest.approx(best)
        for upper in (best, best + 1.0, 2.0 * best + 1.0):
            assert bound(case, upper) <= best + 1e-9
        assert bound(case, 0.9 * best) <= 0.9 * best + 1e-9


def fixed(devices: list[int], congestion: set[str], reads: list[tuple[int, int]], seconds: float) -> Sample:
    """Nodes of a second each on these of two devices; ``reads``: producers and readers; ``seconds`` of a transfer."""
    case = sample(0, nodes=len(devices), devices=2, congestion=congestion, sequential=True)
    case.time = np.full((len(devices), 2), np.inf)
    case.time[np.arange(len(devices)), devices] = 1.0
    case.memory, case.room, case.groups = np.zeros(len(devices)), np.full(2, np.inf), []
    case.producer = sorted({u for u, _ in reads})
    case.reads = [(case.producer.index(u), w) for u, w in reads]
    given = np.full((len(case.producer), 2, 2), seconds) * (1.0 - np.eye(2))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(len(given))})
    return case


def test_a_tensor_occupies_its_link_once_for_all_readers() -> None:
    case = fixed([0, 1, 1, 1, 1], {"link"}, [(0, 1), (0, 2), (0, 3), (0, 4)], 2.0)
    assert optimum(case) == 1.0 + 2.0 + 4.0
    assert bound(case, 20.0) == pytest.approx(7.0)


def test_what_is_before_and_after_the_work_counts() -> None:
    """Four tensors through one port, between two nodes that all others come after or before."""
    case = fixed(
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
        {"port"},
        [*((0, v) for v in range(1, 5)), *((v, v + 4) for v in range(1, 5)), *((v, 9) for v in range(5, 9))],
        2.0,
    )
    instance = case.instance
    assert earliest_end(instance).max() == pytest.approx(1 + 1 + 2 + 1 + 1)
    assert bound(case, 30.0) == pytest.approx(1 + 1 + 4 * 2 + 1 + 1)
    assert bound(case, 30.0, low=11.5) == pytest.approx(12.0)
    for one_machine in (False, True):
        solved = solve_exactly(instance, None, 30.0, effort=10.0, seed=0, one_machine=one_machine)
        assert solved.final
        assert solved.bound == pytest.approx(12.0)


def test_heads_and_tails_count_where_there_is_something_between_them() -> None:
    """What the second device could run would be between two transfers of six seconds; it runs nothing."""
    case = fixed([0, 0, 0, 0], set(), [(0, 1), (1, 2), (2, 3)], 6.0)
    case.time[1:3, 1] = 0.25
    assert optimum(case) == 4.0
    assert bound(case, 40.0) == pytest.approx(4.0)


def test_bounds_stay_between_what_is_known_and_the_limit() -> None:
    case = fixed([0, 0], set(), [(0, 1)], 1.0)
    assert bound(case, 1.5) == 1.5
    assert bound(case, 1.9, low=1.95) == 1.95
    assert bound(case, np.inf, low=0.5) == 0.5
