"""The cheapest set whose prices reach 1, by branch and bound over minimum cuts, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from support.random_devices import cheapest, load, random_device

from placedsl.algorithms.partitions.bounds.cheapest_set import CheapestSet
from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.units import Hyperedges

pytestmark = pytest.mark.rotates(2)


@pytest.mark.parametrize("seed", range(400))
def test_it_is_that_of_enumeration(seed: int) -> None:
    device = random_device(seed)
    rng = np.random.default_rng(3000 + seed)
    search = CheapestSet(device)
    for _ in range(5):
        price = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 1 / 3], len(device.work)) * rng.choice([1.0, 0.5, 2.0])
        best = cheapest(device, price)
        # Below what is asked for, at it, and above it.
        for upper in (np.inf, 2.0 * best, best * (1.0 + 1e-7), best, 0.5 * best):
            least, members, through = search.least(price, lambda upper=upper: upper, lambda *_: False)
            assert through
            assert least <= best * (1.0 + 1e-12)
            assert least >= min(best, upper) * (1.0 - 1e-6) - 1e-9 or not np.isfinite(min(best, upper))
            if members is not None:
                assert float(price @ members) >= 1.0
                assert load(device, tuple(members.tolist())) == pytest.approx(best, rel=1e-6, abs=1e-9)
            assert members is not None or best >= upper * (1.0 - 1e-6) - 1e-9


def entangled(seed: int, units: int) -> tuple[DeviceClass, np.ndarray]:
    """A device and prices whose search takes a while."""
    rng = np.random.default_rng(seed)
    pins = tuple(
        {tuple(sorted(rng.choice(units, int(rng.integers(2, 5)), replace=False).tolist())): 0 for _ in range(units)}
    )
    device = DeviceClass(
        4, rng.uniform(1.0, 5.0, units), np.zeros(units), Hyperedges(pins, rng.uniform(0.5, 4.0, len(pins)))
    )
    price = rng.uniform(0.0, 1.0, units)
    return device, price * (4.0 / price.sum())


@pytest.mark.parametrize("seed", range(8))
def test_what_is_proven_at_any_time_is_a_bound(seed: int) -> None:
    device, price = entangled(seed, 34)
    search = CheapestSet(device)
    optimum, members, through = search.least(price, lambda: np.inf, lambda *_: False)
    assert through
    assert members is not None
    assert load(device, tuple(members.tolist())) == pytest.approx(optimum, rel=1e-9)
    said: list[float] = []
    found: list[float] = []

    def heard(least: float, known: float) -> bool:
        said.append(least)
        found.append(known)
        return False

    again, _, _ = search.least(price, lambda: np.inf, heard)
    assert again == optimum
    assert all(
        least <= optimum * (1.0 + 1e-9) <= known * (1.0 + 2e-9) for least, known in zip(said, found, strict=True)
    )
    # Left at once, it has a bound still; with the value known it is through sooner.
    early, _, ended = search.least(price, lambda: np.inf, lambda *_: True)
    assert 0.0 <= early <= optimum
    assert ended or early < optimum
    search.nodes = 0
    search.least(price, lambda: np.inf, lambda *_: False)
    whole, search.nodes = search.nodes, 0
    least, none, _ = search.least(price, lambda: optimum, lambda *_: False)
    assert none is None or load(device, tuple(none.tolist())) <= optimum * (1.0 + 1e-8)
    assert least == pytest.approx(optimum, rel=1e-9)
    assert search.nodes <= whole


def test_where_nothing_is_worth_1_the_limit_is_all_there_is_to_say() -> None:
    device = random_device(1)
    search = CheapestSet(device)
    assert search.least(np.zeros(len(device.work)), lambda: 7.0, lambda *_: False) == (7.0, None, True)
