"""Minimum cuts and superblocks: never above the optimum by enumeration, and equal to it where they have to be."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from support.apart import Apart
from support.brute_force import best
from support.like_pipelines import like_pipeline
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.flow import flow_bounds
from placedsl.algorithms.partitions.bounds.relaxation import relaxation
from placedsl.arrays import Integers
from placedsl.evaluation.evaluate import evaluate

pytestmark = [pytest.mark.xdist_group("bounds")]


@pytest.fixture(scope="module")
def process() -> Iterator[Apart]:
    started = Apart()
    yield started
    started.close()


def by_enumeration(text: str) -> float:
    """max over units of the cheapest set that it is in, on the class that is best for it."""
    relaxed = relaxation(placedsl.loads(text).problem)
    least = np.full(relaxed.units, np.inf)
    for device in relaxed.classes:
        for chosen in itertools.product((False, True), repeat=relaxed.units):
            inside = np.array(chosen)
            cut = [0 < inside[list(pins)].sum() < len(pins) for pins in device.edges.pins]
            load = device.work[inside].sum() + device.edges.cost[np.array(cut, dtype=bool)].sum()
            least[inside] = np.minimum(least[inside], load)
    return float(least.max())


def flow(text: str, upper: float = np.inf) -> float:
    relaxed = relaxation(placedsl.loads(text).problem)
    found = list(flow_bounds(relaxed, str, -1.0, lambda: upper, lambda: False, 60.0))
    assert [b.value for b in found] == sorted(b.value for b in found)
    return found[-1].value if found else 0.0


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(600))
def test_minimum_cuts_are_the_cheapest_sets(seed: int) -> None:
    text = like_pipeline(seed) if seed % 2 else re.sub(r"    custom\d.*\n|schedule \w+\n", "", random_spec(seed))
    text = text.replace("subject to\n", "") if text.endswith("subject to\n") else text
    exact, found = by_enumeration(text), best(placedsl.loads(text).problem)
    value = flow(text)
    if np.isfinite(exact):  # else some unit is on no device
        assert value == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert value <= exact * (1 + 1e-12)
    if found is not None:
        assert value <= found[0] * (1 + 1e-12)
        assert flow(text, found[0]) <= found[0] * (1 + 1e-12)


def test_more_units_than_are_looked_at_leave_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """With only some of the units around one: no more than with all of them."""
    from placedsl.algorithms.partitions.bounds import flow as module

    for seed in range(60):
        text = like_pipeline(seed)
        exact = by_enumeration(text)
        for most in (1, 2, 4):
            monkeypatch.setattr(module, "_MOST_UNITS", most)
            assert flow(text) <= exact * (1 + 1e-12)


def superblocks(texts: list[tuple[str, float]]) -> list[tuple[float, float]]:
    """The best bound of each spec, and the best value of the placements that came with it."""
    from placedsl.algorithms.partitions.bounds.superblocks import prove_superblocks

    out = []
    for text, upper in texts:
        problem = placedsl.loads(text).problem
        heard = [-np.inf]
        values = [np.inf]

        def told(
            bound: Bound | None, placement: Integers | None, heard: list[float] = heard, values: list[float] = values
        ) -> None:
            heard.append(-np.inf if bound is None else bound.value)
            if placement is not None:
                evaluation = evaluate(problem, placement.tolist())  # noqa: B023 - called within the loop
                assert {v.rule for v in evaluation.violations} <= {"memory"}
                values.append(np.inf if evaluation.violations else evaluation.objectives[0])

        prove_superblocks(problem, lambda upper=upper: upper, lambda: False, told, blocks=(2, 4))  # type: ignore[misc]
        out.append((max(heard), min(values)))
    return out


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(4)) for n in range(0, 600, 20)])
def test_superblocks_are_no_more_than_the_optimum(process: Apart, first: int) -> None:
    """With and without a value that is known; what is proven of two to four devices is the optimum itself."""
    asked = []
    for seed in range(first, first + 20):
        text = like_pipeline(seed)
        found = best(placedsl.loads(text).problem)
        optimum = np.inf if found is None else found[0]
        asked += [(text, np.inf, optimum), (text, optimum * 1.02, optimum)]
    for (text, _, optimum), (bound, _) in zip(
        asked, process.call("bounds", superblocks, [one[:2] for one in asked]), strict=True
    ):
        assert bound <= optimum * (1 + 1e-9), text
        if "memory\n" not in text:
            assert bound == pytest.approx(optimum, rel=1e-6, abs=1e-12), text
