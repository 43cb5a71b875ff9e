"""Orders by minimum cuts: they keep to precedence, and divide wide cells better than other orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.tiny_graphs import long_graph, optimum, tiny_graph

import placedsl
from placedsl.algorithms.partitions import stage_annealing
from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of
from placedsl.algorithms.partitions.instance import partition_units
from placedsl.algorithms.partitions.min_cut_order import min_cut_order
from placedsl.algorithms.partitions.slicing import Slicer
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.evaluation.evaluate import evaluate


@pytest.mark.parametrize("seed", range(0, 300, 12))
def test_it_keeps_to_precedence(seed: int) -> None:
    for one in range(seed, seed + 12):
        graph = long_graph(one) if one % 2 else tiny_graph(one)
        problem = placedsl.loads(graph.spec()).problem
        pipeline = pipeline_of(problem)
        assert pipeline is not None
        order = min_cut_order(pipeline)
        if order is None:
            continue
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        assert (place[pipeline.before] < place[pipeline.after]).all()
        units = partition_units(problem, contiguous=True)
        found = Slicer(units.instance, 0, graph.blocks).slice(order)
        assert found is not None
        assert found.value >= optimum(graph) * (1 - 1e-9)


def test_cells_of_a_real_network_begin_better(tmp_path: Path) -> None:
    """The search begins below the best cut of other orders, and the evaluator agrees."""
    from nasnet import profile

    (tmp_path / "nasnet.txt").write_text(profile(4, 168, 96, 16), encoding="utf-8")
    problem = placedsl.loads(
        'graph from "nasnet.txt"\ndevice gpu[8]: accelerator\ninterconnect { bandwidth = 12 GB/s }\n'
        "minimize time_per_sample\nsubject to\n    contiguous\n    colocated by layer\n",
        tmp_path,
    ).problem
    start = contiguous.sliced(problem)
    search = stage_annealing.begin(problem, start.placement, 0)
    assert search.value < start.value * 0.99
    found = evaluate(problem, search.placement)
    assert not found.violations
    assert found.objectives[0] == pytest.approx(search.value)
