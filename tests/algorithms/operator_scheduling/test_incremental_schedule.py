"""Incremental schedules: after many changes, kept and discarded, they are what they would be from scratch."""

import numpy as np
import pytest
from support.operator_schedules import READINGS, sample

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule
from placedsl.algorithms.operator_scheduling.search.incremental_state import IncrementalSchedule
from placedsl.algorithms.operator_scheduling.search.search import search_from
from placedsl.algorithms.operator_scheduling.search.trial_marks_kernel import FEW


def _sequence(schedule: IncrementalSchedule) -> OperatorSequence:
    names = ("device", "order", "transfer_trigger", "first_transfer", "next_transfer")
    return OperatorSequence(*(getattr(schedule, name).copy() for name in names))


def _same(schedule: IncrementalSchedule, other: IncrementalSchedule, names: list[str], where: object = ...) -> None:
    for name in names:
        assert (getattr(schedule, name)[where] == getattr(other, name)[where]).all(), name


@pytest.mark.sampled(24)
@pytest.mark.parametrize("nodes", [10, FEW - 4, FEW + 4, FEW + 60])
@pytest.mark.parametrize("seed", range(24))
def test_it_is_what_it_would_be_from_scratch(seed: int, nodes: int) -> None:
    case = sample(seed, nodes=nodes, devices=2 + seed % 3, congestion=READINGS[seed % 4], sequential=seed % 5 > 0)
    case.room[:] = np.inf
    best = search_from(case.instance, None, seed).best
    assert best is not None
    schedule, latency = incremental_schedule(case.instance, best)
    for step, hot in enumerate((0.3, 0.03, 0.003)):
        for turn in range(6):
            cooling = CoolingSchedule(7 + 20 * turn, hot * latency, hot * latency / 10, 100 * seed + 10 * step + turn)
            latency, _ = run_annealing(case.instance, schedule, latency, latency, cooling, 0.1)
            fresh, value = incremental_schedule(case.instance, _sequence(schedule))
            assert latency == value == schedule_of(case.instance, _sequence(schedule))[0]
            _same(schedule, fresh, ["position", "memory_used", "ended", "called", "kept", "used", "longest"])
            called = schedule.called < nodes
            _same(schedule, fresh, ["arrived", "late"], called)
            if nodes > FEW:
                _same(schedule, fresh, ["follows", "left"])
                _same(schedule, fresh, ["after_arrival"], called)


@pytest.mark.parametrize("seed", range(6))
def test_what_follows_is_the_rest_of_the_longest_path(seed: int) -> None:
    """Some node and what follows it take the latency, and none takes longer; the same where resources become free."""
    case = sample(seed, nodes=FEW + 30, devices=3, congestion=READINGS[seed % 4])
    best = search_from(case.instance, None, seed).best
    assert best is not None
    schedule, latency = incremental_schedule(case.instance, best)
    assert (schedule.ended + schedule.follows).max() == pytest.approx(latency)
    assert (schedule.kept + schedule.left).max() <= latency * (1.0 + 1e-12)
    assert (schedule.follows >= schedule.tail[np.arange(FEW + 30), schedule.device] * (1.0 - 1e-12)).all()
