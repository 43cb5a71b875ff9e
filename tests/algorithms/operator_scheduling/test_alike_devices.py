"""Devices that may change places: what holds for one pair of them holds for all pairs like it."""

from __future__ import annotations

import numpy as np
import pytest
from support.operator_schedules import sample

from placedsl.algorithms.operator_scheduling.decomposition import blocks as of_blocks
from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of, refine
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import alike_devices
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of

KINDS = np.array([0, 1, 0, 1])


def diamonds(seed: int, number: int = 3, wide: int = 3) -> SchedulingInstance:
    """Diamonds one after the other on four devices of two kinds, which alternate."""
    nodes = number * (wide + 1) + 1
    case = sample(seed, nodes=nodes, devices=4, congestion={"port"} if seed % 2 else set(), sequential=True)
    rng = np.random.default_rng(seed)
    case.time = rng.integers(1, 9, (nodes, 2)).astype(float)[:, KINDS]
    case.memory, case.room = np.zeros(nodes), np.full(4, np.inf)
    case.producer, case.reads, case.groups = list(range(nodes - 1)), [], []
    for first in range(0, nodes - 1, wide + 1):
        for v in range(first + 1, first + wide + 1):
            case.reads += [(first, v), (v, first + wide + 1)]
    kinds = rng.integers(1, 6, (nodes - 1, 2, 2)).astype(float)
    given = kinds[:, KINDS][:, :, KINDS] * (1.0 - np.eye(4))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(nodes - 1)})
    return case.instance


def proven(instance: SchedulingInstance, seed: int) -> float:
    *_, (bound, _) = refine(chain_of(instance), BlockImprover(instance, seed), lambda: np.inf, 9)
    return bound


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_what_is_known_for_pairs_of_alike_devices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = diamonds(seed)
    assert alike_devices(instance).tolist() == [0, 1, 0, 1]
    chain = chain_of(instance)
    bound = 0.0
    for bound, _ in refine(chain, BlockImprover(instance, seed), lambda: np.inf, 2):  # noqa: B007
        for block in chain.blocks:
            for (a, b), (sequence, inner) in block.sequences.items():
                ends = [v for v, end in ((0, block.before), (-1, block.after)) if end >= 0]
                assert [int(sequence.device[v]) for v in ends] == [
                    d for d, end in ((a, block.before), (b, block.after)) if end >= 0
                ]
                assert schedule_of(inner, sequence)[0] == pytest.approx(block.latency[a, b])
                own = block.with_fixed_ends(instance, a, b)
                assert schedule_of(own, sequence)[0] == pytest.approx(block.latency[a, b])
    exact = proven(instance, seed)
    assert bound <= exact * (1 + 1e-6)
    monkeypatch.setattr(of_blocks, "alike_devices", lambda instance: np.arange(instance.devices))
    assert exact == pytest.approx(proven(instance, seed), rel=1e-6)


def test_devices_that_are_not_alike() -> None:
    instance = diamonds(0)
    time = instance.time.copy()
    time[2, 3] += 1.0
    assert alike_devices(instance._replace(time=time)).tolist() == [0, 1, 0, 3]
    given = instance.given.copy()
    given[0, 2, 1] += 1.0
    assert alike_devices(instance._replace(given=given)).tolist() == [0, 1, 2, 3]


def test_who_shares_what_with_whom() -> None:
    """Transfers from device 0 occupy one more resource than those from the device like it."""
    instance = diamonds(1)
    assert alike_devices(instance).tolist() == [0, 1, 0, 1]
    of = [instance.resource[instance.resource_start[k] : instance.resource_start[k + 1]].tolist() for k in range(16)]
    of[1] = [*of[1], instance.resources]
    start = np.cumsum([0, *map(len, of)])
    flat = np.array([r for some in of for r in some], dtype=np.int64)
    other = instance._replace(resource_start=start, resource=flat, resources=instance.resources + 1)
    assert alike_devices(other).tolist() == [0, 1, 2, 3]
