"""Lower bounds on the latency of calls: never above the optimum, and reached where they should be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from calls_cases import latency, optimum, random_calls

import placedsl
from placedsl.algorithms.bounds.calls import Limits, bounds_of, least_latency, longest_path, proven_bounds
from placedsl.algorithms.bounds.calls_chains import shorten_chains
from placedsl.algorithms.bounds.calls_lattice import lattice_of
from placedsl.algorithms.bounds.calls_reduction import relaxed
from placedsl.algorithms.calls import places_of
from placedsl.algorithms.calls_kernel import Calls
from placedsl.cost.evaluate import evaluate
from placedsl.export.spec import latency_spec_of_workload
from placedsl.graph.readers import read


def exact(calls: Calls) -> bool:
    """Nothing is relaxed: alike accelerators of one piece, one host at most, no classes."""
    accelerators = np.flatnonzero(~calls.host)
    alike = all((x[accelerators] == x[accelerators[0]]).all() for x in (calls.time, calls.transfer))
    return alike and calls.pieces == 1 and len(calls.unit_start) - 1 == len(calls.unit)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("seed", range(200))
def test_no_bound_is_above_the_optimum(seed: int, told: bool) -> None:
    calls = random_calls(seed, nodes=6 if seed % 3 else 5, devices=2, pieces=None if seed % 4 == 0 else 1)
    best = optimum(calls)
    # A search tells the value of its best schedule, or has none yet.
    said = list(bounds_of(calls, upper=lambda: best * 1.01 if told else math.inf))
    bounds = [bound for bound, _ in said]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= best
    assert bounds[-1] >= min(best, longest_path(calls)) * (1 - 1e-9)
    if exact(calls):
        assert bounds[-1] == pytest.approx(best, rel=1e-9)
    # Answers are feasible, each better than the last, and where the bound is met the last one is optimal.
    values = [answer.latency for _, answer in said if answer is not None]
    assert values == sorted(values, reverse=True)
    for _, answer in said:
        if answer is not None:
            place = places_of(calls, answer.placement, answer.piece)
            assert answer.latency == pytest.approx(latency(calls, place.tolist()), rel=1e-9)
    if not told and exact(calls) and math.isfinite(best):
        assert values[-1] == pytest.approx(best, rel=1e-9)
    if told and values:
        assert values[-1] < best * 1.01


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(200))
def test_shorter_chains_take_no_longer(seed: int) -> None:
    calls = random_calls(seed, nodes=6 if seed % 3 else 5, devices=2, pieces=None if seed % 4 == 0 else 1, chains=True)
    problem = relaxed(calls)
    shortened = shorten_chains(problem, 1.0)
    assert shortened == (len(problem.fast) < len(calls.unit))
    assert sorted(v for held in problem.held.values() for v in held) == list(range(len(calls.unit)))
    lattice = lattice_of(problem, 1000)
    assert lattice is not None
    *_, (bound, _) = least_latency(lattice, math.inf, problem, {}, Limits())
    assert bound <= optimum(calls) * (1 + 1e-9)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(150))
def test_what_shorter_chains_prove_holds_where_they_are_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placedsl.algorithms.bounds.calls.LEVELS", ((0.01, 1.0), (0.0, 1.0), (0.0, 0.0)))
    calls = random_calls(seed, nodes=6 if seed % 3 else 5, devices=2, pieces=1, alike=seed % 2 == 0, chains=True)
    best = optimum(calls)
    *_, (bound, _) = bounds_of(calls)
    assert bound <= best
    if exact(calls):
        assert bound == pytest.approx(best, rel=1e-9)


@pytest.mark.workloads
@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("OperatorGraphs/bert_l-3_inference.json", 408.4744081),
        ("LayerGraphs/bert24_inference.json", 100.2185),
        ("LayerGraphs/resnet50_inference.json", 1156.88128125),
        ("OperatorGraphs/resnet50_inference.json", 651.1207589921962),
        ("OperatorGraphs/bert_l-6_inference.json", 438.0624865649439),
    ],
)
def test_published_workloads_are_solved_by_the_program_alone(
    workloads: Path, tmp_path: Path, file: str, least: float
) -> None:
    """The published 1191.02 and 672.06 can be improved on, and no further; the evaluator says so too."""
    workload = workloads / "dnn-partitioning" / "latency-inputs" / file
    text = latency_spec_of_workload(read(workload, "dnn-partitioning"), workload, tmp_path)
    problem = placedsl.loads(text, str(tmp_path)).problem
    said = list(proven_bounds(problem))
    bound, answer = said[-1][0], [answer for _, answer in said if answer is not None][-1]
    assert bound == pytest.approx(least, rel=1e-9)
    report = evaluate(problem, answer.placement, values=answer.values)
    assert report.feasible
    assert report.objectives[0] == pytest.approx(least, rel=1e-9)
