"""Lower bounds on the latency of calls: never above the optimum, and reached where they should be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support.subgraph_calls import latency, optimum, random_instance

import placedsl
from placedsl.algorithms.subgraph_calls.bounds.chain_reduction import shorten_chains
from placedsl.algorithms.subgraph_calls.bounds.ideal_dp import (
    TimeLimits,
    bounds_of,
    least_latency,
    longest_path,
    proven_bounds,
)
from placedsl.algorithms.subgraph_calls.bounds.lattice import ideal_lattice
from placedsl.algorithms.subgraph_calls.bounds.reduction import best_devices
from placedsl.algorithms.subgraph_calls.instance import places_of
from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance
from placedsl.evaluation.evaluate import evaluate
from placedsl.export.workload_spec import latency_spec_of_workload
from placedsl.graph.readers import read

pytestmark = pytest.mark.rotates(2)


def exact(instance: CallInstance) -> bool:
    """Nothing is relaxed: alike accelerators of one piece, one host at most, no classes."""
    accelerators = np.flatnonzero(~instance.host)
    alike = all((x[accelerators] == x[accelerators[0]]).all() for x in (instance.time, instance.transfer))
    return alike and instance.slots == 1 and len(instance.unit_start) - 1 == len(instance.unit)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("seed", range(200))
def test_no_bound_is_above_the_optimum(seed: int, told: bool) -> None:
    instance = random_instance(seed, nodes=6 if seed % 3 else 5, devices=2, slots=None if seed % 4 == 0 else 1)
    best = optimum(instance)
    # A search tells the value of its best schedule, or has none yet.
    said = list(bounds_of(instance, upper=lambda: best * 1.01 if told else math.inf))
    bounds = [bound for bound, _ in said]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= best
    assert bounds[-1] >= min(best, longest_path(instance)) * (1 - 1e-9)
    if exact(instance):
        assert bounds[-1] == pytest.approx(best, rel=1e-9)
    # Answers are feasible, each better than the last, and where the bound is met the last one is optimal.
    values = [answer.latency for _, answer in said if answer is not None]
    assert values == sorted(values, reverse=True)
    for _, answer in said:
        if answer is not None:
            place = places_of(instance, answer.placement, answer.slot)
            assert answer.latency == pytest.approx(latency(instance, place.tolist()), rel=1e-9)
    if not told and exact(instance) and math.isfinite(best):
        assert values[-1] == pytest.approx(best, rel=1e-9)
    if told and values:
        assert values[-1] < best * 1.01


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(200))
def test_shorter_chains_take_no_longer(seed: int) -> None:
    instance = random_instance(
        seed, nodes=6 if seed % 3 else 5, devices=2, slots=None if seed % 4 == 0 else 1, chains=True
    )
    problem = best_devices(instance)
    shortened = shorten_chains(problem, 1.0)
    assert shortened == (len(problem.fast) < len(instance.unit))
    assert sorted(v for held in problem.held.values() for v in held) == list(range(len(instance.unit)))
    lattice = ideal_lattice(problem, 1000)
    assert lattice is not None
    *_, (bound, _) = least_latency(lattice, math.inf, problem, {}, TimeLimits())
    assert bound <= optimum(instance) * (1 + 1e-9)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(150))
def test_what_shorter_chains_prove_holds_where_they_are_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "placedsl.algorithms.subgraph_calls.bounds.ideal_dp.LEVELS", ((0.01, 1.0), (0.0, 1.0), (0.0, 0.0))
    )
    instance = random_instance(seed, nodes=6 if seed % 3 else 5, devices=2, slots=1, alike=seed % 2 == 0, chains=True)
    best = optimum(instance)
    *_, (bound, _) = bounds_of(instance)
    assert bound <= best
    if exact(instance):
        assert bound == pytest.approx(best, rel=1e-9)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 1200, 20))
def test_several_calls_share_the_memory_of_an_accelerator(first: int) -> None:
    """Classes of adjacent nodes, little memory, up to three calls: no bound is wrong; many are the optimum."""
    known = reached = found = 0
    for seed in range(first, first + 20):
        instance = random_instance(
            seed, nodes=6 if seed % 7 == 0 else 5, devices=2 if seed % 7 == 0 else 1 + seed % 3,
            slots=3 if seed % 5 == 0 else 2, alike=seed % 2 == 0, chains=seed % 4 > 0, adjacent=True,
        )  # fmt: skip
        best, said = optimum(instance), list(bounds_of(instance))
        bound, values = said[-1][0], [answer.latency for _, answer in said if answer is not None]
        assert bound <= best, seed
        assert all(value >= best * (1 - 1e-9) for value in values), seed
        if 0.0 < best < math.inf:
            known, reached = known + 1, reached + (bound >= best * (1 - 1e-9))
            found += bool(values) and values[-1] <= best * (1 + 1e-9)
    assert 4 * reached >= known <= 2 * found


@pytest.mark.workloads
def test_two_calls_are_better_than_one(workloads: Path, tmp_path: Path) -> None:
    """ResNet50 takes 651.12 in one call each; in two it takes less, and no placement takes less than that."""
    workload = workloads / "dnn-partitioning" / "latency-inputs" / "OperatorGraphs" / "resnet50_inference.json"
    text = latency_spec_of_workload(read(workload, "dnn-partitioning"), workload, tmp_path)
    problem = placedsl.loads(text.replace("schedule calls", "schedule calls { pieces = 2 }"), str(tmp_path)).problem
    said = list(proven_bounds(problem))
    bound, answer = said[-1][0], [answer for _, answer in said if answer is not None][-1]
    report = evaluate(problem, answer.placement, values=answer.values)
    assert report.feasible
    assert report.objectives[0] == pytest.approx(bound, rel=1e-9)
    assert bound == pytest.approx(645.46392334, rel=1e-9)


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
