"""The bound by a tensor that many nodes read: never above the optimum, and above other bounds where it decides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.operator_schedules import Sample, optimum, sample

from placedsl.algorithms.operator_scheduling.bounds import broadcast as of_broadcast
from placedsl.algorithms.operator_scheduling.bounds.broadcast import broadcast_bound
from placedsl.algorithms.operator_scheduling.bounds.broadcast_kernel import least_priced
from placedsl.algorithms.operator_scheduling.bounds.counted_reads import counted_reads
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import single_device
from placedsl.algorithms.operator_scheduling.bounds.relaxation import relaxed_latency
from placedsl.algorithms.operator_scheduling.bounds.work import work_bound
from placedsl.algorithms.operator_scheduling.instance import moves


def wide(seed: int, nodes: int = 6, devices: int = 2) -> Sample:
    """A node with one device, whose tensor three others read; what follows them is left to chance."""
    case = sample(seed, nodes=nodes, devices=devices, sequential=True)
    rng = np.random.default_rng(seed + 10**6)
    case.room[:] = np.inf
    case.producer, case.reads = [0], [(0, 1), (0, 2), (0, 3)]
    for u in range(1, nodes - 1):
        for _ in range(int(rng.integers(1, 3))):
            later = np.flatnonzero(rng.random(nodes - u - 1) < 0.5) + u + 1
            if len(later):
                case.reads += [(len(case.producer), int(v)) for v in later]
                case.producer.append(u)
    case.time[0] = np.where(np.arange(devices) == rng.integers(devices), rng.integers(0, 3), np.inf)
    count = len(case.producer)
    given = np.zeros((0, devices, devices))
    if rng.random() < 0.4:
        given = rng.integers(0, 5, (count, devices, devices)) * (1.0 - np.eye(devices))
        given[rng.random(given.shape) < 0.03] = np.inf
    sizes = rng.integers(0, 4, count).astype(float)
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": sizes})
    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 900, 20))
def test_no_bound_is_above_the_optimum(first: int) -> None:
    for seed in range(first, first + 20):
        case = wide(seed, nodes=5 + (seed % 3 == 0), devices=2 + seed % 3)
        best = optimum(case)
        for scale in (1.0, 1e-7):  # seconds of any size
            case.time *= scale
            moves = vars(case.moves)
            scaled = {name: scale * moves[name] for name in ("latency", "inverse_bandwidth", "explicit")}
            case.moves = type(case.moves)(**{**moves, **scaled})
            for enough in (np.inf, scale * best):
                assert broadcast_bound(case.instance, 0.0, enough) <= scale * best, (seed, scale)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_the_least_price_is_that_of_enumeration(seed: int) -> None:
    """Over all placements, where each node has the least level that its own reads and those before it allow."""
    devices = 2 + seed % 2
    instance = wide(seed, nodes=6, devices=devices).instance
    rng = np.random.default_rng(seed)
    only, move = np.asarray(single_device(instance)), moves(instance)
    broadcast = 0
    reads = counted_reads(instance, only, move, broadcast)
    others = [d for d in range(devices) if d != only[0]]
    for receivers in itertools.chain.from_iterable(itertools.permutations(others, k) for k in range(devices)):
        key = (int(only[0]), *receivers)
        transfers = of_broadcast._around_transfers(instance, reads.uses)
        more = len(key) < devices and bool(rng.random() < 0.5)
        case, least = of_broadcast._case(instance, reads, broadcast, key, more, transfers)
        if least == np.inf:  # some node is nowhere
            continue
        levels = len(key) + more
        work = np.cumsum(rng.integers(0, 5, (devices, levels)), axis=1).astype(float)
        transfer = np.cumsum(rng.integers(0, 5, (devices, devices, levels)), axis=2).astype(float)
        device, level = np.maximum(only, 0), np.zeros(instance.nodes, dtype=np.int64)
        found = least_priced(case, reads, work, transfer, device, level)
        assert found == pytest.approx(least_by_enumeration(case, reads, work, transfer), rel=1e-12), key


def least_by_enumeration(case, reads, work, transfer) -> float:
    """The same by definition."""
    best = np.inf
    nodes, devices = case.time.shape
    counted = [k for k in range(len(reads.tensor)) if reads.share[k] > 0.0]
    for device in itertools.product(range(devices), repeat=nodes):
        if any(case.time[v, d] == np.inf for v, d in enumerate(device)):
            continue
        level = [0 if reads.only[v] >= 0 else int(case.floor[v, d]) for v, d in enumerate(device)]
        for k in sorted(counted, key=lambda k: reads.target[k]):  # in topological order
            if reads.only[reads.source[k]] < 0 and reads.only[reads.target[k]] < 0:
                level[reads.target[k]] = max(level[reads.target[k]], level[reads.source[k]])
        price = sum(case.time[v, d] * work[d, level[v]] for v, d in enumerate(device) if reads.only[v] < 0)
        for k in counted:
            a, b = device[reads.source[k]], device[reads.target[k]]
            seconds = reads.move[reads.tensor[k], a, b]
            if a != b and (seconds == np.inf or reads.share[k] * seconds > 0.0):
                price += (
                    seconds if seconds == np.inf else reads.share[k] * seconds * transfer[a, b, level[reads.source[k]]]
                )
        best = min(best, price)
    return best


def far_away(seconds: float, readers: int = 4, devices: int = 2) -> Sample:
    """Nodes of three seconds that read a tensor, which takes so many seconds to another device, one at a time."""
    case = sample(0, nodes=readers + 1, devices=devices, sequential=True, congestion={"port"})
    case.room[:] = np.inf
    case.time = np.full((readers + 1, devices), 3.0)
    case.time[0] = np.where(np.arange(devices) == 0, 0.0, np.inf)
    case.groups, case.producer, case.reads = [], [0], [(0, v) for v in range(1, readers + 1)]
    given = seconds * (1.0 - np.eye(devices))[None]
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(1)})
    return case


def test_arrivals_one_after_the_other() -> None:
    """Six nodes on three devices, which begin after 0, 4 and 8 seconds: (18 + 12) / 3 seconds on average; three, two
    and one of them take 11.
    """
    instance = far_away(4.0, 6, 3).instance
    assert work_bound(instance) == pytest.approx((18.0 + 8.0) / 3.0)
    assert relaxed_latency(instance, 10.0) == pytest.approx(6.0, rel=1e-5)
    assert 9.9 < broadcast_bound(instance, 0.0, np.inf) <= 11.0


def test_eight_devices_that_are_alike() -> None:
    """Twelve nodes, of which four devices share the work: (36 + 24) / 4 seconds."""
    assert 14.8 < broadcast_bound(far_away(4.0, 12, 8).instance, 0.0, np.inf) <= 15.0


def test_a_tensor_crosses_once_for_all_its_readers() -> None:
    """The first reader makes a tensor for the three others, which have another device: it crosses in four seconds."""
    case = far_away(1.0)
    case.time = np.array([[0.0, np.inf], [0.0, 9000.0], *[[np.inf, 0.5]] * 3])
    case.producer, case.reads = [0, 1], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 4)]
    given = np.array([[[0.0, s], [s, 0.0]] for s in (1.0, 4.0)])
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(2)})
    assert optimum(case) == 6.0  # both tensors cross, and a reader runs while the second does
    assert 5.4 < broadcast_bound(case.instance, 0.0, np.inf) <= 6.0


def test_a_device_that_is_far_away_is_of_no_use() -> None:
    assert broadcast_bound(far_away(10.0).instance, 0.0, np.inf) == pytest.approx(12.0)


def test_what_is_known_is_never_lost_and_what_is_enough_not_exceeded() -> None:
    instance = far_away(10.0).instance
    assert broadcast_bound(instance, 11.0, 11.5) == pytest.approx(11.5)
    assert broadcast_bound(instance, 12.5, np.inf) == 12.5
    assert broadcast_bound(instance._replace(sequential=False), 1.0, np.inf) == 1.0


def test_a_block_in_which_nothing_takes_time() -> None:
    """No device and no port is in use: what is proven otherwise is its bound, and prices come on top."""
    case = far_away(0.0)
    case.time = np.where(np.isfinite(case.time), 0.0, np.inf)
    case.producer, case.reads = [], []
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": np.zeros((0, 2, 2)), "size": np.zeros(0)})
    cases = of_broadcast.Cases(case.instance, 1.0)
    cases.improve(1.0, 20)
    assert cases.bound == pytest.approx(1.0)
    cases.price(np.ones(case.time.shape), 1.0)
    cases.improve(1.0, 20)
    assert cases.bound == pytest.approx(6.0)
