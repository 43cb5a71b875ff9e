"""What crosses the boundaries of stages: never above the optimum by enumeration, whatever value is known."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support.tiny_graphs import TinyGraph, optimum

import placedsl
from placedsl.algorithms.partitions.bounds.boundaries import boundary_bounds
from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of


def long_graph(seed: int) -> TinyGraph:
    """Four to nine operators that mostly follow one another."""
    rng = random.Random(f"long graph {seed}")
    count = rng.randint(4, 9)
    readers = [[v for v in range(u + 1, min(count, u + 3)) if rng.random() < 0.7] for u in range(count)]
    return TinyGraph(
        tuple(rng.choice([1.0, 2.0, 3.0, 0.5]) for _ in range(count)),
        tuple(rng.choice([0.0, 0.1, 0.5, 1.0, 5.0]) for _ in range(count)), tuple(map(tuple, readers)),
        rng.choice([2, 3] if count > 7 else [2, 3, 4]),
    )  # fmt: skip


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(25)) for n in range(0, 1000, 20)])
def test_no_bound_exceeds_the_optimum(first: int) -> None:
    raised = 0
    for seed in range(first, first + 20):
        graph = long_graph(seed)
        exact = optimum(graph)
        pipeline = pipeline_of(placedsl.loads(graph.spec()).problem)
        assert pipeline is not None
        for upper in (np.inf, 1.5 * exact, 1.01 * exact, exact):
            found = [
                one.value
                for one in boundary_bounds(pipeline, pipeline.simple, lambda upper=upper: upper, lambda: False)  # type: ignore[misc]
            ]
            assert found == sorted(found)
            assert not found or found[-1] <= exact * (1 + 1e-9), graph
            raised += bool(found)
    assert raised >= 10


def test_without_work_or_order_there_is_none() -> None:
    for graph in (TinyGraph((0.0, 0.0), (1.0, 0.0), ((1,), ()), 2), TinyGraph((1.0, 1.0), (1.0, 0.0), ((), ()), 2)):
        pipeline = pipeline_of(placedsl.loads(graph.spec()).problem)
        assert pipeline is not None
        assert not list(boundary_bounds(pipeline, pipeline.simple, lambda: 5.0, lambda: False))
