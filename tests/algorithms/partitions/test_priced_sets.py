"""The most valuable set on one device: the layered graph, its envelopes and its labels, against enumeration."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from support import brute_force
from support.apart import Apart
from support.like_pipelines import like_pipeline
from support.random_devices import load, random_device

import placedsl
from placedsl.algorithms.partitions.bounds.pricing import Pricing
from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.partitions.bounds.state_graph import state_graph
from placedsl.algorithms.units import Hyperedges

pytestmark = pytest.mark.rotates(2)

CASES = range(150)


def best_value(device: DeviceClass, price: np.ndarray, largest: float) -> float:
    """By enumeration, loads within rounding of the limit included."""
    return max(
        float(price @ np.array(taken))
        for taken in itertools.product((False, True), repeat=len(price))
        if load(device, taken) <= largest * (1 + 1e-12)
    )


@pytest.mark.parametrize("seed", CASES)
def test_pricing_agrees_with_enumeration(seed: int) -> None:
    device = random_device(seed)
    rng = np.random.default_rng(1000 + seed)
    # Often exactly the load of some set.
    every = [load(device, t) for t in itertools.product((False, True), repeat=len(device.work))]
    finite = sorted(v for v in every if np.isfinite(v))
    largest = float(rng.choice(finite)) if rng.random() < 0.5 else float(rng.uniform(0.1, 1.2)) * finite[-1]
    graph = state_graph(device, largest)
    assert graph is not None
    search = Pricing(graph)
    for _ in range(4):
        price = rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 1 / 3], len(device.work)) * rng.choice([1, 1e-6, 1e6])
        best = best_value(device, price, largest)
        rounding = 1e-12 * float(np.abs(price).sum())
        bound, mixed = search.relaxed(price, largest)
        assert bound >= best - rounding
        assert ((mixed >= -1e-9) & (mixed <= 1 + 1e-9)).all()
        assert float(mixed @ price) == pytest.approx(bound, abs=1e-6 * float(np.abs(price).sum()))
        value, sets, final = search.best_priced_set(price, largest, -1.0, 10**6, 3)
        assert final
        assert value == pytest.approx(best, rel=1e-6, abs=1e-7 * float(np.abs(price).sum()))
        # With few labels some stand for others: the bound holds, what is found is real, and it says what it may miss.
        for keep in (1, 2, 4):
            few, real, all_followed = search.best_priced_set(price, largest, -1.0, keep, 3)
            assert few >= best - rounding
            assert not all_followed or few <= best + 1e-7 * float(np.abs(price).sum())
            sets += real
        for taken, said in sets:
            assert load(device, tuple(taken.tolist())) == pytest.approx(said, rel=1e-9, abs=1e-12)
            assert said <= largest * (1 + 1e-8)
        # Only what exceeds a threshold is sought, and nothing better is missed.
        above, found, _ = search.best_priced_set(price, largest, best / 2, 10**6, 3)
        assert above >= best - rounding
        assert found or best <= best / 2 + rounding


@pytest.mark.parametrize("seed", range(40))
def test_leaving_cheap_transfers_out_lowers_loads_only(seed: int) -> None:
    device = random_device(seed)
    largest = 4.0
    full, reduced = state_graph(device, largest), state_graph(device, largest, 0.2)
    assert full is not None
    assert reduced is not None
    price = np.random.default_rng(seed).uniform(0, 1, len(device.work))
    exact = Pricing(full).best_priced_set(price, largest, -1.0, 10**6, 1)[0]
    assert Pricing(reduced).best_priced_set(price, largest, -1.0, 10**6, 1)[0] >= exact - 1e-12


def test_a_chain_needs_three_states_a_layer() -> None:
    units = 200
    pins = tuple((i, i + 1) for i in range(units - 1))
    device = DeviceClass(1, np.ones(units), np.zeros(units), Hyperedges(pins, np.ones(units - 1)))
    graph = state_graph(device, 50.0)
    assert graph is not None
    assert np.diff(graph.state_start).max() <= 3
    # One unbroken piece: 48 units and two transfers, or 49 and one at an end.
    value, sets, _ = Pricing(graph).best_priced_set(np.ones(units), 50.0, 0.0, 10**6, 1)
    assert value == 49.0
    assert sets[0][1] == 50.0


def searches(first: int, listed: bool) -> list[str]:
    """What is wrong with sets of wide graphs, for twenty random devices: those put together from connected sets, or by
    annealing, and branch and bound over cuts."""
    from placedsl.algorithms.partitions.bounds import connected_sets
    from placedsl.algorithms.partitions.bounds.entangled_pricing import EntangledPricing

    connected_sets.MOST_SETS = connected_sets.MOST_SETS if listed else 0

    wrong = []
    for seed in range(first, first + 20):
        device, rng = random_device(seed), np.random.default_rng(2000 + seed)
        search = EntangledPricing(device, lambda: False)
        for _ in range(3):
            price = rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 1 / 3], len(device.work)) * rng.choice([1, 1e-6, 1e6])
            largest = float(rng.uniform(0.1, 4.0))
            best = best_value(device, price, largest)
            scale = float(np.abs(price).sum())
            for threshold in (0.5 * best, best * (1 + 1e-9) + 1e-9 * scale, 1.2 * best + 0.1 * scale):
                bound, sets, final = search.best_priced_set(price, largest, threshold, 30, 5)
                if bound < best - 1e-9 * scale:
                    wrong.append(f"{seed}: bound {bound}, best {best}")
                if final and not sets and bound > max(threshold, best) + 1e-6 * scale:
                    wrong.append(f"{seed}: bound {bound} where nothing is worth {threshold}, best {best}")
                for taken, used in sets:
                    own = load(device, tuple(taken.tolist()))
                    poor = price @ taken < threshold * (1 - 1e-8) - 1e-12 * scale
                    if own > largest * (1 + 1e-9) or abs(own - used) > 1e-9 * (1 + own) or poor:
                        wrong.append(f"{seed}: a set of load {own}, worth {price @ taken}")
    return wrong


@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(4)) for n in range(0, 400, 20)])
def test_searches_for_sets_of_wide_graphs_agree_with_enumeration(first: int, listed: bool) -> None:
    """In a process of their own, for they load HiGHS."""
    process = Apart()
    try:
        assert process.call("bounds", searches, first, listed) == []
    finally:
        process.close()


def wide(
    texts: list[tuple[str, float]], known: float = 1.0, listed: bool = True, share: float | None = None,
    elsewhere: float = 0.0,
) -> list[float]:  # fmt: skip
    """The partition bound of each spec as if its graph were too wide for layers; ``known`` times the optimum is the
    best value that it hears of, ``elsewhere`` times the optimum a bound.  ``share``: as of the partition bound."""
    from placedsl.algorithms.partitions.bounds import connected_sets, partition

    connected_sets.MOST_SETS = connected_sets.MOST_SETS if listed else 0

    partition.state_graph = lambda *_: None  # type: ignore[assignment]
    out = []
    for text, optimum in texts:
        until = time.monotonic() + (3.0 if known == 1.0 else 0.5)
        problem = placedsl.loads(text).problem
        bounds = partition.partition_bounds(
            problem, upper=lambda most=known * optimum: most, over=lambda until=until: time.monotonic() > until,
            lower=lambda least=elsewhere * optimum: least, share=share,
        )  # fmt: skip
        out.append(max((bound.value for bound in bounds), default=0.0))
    return out


@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("known", [1.0, 1.3, np.inf])
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(8)) for n in range(0, 200, 10)])
def test_bounds_of_wide_graphs_are_no_more_than_the_optimum(first: int, known: float, listed: bool) -> None:
    asked = []
    for seed in range(first, first + 10):
        found = brute_force.best(placedsl.loads(like_pipeline(seed)).problem)
        if found is not None:
            asked.append((like_pipeline(seed), found[0]))
    process = Apart()
    try:
        for (text, optimum), bound in zip(asked, process.call("bounds", wide, asked, known, listed), strict=True):
            assert bound <= optimum * (1 + 1e-9), text
    finally:
        process.close()


def side_by_side(texts: list[tuple[str, float]], share: float, elsewhere: float) -> list[float]:
    """The partition bound of each spec from one of several thresholds, on layered graphs."""
    from placedsl.algorithms.partitions.bounds import partition

    out = []
    for text, optimum in texts:
        until = time.monotonic() + 3.0
        bounds = partition.partition_bounds(
            placedsl.loads(text).problem, upper=lambda most=1.3 * optimum: most,
            over=lambda until=until: time.monotonic() > until, lower=lambda least=elsewhere * optimum: least,
            share=share,
        )  # fmt: skip
        out.append(max((bound.value for bound in bounds), default=0.0))
    return out


@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("share", [0.25, 0.5, 0.875])
@pytest.mark.parametrize("elsewhere", [0.0, 0.9])
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(4)) for n in range(0, 80, 8)])
def test_bounds_from_any_threshold_are_no_more_than_the_optimum(first: int, share: float, elsewhere: float) -> None:
    """Whatever is proven elsewhere meanwhile."""
    asked = []
    for seed in range(first, first + 8):
        found = brute_force.best(placedsl.loads(like_pipeline(seed)).problem)
        if found is not None:
            asked.append((like_pipeline(seed), found[0]))
    process = Apart()
    try:
        layered = process.call("bounds", side_by_side, asked, share, elsewhere)
        entangled = process.call("bounds", wide, asked, 1.3, True, share, elsewhere)
    finally:
        process.close()
    for (text, optimum), *bounds in zip(asked, layered, entangled, strict=True):
        assert max(bounds) <= optimum * (1 + 1e-9), text
