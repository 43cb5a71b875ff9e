"""Schedules of dataflow: the compiled kernel, the list schedules."""

from __future__ import annotations

import numpy as np
import pytest
from support.operator_schedules import Sample, optimum, replayed, sample, wrong

from placedsl.algorithms.operator_scheduling.instance import supported, unit_memory
from placedsl.algorithms.operator_scheduling.list_scheduling import etf, getf, heft, m_sct, m_topo
from placedsl.algorithms.operator_scheduling.list_scheduling.listing import without_limit
from placedsl.algorithms.operator_scheduling.schedule_kernel import (
    OperatorSequence,
    places_of_triggers,
    ranks,
    schedule_of,
    sequence_of,
    values_of,
)

BASELINES = {
    "m-topo": m_topo.best,
    "etf": lambda instance: etf.best(instance, without_limit(instance)),
    "m-etf": lambda instance: etf.best(instance, instance.memory_limit),
    "m-sct": lambda instance: m_sct.best(instance, m_sct.favourite_children(instance)),
    "heft": lambda instance: heft.best(instance, without_limit(instance)),
    "getf": lambda instance: getf.best(instance, getf.assigned(instance)),
}


def some_order(case: Sample, seed: int) -> OperatorSequence:
    """Random devices that support their nodes, and a random topological order."""
    rng = np.random.default_rng(seed)
    instance = case.instance
    able = supported(instance)
    device = np.array([rng.choice(np.flatnonzero(row)) for row in able])[instance.unit]
    waits = {v: {case.producer[t] for t, w in case.reads if w == v} for v in range(instance.nodes)}
    order: list[int] = []
    while len(order) < instance.nodes:
        free = [v for v in waits if v not in order and waits[v] <= set(order)]
        order.append(int(rng.choice(free)))
    place = np.empty(instance.nodes)
    place[order] = np.arange(instance.nodes)
    called = rng.random((len(case.producer), instance.devices)) * instance.nodes
    called[rng.random(called.shape) < 0.5] = np.inf
    return sequence_of(instance, device.astype(np.int64), place, called)


def times_of(case: Sample, sequence: OperatorSequence) -> tuple[float, list[float], dict[tuple[int, int], float]]:
    latency, times = schedule_of(case.instance, sequence)
    values = values_of(times)
    return latency, [values["start"][v,] for v in range(len(times.begun))], values["sent"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(150))
def test_a_schedule_breaks_no_rule_and_nothing_in_it_could_begin_earlier(seed: int) -> None:
    case = sample(seed, nodes=8, devices=3)
    case.room[:] = np.inf
    if not supported(case.instance).any(axis=1).all():
        pytest.skip("no device supports a group")
    sequence = some_order(case, seed)
    latency, start, sent = times_of(case, sequence)
    device = sequence.device.tolist()
    assert wrong(case, device, start, sent) == []
    assert set(sent) == set(case.transfers(device))
    assert latency == max(s + case.time[v, device[v]] for v, s in enumerate(start))
    again, sent_again = replayed(case, device, start, sent)
    assert again == pytest.approx(start)
    assert sent_again == pytest.approx(sent)
    leaves = np.full((len(case.producer), 3), np.inf)
    for transfer, moment in sent.items():
        leaves[transfer] = moment
    assert times_of(case, sequence_of(case.instance, sequence.device, np.array(start), leaves))[0] == latency


