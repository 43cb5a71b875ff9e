"""Sets that processes which price them tell one another: bounds that hold, whatever comes."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from support import brute_force
from support.apart import Apart
from support.cluster_members import Hub
from support.like_pipelines import like_pipeline

import placedsl
from placedsl.algorithms.partitions.bounds.shared_sets import SharedSets


@pytest.mark.parametrize("units", [1, 7, 8, 9, 70])
def test_sets_come_as_they_were_told(units: int) -> None:
    rng = np.random.default_rng(units)
    hub = Hub(3)
    one, other, third = (SharedSets(line, units) for line in hub.lines)
    sets = [(k % 2, rng.random(units) < 0.5, float(k)) for k in range(6)]
    one.tell(sets)
    heard = other.heard()
    assert {(k, own.tobytes()) for k, own, _ in heard} == {(k, own.tobytes()) for k, own, _ in sets}
    assert all(own.dtype == bool and len(own) == units for _, own, _ in heard)
    assert one.heard() == other.heard() == []
    hub.lines[0].tell({("set", units + 1, True, 0, b"\\0"): 1.0, ("block", 0, 1, 2, 0, 0, 0): 1.0})
    assert other.heard() == []
    assert len(third.heard()) == len(heard)


def test_loads_that_leave_something_out_are_not_told_to_those_who_count_it() -> None:
    hub = Hub(3)
    fewer, alike, full = (
        SharedSets(line, 3, full=whole) for line, whole in zip(hub.lines, (False, False, True), strict=True)
    )
    fewer.tell([(0, np.array([True, False, True]), 1.0)])
    assert [load for _, _, load in alike.heard()] == [1.0]
    assert full.heard() == []


def together(texts: list[tuple[str, float]], wide: bool, seconds: float) -> list[tuple[float, int]]:
    """The best partition bound of three members that take turns, and how many sets they have told."""
    from placedsl.algorithms.partitions.bounds import partition

    graph = partition.state_graph
    if wide:
        partition.state_graph = lambda *_: None  # type: ignore[assignment]
    out = []
    for text, optimum in texts:
        problem, hub = placedsl.loads(text).problem, Hub(3)
        until = time.monotonic() + seconds
        members = [
            partition.partition_bounds(
                problem, upper=lambda most=1.2 * optimum: most, over=lambda until=until: time.monotonic() > until,
                share=share, exchange=line,
            )
            for line, share in zip(hub.lines, (None, 0.5, 0.25), strict=True)
        ]  # fmt: skip
        best = 0.0
        for bounds in itertools.zip_longest(*members):
            best = max([best, *(bound.value for bound in bounds if bound is not None)])
        out.append((best, len(hub.told)))
    partition.state_graph = graph
    return out


@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(4)) for n in range(0, 80, 8)])
def test_no_bound_lies_above_the_optimum(first: int, wide: bool) -> None:
    asked = []
    for seed in range(first, first + 8):
        found = brute_force.best(placedsl.loads(like_pipeline(seed)).problem)
        if found is not None:
            asked.append((like_pipeline(seed), found[0]))
    process = Apart()
    try:
        answers = process.call("bounds", together, asked, wide, 2.0)
    finally:
        process.close()
    for (text, optimum), (bound, _) in zip(asked, answers, strict=True):
        assert bound <= optimum * (1 + 1e-9), text
    assert sum(told for _, told in answers) > 0
