"""Schedule calls: the latency kernel against the definition, and the search against every placement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.subgraph_calls import all_places, latency, optimum, random_instance

from placedsl.algorithms.subgraph_calls.instance import CallPlacement, build, call_placement, latency_of, places_of
from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance
from placedsl.algorithms.subgraph_calls.search import run, search_from


def chain(slots: int, memory: float) -> CallInstance:
    """Three nodes in a row of 1, 2 and 3; tensors take 10 and 20; one accelerator and a host ten times as slow."""
    return build(
        time=np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), transfer=np.array([[10.0, 20.0], [0.0, 0.0]]),
        memory=np.ones(3), capacity=np.array([memory, np.inf]), host=np.array([False, True]), slots=slots, groups=[],
        producer=np.array([0, 1]), read_tensor=np.array([0, 1]), reader=np.array([1, 2]),
    )  # fmt: skip


def test_a_call_transfers_in_computes_and_transfers_out() -> None:
    instance = chain(1, 3.0)
    assert latency_of(instance, np.array([0, 0, 0])) == 6.0
    assert latency_of(instance, np.array([1, 1, 1])) == 60.0
    # Host, then 10 in, 2, 20 out, then host.
    assert latency_of(instance, np.array([1, 0, 1])) == 10 + (10 + 2 + 20) + 30


def test_calls_that_wait_for_one_another_are_infeasible() -> None:
    # The accelerator's call needs the host's node, which needs the call.
    assert latency_of(chain(1, 3.0), np.array([0, 1, 0])) == math.inf


def test_two_pieces_of_one_accelerator_go_through_ram() -> None:
    instance = chain(2, 3.0)
    host = 2
    assert latency_of(instance, np.array([0, host, 1])) == (1 + 10) + 20 + (20 + 3)
    # A tensor from piece 1 to piece 2 goes out and in again.
    assert latency_of(instance, np.array([0, 1, 1])) == (1 + 10) + (10 + 2 + 3)
    # Piece 2 before piece 1 is a circle: calls run in the order of their numbers.
    assert latency_of(instance, np.array([1, host, 0])) == math.inf


def test_memory_is_that_of_all_pieces_together() -> None:
    assert latency_of(chain(2, 2.0), np.array([0, 1, 1])) == math.inf
    assert latency_of(chain(2, 2.0), np.array([0, 1, 2])) < math.inf


def test_an_answer_says_device_and_piece_of_each_node() -> None:
    instance = chain(2, 3.0)
    place = places_of(instance, np.array([0, 0, 1]), np.array([1, 2, 1]))
    answer: CallPlacement = call_placement(instance, place)
    assert answer.placement.tolist() == [0, 0, 1]
    assert answer.values == {"piece": {(0,): 1, (1,): 2, (2,): 1}}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(150))
def test_the_kernel_agrees_with_the_definition(seed: int) -> None:
    instance = random_instance(seed, nodes=8, devices=4)
    rng = np.random.default_rng(seed)
    q = instance.slots
    for _ in range(40):
        device = rng.integers(0, len(instance.capacity), len(instance.unit))
        if rng.random() < 0.8:
            # Mostly places that keep to colocation, in the order of the nodes: they are feasible more often.
            device = np.sort(device)[instance.unit]
        slot = rng.integers(1, q + 1, len(device))
        place = places_of(instance, device, np.sort(slot) if rng.random() < 0.5 else slot)
        assert latency_of(instance, place) == pytest.approx(latency(instance, place.tolist()), rel=1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(60))
def test_the_search_finds_the_optimum_of_small_problems(seed: int) -> None:
    instance = random_instance(seed, nodes=5, devices=2)
    best = optimum(instance)
    search = search_from(instance, None, seed)
    for _, _better in zip(range(40), run(search), strict=False):
        pass
    assert search.value == pytest.approx(best, rel=1e-12)
    if math.isfinite(best):
        assert latency(instance, search.best.tolist()) == pytest.approx(best, rel=1e-12)


@pytest.mark.rotates(1)
def test_one_seed_gives_one_sequence_of_answers() -> None:
    instance = random_instance(11, nodes=8, devices=4)
    found = []
    for _ in range(2):
        search = search_from(instance, None, 3)
        found.append([search.value for _, _better in zip(range(30), run(search), strict=False)])
    assert found[0] == found[1]


def test_random_problems_are_not_all_alike() -> None:
    """What the cases are for: feasible and infeasible places, circles among the latter."""
    infinite = [
        latency_of(case, np.array(place)) == math.inf
        for case in map(random_instance, range(10))
        for place in list(all_places(case))[:50]
    ]
    assert 0 < sum(infinite) < len(infinite)
