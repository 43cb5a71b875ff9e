"""The cheapest set whose prices reach 1, put together from connected sets, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.random_devices import cheapest, load, random_device

from placedsl.algorithms.partitions.bounds import connected_sets
from placedsl.algorithms.partitions.bounds.cheapest_set import CheapestSet
from placedsl.algorithms.partitions.bounds.connected_sets import ConnectedSets
from placedsl.algorithms.partitions.bounds.entangled_pricing import EntangledPricing
from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.units import Hyperedges

pytestmark = pytest.mark.rotates(2)


def sets_of(device: DeviceClass) -> ConnectedSets:
    return ConnectedSets(EntangledPricing(device, lambda: False).tensors)


def connected(device: DeviceClass, taken: tuple[bool, ...]) -> bool:
    """Whether a set has no parts that share no hyperedge."""
    left = {u for u, own in enumerate(taken) if own}
    reached = {min(left)}
    while True:
        beside = {u for pins in device.edges.pins if reached & set(pins) for u in pins} & left
        if beside <= reached:
            return reached == left
        reached |= beside


@pytest.mark.parametrize("seed", range(400))
def test_it_is_that_of_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 3 == 0:
        monkeypatch.setattr(connected_sets, "_STEPS", 3)  # a table that says little
        monkeypatch.setattr(connected_sets, "_FEWEST_STEPS", 1)
    device = random_device(seed)
    rng = np.random.default_rng(3000 + seed)
    highest = 2.0 * float(device.work[np.isfinite(device.work)].sum() + device.edges.cost.sum()) + 1.0
    found = sets_of(device)
    assert found.listed(highest, np.inf)
    for _ in range(5):
        price = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 1 / 3], len(device.work)) * rng.choice([1.0, 0.5, 2.0])
        best, nearly = cheapest(device, price), cheapest(device, price, 1.0 - 1e-8)
        # Below what is asked for, at it, and above it.
        for most in (highest, min(highest, 2.0 * best), best * (1.0 + 1e-7), best, 0.5 * best):
            if most > highest:
                continue
            least, sets, through = found.least(price, most, lambda *_: False)
            assert through
            assert min(nearly, most) * (1.0 - 1e-9) <= least <= min(best, most) * (1.0 + 1e-9)
            for members in sets:
                assert float(price @ members) >= 1.0 - 1e-8
                assert nearly * (1.0 - 1e-9) <= load(device, tuple(members.tolist())) <= most * (1.0 + 1e-9)
            assert sets or best >= most * (1.0 - 1e-8)


@pytest.mark.parametrize("seed", range(200))
def test_all_connected_sets_below_a_load_are_listed(seed: int) -> None:
    device = random_device(seed)
    most = float(np.random.default_rng(seed).uniform(0.1, 6.0))
    found = sets_of(device)
    assert found.listed(most, most)
    every = itertools.islice(itertools.product((False, True), repeat=len(device.work)), 1, None)
    expected = {taken for taken in every if connected(device, taken) and load(device, taken) < most}
    assert found.sets is not None
    members = [own.tolist() for own in np.split(found.sets.unit, found.sets.first[1:-1])] if expected else []
    listed = [tuple(u in own for u in range(len(device.work))) for own in members]
    assert set(listed) == expected
    assert len(listed) == len(expected)
    assert members == sorted(members, key=min)
    for own, said in zip(listed, found.sets.load.tolist(), strict=True):
        assert said == pytest.approx(load(device, own), rel=1e-12, abs=1e-12)


def local(seed: int, units: int) -> DeviceClass:
    """Units that share hyperedges with units near them."""
    rng = np.random.default_rng(seed)
    pins = {tuple(sorted({u, *(int(v) for v in (u + rng.integers(1, 5, 2)) % units)})) for u in range(units)}
    cost = rng.uniform(0.1, 1.0, len(pins))
    return DeviceClass(8, rng.uniform(1.0, 5.0, units), np.zeros(units), Hyperedges(tuple(sorted(pins)), cost))


@pytest.mark.parametrize("seed", range(10))
def test_both_searches_agree_where_nothing_can_be_enumerated(seed: int) -> None:
    device = local(seed, 70)
    price = np.random.default_rng(seed).uniform(0.5, 1.5, 70)
    price *= 20.0 / price.sum()
    found = sets_of(device)
    assert found.listed(30.0, np.inf)
    least, sets, through = found.least(price, 30.0, lambda *_: False)
    assert through
    other, members, ended = CheapestSet(device).least(price, lambda: 30.0, lambda *_: False)
    assert ended
    assert members is not None
    assert least == pytest.approx(other, rel=1e-9)
    assert load(device, tuple(sets[0].tolist())) == pytest.approx(least, rel=1e-9)
    loads = [load(device, tuple(own.tolist())) for own in sets]
    assert loads == sorted(loads)


def test_a_search_that_is_left_says_what_no_set_is_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected_sets, "_LOOKS", 50)
    device = local(3, 70)
    price = np.random.default_rng(3).uniform(0.5, 1.5, 70)
    price *= 20.0 / price.sum()
    found = sets_of(device)
    assert found.listed(30.0, np.inf)
    optimum, _, _ = found.least(price, 30.0, lambda *_: False)
    heard: list[tuple[float, float]] = []
    early, _, through = found.least(price, 30.0, lambda *said: heard.append(said) or len(heard) == 2)
    assert not through
    assert 0.0 < early <= optimum
    assert all(least <= optimum * (1.0 + 1e-9) <= known * (1.0 + 2e-9) for least, known in heard)


def test_too_many_sets_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    device = local(1, 60)
    for name in ("MOST_SETS", "_MOST_NODES"):
        with monkeypatch.context() as few:
            few.setattr(connected_sets, name, 100)
            found = sets_of(device)
            assert not found.listed(20.0, np.inf)
        assert not found.listed(19.9, np.inf)  # about as many
        assert found.listed(8.0, np.inf)


def test_without_a_load_that_is_known_nothing_is_listed() -> None:
    assert not sets_of(local(1, 20)).listed(np.inf, np.inf)
