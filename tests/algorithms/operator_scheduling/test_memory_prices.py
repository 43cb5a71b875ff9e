"""Bounds with prices of memory: never above the optimum within the limits, and above other bounds where limits bind."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.operator_schedules import Sample, optimum, sample

from placedsl.algorithms.operator_scheduling.bounds.broadcast import Cases, Learned
from placedsl.algorithms.operator_scheduling.bounds.memory_prices import memory_uses
from placedsl.algorithms.operator_scheduling.bounds.price_search import priced_bounds
from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of


def layered(seed: int, layers: list[int], devices: int = 2) -> Sample:
    """Layers of nodes, each read by all of the next, with limits that may bind."""
    rng = np.random.default_rng(seed)
    nodes = sum(layers)
    case = sample(seed, nodes=nodes, devices=devices, sequential=True)
    first = np.cumsum([0, *layers])
    of = [range(a, b) for a, b in itertools.pairwise(first)]
    case.producer = [u for layer in of[:-1] for u in layer]
    case.reads = [(u, v) for here, there in itertools.pairwise(of) for u in here for v in there]
    case.memory = rng.integers(0, 5, nodes).astype(float)
    case.room = np.ceil(case.memory.sum() * rng.uniform(0.3, 1.1, devices))
    if rng.random() < 0.3:
        case.room[int(rng.integers(devices))] = np.inf
    if rng.random() < 0.3:  # devices that are alike
        case.time[:] = case.time[:, :1]
    sizes = rng.integers(0, 4, len(case.producer)).astype(float)
    given = np.zeros((0, devices, devices))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": sizes})
    return case


def bounds(case: Sample) -> list[float]:
    """Until nothing more is to come."""
    chain = chain_of(case.instance)
    uses = memory_uses(chain)
    found = [] if uses is None else itertools.takewhile(lambda step: not step[1], priced_bounds(chain, uses))
    return [bound for bound, _ in found]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 600, 15))
def test_no_bound_is_above_the_optimum(first: int) -> None:
    for seed in range(first, first + 15):
        layers = [[1, 3, 1, 1], [1, 2, 1, 2], [2, 1, 2, 1], [1, 3, 1]][seed % 4]
        case = layered(seed, layers, devices=2 + seed % 2)
        best = optimum(case)
        for seconds, size in ((1.0, 1.0), (1e-7, 1e9)):  # numbers of any size
            case.time *= seconds
            case.memory, case.room = case.memory * size, case.room * size
            moves = vars(case.moves)
            scaled = {name: seconds * moves[name] for name in ("latency", "inverse_bandwidth")}
            case.moves = type(case.moves)(**{**moves, **scaled})
            found = bounds(case)
            assert found == sorted(found), seed
            assert max(found, default=0.0) <= seconds * best, (seed, seconds)


def stages(count: int, width: int, room: float) -> Sample:
    """A node, and so many nodes that read it, in turn: one and two seconds on two devices, with memory for some."""
    case = layered(0, [1, *[width, 1] * count])
    nodes = len(case.time)
    case.groups, case.congestion = [], {"port"}
    case.time = np.tile([1.0, 2.0], (nodes, 1))
    case.memory, case.room = np.ones(nodes), np.array([room, np.inf])
    case.moves = type(case.moves)(
        **{**vars(case.moves), "latency": np.zeros((2, 2)), "inverse_bandwidth": np.zeros((2, 2))}
    )
    return case


def test_nodes_one_after_the_other_go_where_memory_is_left() -> None:
    """Eleven nodes, five of which have room where they take one second: 5 + 12 seconds; 11 without the limit."""
    case = stages(5, 1, 5.0)
    assert chain_of(case.instance).bound() == pytest.approx(11.0)
    assert 16.9 < max(bounds(case)) <= 17.0


def test_nodes_side_by_side_count_for_memory_as_well() -> None:
    """Thirty-one nodes, and no room where they take one second: 2 seconds each, 36 with the others one by one."""
    case = stages(6, 4, 0.0)
    assert chain_of(case.instance).bound() < 25.0
    assert 61.0 < max(bounds(case)) <= 62.0
    assert max(bounds(stages(6, 4, 15.0))) < 50.0


def unlike(layers: list[int], last: np.ndarray) -> Sample:
    """Devices whose times are alike but for those of the last node.  What the first of each three nodes reads takes two
    seconds to another device, and the second device has no memory for them.
    """
    nodes = sum(layers)
    case = layered(0, layers, devices=3)
    case.groups, case.congestion = [], {"port"}
    first = np.cumsum([0, *layers[:-1]])
    hubs = first[np.array(layers) == 1]
    case.time = np.tile([50.0, 1.0, 1.0], (nodes, 1))
    case.time[hubs] = 0.0, np.inf, np.inf
    case.time[-1] = last
    case.memory, case.room = np.ones(nodes), np.array([np.inf, 0.0, np.inf])
    size = np.where(np.isin(case.producer, hubs), 2.0, 1e-3)
    free = {"latency": np.zeros((3, 3)), "inverse_bandwidth": 1.0 - np.eye(3), "size": size}
    case.moves = type(case.moves)(**{**vars(case.moves), **free})
    return case


def test_devices_that_are_alike_in_a_block_alone_have_prices_of_their_own() -> None:
    """What three nodes read goes to the last device, which has memory, and not to the second: two seconds, and three
    there; two further ones at the end, where the second device is quicker.
    """
    case = unlike([1, 3, 1, 1], np.array([2.0, 5.0, 6.0]))
    assert 6.8 < max(bounds(case)) <= optimum(case) < 7.1


def test_branches_that_another_block_divided_know_which_devices_have_one_price() -> None:
    """2 seconds and 0.3 on the last device; after 4 if it is next after the second, which is like it."""
    learned = Learned()
    learned.divided.add((0,))
    case = unlike([1, 3, 1], np.array([0.0, np.inf, np.inf]))
    case.time[1:4] /= 10.0
    instance = case.instance
    expected = ((None, 4.0, 4.4), (np.arange(3), 2.2, 2.31))
    for among, low, high in expected:
        cases = Cases(instance, 0.0, learned=learned, among=among)
        cases.price(np.outer(np.ones(5), [0.0, 100.0, 0.0]), 0.0)
        cases.improve(0.0, 2000)
        assert low < cases.bound < high


def test_limits_that_do_not_bind_give_no_bounds() -> None:
    assert bounds(stages(3, 3, 100.0)) == []


def test_without_prices_memory_may_be_enough() -> None:
    """All may be on the quick device by memory, and the placement behind the bound without prices is within limits."""
    case = stages(3, 1, 6.0)
    case.time[:, 0] = 9.0
    assert max(bounds(case)) == pytest.approx(chain_of(case.instance).bound())


def test_the_search_for_prices_ends_where_no_placement_is_within_the_limits() -> None:
    """There is room for a third of the memory: every price proves less than a higher one."""
    case = stages(3, 2, 2.0)
    case.room[:] = 2.0
    assert max(bounds(case)) > 1e5
