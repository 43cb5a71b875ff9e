"""What crosses the boundaries of stages: never above the optimum by enumeration, whatever value is known."""

from __future__ import annotations

import numpy as np
import pytest
from support.tiny_graphs import TinyGraph, long_graph, optimum

import placedsl
from placedsl.algorithms.partitions.bounds.boundaries import boundary_bounds
from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of


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