@pytest.mark.parametrize("seed", range(30))
def test_triggers_by_their_places_are_the_same(seed: int) -> None:
    case = sample(seed, nodes=8, devices=3)
    if not supported(case.instance).any(axis=1).all():
        pytest.skip("no device supports a group")
    sequence = some_order(case, seed)
    place = np.empty(8)
    place[sequence.order] = np.arange(8)
    again = sequence_of(case.instance, sequence.device, place, places_of_triggers(sequence))
    for name in sequence._fields:
        assert (getattr(again, name) == getattr(sequence, name)).all(), name


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("seed", range(40))
def test_a_baseline_gives_a_schedule_that_breaks_no_rule(name: str, seed: int) -> None:
    case = sample(seed, nodes=10, devices=3)
    instance = case.instance
    if not supported(instance).any(axis=1).all():
        pytest.skip("no device supports a group")
    latency, sequence = BASELINES[name](instance)
    if name.startswith("m-") and sequence is None:
        assert np.isfinite(case.room).any()
        return
    assert sequence is not None
    found, start, sent = times_of(case, sequence)
    if not name.startswith("m-"):
        case.room[:] = np.inf
    assert found == latency
    assert wrong(case, sequence.device.tolist(), start, sent) == []


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(60))
def test_no_list_schedule_is_better_than_the_optimum(seed: int) -> None:
    case = sample(seed)
    best = optimum(case)
    for name in ("m-topo", "m-etf", "m-sct"):
        assert BASELINES[name](case.instance)[0] >= best - 1e-9


def test_heft_gives_the_schedule_of_its_paper() -> None:
    """Topcuoglu et al. 2002, Figures 2 and 3: ten tasks on three processors, 80 units of time."""
    time = [[14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10],
            [13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16]]  # fmt: skip
    edges = {(0, 1): 18, (0, 2): 12, (0, 3): 9, (0, 4): 11, (0, 5): 14, (1, 7): 19, (1, 8): 16, (2, 6): 23,
             (3, 7): 27, (3, 8): 23, (4, 8): 13, (5, 7): 15, (6, 9): 17, (7, 9): 11, (8, 9): 13}  # fmt: skip
    case = sample(0, devices=3, congestion=set(), sequential=True)
    case.time, case.memory, case.room = np.array(time, dtype=float), np.zeros(10), np.full(3, np.inf)
    case.producer, case.reads = [u for u, _ in edges], [(t, v) for t, (_, v) in enumerate(edges)]
    case.groups = []
    apart = 1.0 - np.eye(3)
    given = np.array(list(edges.values()), dtype=float)[:, None, None] * apart
    case.moves = type(case.moves)(
        0 * apart, 0 * apart, np.zeros(15), given, case.moves.hop_start, case.moves.hop, case.moves.hop_ends
    )
    instance = case.instance
    rank = ranks(instance, instance.time.mean(axis=1), given[:, 0, 1].copy())
    assert rank == pytest.approx([108, 77, 80, 80, 69, 63 + 1 / 3, 42 + 2 / 3, 35 + 2 / 3, 44 + 1 / 3, 14 + 2 / 3])
    latency, sequence = heft.best(instance, without_limit(instance))
    assert latency == 80.0
    assert sequence is not None
    assert sequence.device.tolist() == [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]


def test_favourite_children_are_one_a_node_and_one_a_parent() -> None:
    for seed in range(30):
        instance = sample(seed, nodes=12, devices=3).instance
        favourite = m_sct.favourite_children(instance)
        assert favourite is not None
        chosen = favourite[favourite >= 0]
        assert len(set(chosen.tolist())) == len(chosen)


def test_getf_leaves_out_devices_that_are_far_slower() -> None:
    case = sample(3, nodes=8, devices=3, sequential=True)
    case.time = np.arange(1.0, 9.0)[:, None] * np.array([1.0, 1.5, 50.0])
    case.groups, case.room = [], np.full(3, np.inf)
    group, _ = getf.groups(case.instance)
    assert group.tolist() == [0, 0, -1]
    _, sequence = getf.best(case.instance, getf.assigned(case.instance))
    assert sequence is not None
    assert 2 not in sequence.device


def test_units_hold_what_must_share_a_device() -> None:
    case = sample(1, nodes=6, devices=2)
    case.groups = [np.array([0, 1, 0, 2, 3, 4]), np.array([0, 1, 2, 3, 2, 5])]
    instance = case.instance
    assert instance.unit.tolist() == [0, 1, 0, 2, 0, 3]
    assert unit_memory(instance)[0] == case.memory[[0, 2, 4]].sum()
