"""Splits of the published workloads run at their largest load."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from support.timeline_invariants import check

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.evaluation.evaluate import evaluate
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import load, read
from placedsl.problem import placement_files as placements
from placedsl.problem.problem import Problem
from placedsl.simulation.pipeline import simulate

INPUTS = Path("dnn-partitioning/throughput-inputs")


def problem_of(file: Path, folder: Path) -> Problem:
    return placedsl.loads(
        spec_of_workload(read(file, "dnn-partitioning"), file, folder, contiguous=True), folder
    ).problem


def anyhow(problem: Problem, seed: int) -> list[int]:
    """Each node on some device that supports it: no split is cut into more pieces."""
    rng = random.Random(seed)
    return [rng.choice(np.flatnonzero(np.isfinite(times)).tolist()) for times in problem.time]


@pytest.mark.workloads
@pytest.mark.parametrize(
    "name",
    [
        "bert24_*", "bert_l-3_*",
        pytest.param("[!b]*", marks=pytest.mark.everything), pytest.param("bert_*", marks=pytest.mark.everything),
    ],
)  # fmt: skip
def test_contiguous_splits_are_one_piece_a_device_and_pass(workloads: Path, tmp_path: Path, name: str) -> None:
    files = sorted((workloads / INPUTS).glob(f"*/{name}.json"))
    assert files
    for file in files:
        problem = problem_of(file, tmp_path)
        found = contiguous.sliced(problem).placement
        assert found is not None
        placement = found.tolist()
        timeline = simulate(problem, placement, samples=300)
        passes = problem.graph.backward.astype(int).tolist()
        assert len(timeline.stages) == len(set(zip(placement, passes))), file.name
        assert timeline.schedule == ("1f1b" if any(passes) else "pipelined")
        evaluation = evaluate(problem, placement)
        assert np.allclose(timeline.loads, evaluation.loads, rtol=1e-12, atol=0)
        assert timeline.time_per_sample == pytest.approx(evaluation.objectives[0], rel=1e-9)
        assert timeline.samples_in_flight <= len(set(placement))
        check(timeline, placement)


@pytest.mark.workloads
@pytest.mark.parametrize("name", ["bert_l-3_inference", "bert_l-3_training", "bert24_training", "resnet50_inference"])
def test_splits_in_hundreds_of_pieces(workloads: Path, tmp_path: Path, name: str) -> None:
    for file in sorted((workloads / INPUTS).glob(f"*/{name}.json")):
        problem = problem_of(file, tmp_path)
        placement = anyhow(problem, 7)
        timeline = simulate(problem, placement, samples=1200)
        evaluation = evaluate(problem, placement)
        assert np.allclose(timeline.loads, evaluation.loads, rtol=1e-12, atol=0)
        assert timeline.time_per_sample == pytest.approx(evaluation.objectives[0], rel=1e-9)
        check(timeline, placement)


@pytest.mark.workloads
def test_placements_by_hand(workloads: Path, tmp_path: Path) -> None:
    files = sorted((workloads / "dnn-partitioning" / "human-experts").glob("*_expert.json"))
    for file in files:
        problem = problem_of(workloads / INPUTS / "LayerGraphs" / f"{file.stem.removesuffix('_expert')}.json", tmp_path)
        placement = placements.read(problem, load(file))
        timeline = simulate(problem, placement, samples=300)
        assert timeline.time_per_sample == pytest.approx(evaluate(problem, placement).objectives[0], rel=1e-9)
    assert files
