"""What sets are worth within a load: looking at all of them, against enumeration in fractions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from support.random_devices import random_device

from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.certificates.checked import RefusedError, sets
from placedsl.certificates.checked.sets import TooManySetsError, none_worth_more

pytestmark = pytest.mark.rotates(2)
LEAST = Fraction(1, 10**12)


def in_fractions(device: DeviceClass) -> tuple[list[Fraction | None], dict[frozenset[int], Fraction]]:
    work = [Fraction(float(own)) if np.isfinite(own) else None for own in device.work]
    pins = zip(device.edges.pins, device.edges.cost.tolist(), strict=True)
    return work, {frozenset(own): Fraction(cost) for own, cost in pins}


def every(
    work: list[Fraction | None], moving: dict[frozenset[int], Fraction], worth: list[Fraction]
) -> Iterator[tuple[Fraction, Fraction]]:
    """The load and the worth of every set."""
    for taken in itertools.product((False, True), repeat=len(work)):
        inside = {u for u, own in enumerate(taken) if own}
        times = [work[u] for u in inside]
        if None in times:
            continue
        cut = sum((cost for pins, cost in moving.items() if pins & inside and pins - inside), Fraction(0))
        yield sum(times, cut), sum((worth[u] for u in inside), Fraction(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(400))
def test_what_is_accepted_is_what_enumeration_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "STEPS", (1, 7, 256)[seed % 3])
    rng = np.random.default_rng(5000 + seed)
    work, moving = in_fractions(random_device(seed))
    for _ in range(4):
        worth = [Fraction(float(w)) for w in rng.choice([-1.0, 0.0, 0.5, 1.0, 1 / 3, 1e-9], len(work))]
        known = list(every(work, moving, worth))
        # Often exactly what some set loads.
        largest = known[int(rng.integers(len(known)))][0]
        if rng.random() < 0.3:
            largest = Fraction(float(rng.uniform(0.0, 4.0)))
        most = max((value for load, value in known if load <= largest), default=Fraction(0))
        none_worth_more(work, moving, worth, largest, most)
        none_worth_more(work, moving, worth, largest, most + LEAST)
        if most > 0:
            with pytest.raises(RefusedError, match="worth more"):
                none_worth_more(work, moving, worth, largest, most - min(LEAST, most))


@pytest.mark.parametrize("name", ["MOST_LISTED", "MOST_TRIED"])
def test_more_than_is_looked_at_is_told_as_that(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    units = 12
    work: list[Fraction | None] = [Fraction(1)] * units
    moving = {frozenset((u, (u + 1) % units)): Fraction(1, 10) for u in range(units)}
    worth, largest = [Fraction(100 + u) for u in range(units)], Fraction(5)
    none_worth_more(work, moving, worth, largest, Fraction(438))
    monkeypatch.setattr(sets, name, 20)
    with pytest.raises(TooManySetsError, match="more than 20 steps"):
        none_worth_more(work, moving, worth, largest, Fraction(438))
