"""Where the boundaries of stages can lie: never above the optimum by enumeration, and what is cut by sets of so much
work never above what some set cuts."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from nasnet import profile
from support.tiny_graphs import TinyGraph, long_graph, optimum, tiny_graph

import placedsl
from placedsl.algorithms.partitions import stage_annealing
from placedsl.algorithms.partitions.bounds.boundaries import BoundaryFlows, boundary_bounds
from placedsl.algorithms.partitions.bounds.boundary_positions import position_bounds
from placedsl.algorithms.partitions.bounds.least_cuts import LeastCuts
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline, pipeline_of

#: Parts of ranges that are looked at, of a graph.
PARTS = 1_000


def pipeline(graph: TinyGraph) -> Pipeline:
    """That of a tiny graph."""
    found = pipeline_of(placedsl.loads(graph.spec()).problem)
    assert found is not None
    return found


def ideals(one: Pipeline) -> list[np.ndarray]:
    """All sets that hold with a unit what comes before it."""
    every = (np.array(bits, dtype=bool) for bits in itertools.product((False, True), repeat=len(one.work)))
    return [inside for inside in every if not (inside[one.after] & ~inside[one.before]).any()]


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(25)) for n in range(0, 1000, 20)])
def test_no_bound_exceeds_the_optimum(first: int) -> None:
    raised = proven = 0
    for seed in range(first, first + 20):
        for graph in (long_graph(seed), tiny_graph(seed)):
            one, exact = pipeline(graph), optimum(graph)
            if not one.work.sum() > 0.0:
                continue
            for upper in (np.inf, 1.5 * exact, 1.01 * exact, exact):
                calls = itertools.count()
                found = [
                    bound.value
                    for bound in position_bounds(
                        one,
                        one.simple,
                        lambda upper=upper: upper,
                        lambda calls=calls: next(calls) > PARTS,  # type: ignore[misc]
                    )
                ]
                assert found == sorted(found)
                assert not found or found[-1] <= exact * (1 + 1e-9), graph
            raised += bool(found)
            proven += bool(found) and found[-1] >= exact * (1 - 1e-6)
    assert raised >= 10
    assert proven >= 2


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.sampled(10)) for n in range(60)])
def test_what_is_cut_at_least(seed: int) -> None:
    """By enumeration, for ranges of work and parts of tensors; with many nodes it is the least of a point."""
    rng = np.random.default_rng(seed)
    one = pipeline(long_graph(seed) if seed % 3 else tiny_graph(seed))
    flows = BoundaryFlows.of(one)
    if flows is None:
        return
    cuts = LeastCuts(one, flows.until[0], flows.beyond[0])
    sets = ideals(one)
    works = np.array([one.work[inside].sum() for inside in sets])
    for _ in range(30):
        kept = rng.random(len(cuts.pin)) < rng.choice([0.5, 1.0])
        crossed = []
        for inside in sets:
            hub = inside[cuts.hub[cuts.edge]]
            apart = kept & (hub != inside[cuts.pin])
            crossed.append(cuts.cost[np.unique(cuts.edge[apart])].sum())
        point = float(rng.choice(works))
        low = point - rng.choice([0.0, 0.3, 1.0])
        high = point + rng.choice([0.0, 0.3, 1.0])
        held = (works >= low - 1e-12) & (works <= high + 1e-12)
        exact = float(np.array(crossed)[held].min())
        for nodes in (1, 4, 1000):
            found = cuts.least(low, high, kept, np.inf, nodes)
            assert found <= exact * (1 + 1e-9) + 1e-12
        if low == high:
            assert found >= exact - 1e-8 * (1.0 + works.max())
        enough = 0.5 * exact
        assert cuts.least(low, high, kept, enough, 1000) >= min(enough, found) * (1 - 1e-9)


def test_without_order_or_work_there_is_none() -> None:
    for graph in (TinyGraph((0.0, 0.0), (1.0, 0.0), ((1,), ()), 2), TinyGraph((1.0, 1.0), (1.0, 0.0), ((), ()), 2)):
        one = pipeline(graph)
        assert not list(position_bounds(one, one.simple, lambda: 5.0, lambda: False))
    one = pipeline(long_graph(3))
    assert not list(position_bounds(one, one.simple, lambda: 50.0, lambda: True))


def test_cells_of_a_real_network(tmp_path: Path) -> None:
    """Above what crosses the boundaries wherever they lie, and not above a pipeline that is known."""
    (tmp_path / "nasnet.txt").write_text(profile(2, 168, 96, 16), encoding="utf-8")
    problem = placedsl.loads(
        'graph from "nasnet.txt"\ndevice gpu[6]: accelerator\ninterconnect { bandwidth = 12 GB/s }\n'
        "minimize time_per_sample\nsubject to\n    contiguous\n    colocated by layer\n",
        tmp_path,
    ).problem
    one, value = pipeline_of(problem), stage_annealing.begin(problem, None, 0).value
    assert one is not None
    known = max(bound.value for bound in boundary_bounds(one, one.simple, lambda: value, lambda: False))
    calls = itertools.count()
    found = [bound.value for bound in position_bounds(one, known, lambda: value, lambda: next(calls) > 4 * PARTS)]
    assert known < found[0]
    assert known * 1.01 < found[-1] <= value
