"""Dynamic programming under GPipe's schedule, against enumeration."""

from __future__ import annotations

import math
import random

import pytest
from support.brute_force import best, best_by_evaluation
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import ignored, reasons_against
from placedsl.evaluation.evaluate import evaluate

pytestmark = pytest.mark.rotates(2)


def specs(first: int, last: int) -> list[str]:
    """Random training graphs, contiguous and without rules of their own, all under GPipe's schedule."""
    out = []
    for seed in range(first, last):
        text = random_spec(seed)
        if "backward = true" in text and "contiguous" in text and "custom" not in text:
            lines = [line for line in text.splitlines() if not line.startswith("schedule")]
            out.append("\n".join(["schedule gpipe", *lines]) + "\n")
    return out


@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_random_training_graphs(first: int) -> None:
    """The value, and that it is the evaluator's; no pipeline is found just where there is none."""
    compared = 0
    for text in specs(first, first + 100):
        problem = placedsl.loads(text).problem
        found, least = contiguous.solve(problem), best(problem)
        assert found.complete
        compared += 1
        if least is None:
            assert found.placement is None
            continue
        assert found.placement is not None
        assert math.isclose(found.value, least[0], rel_tol=1e-9)
        evaluation = evaluate(problem, found.placement)
        assert not evaluation.violations
        assert math.isclose(evaluation.objectives[0], found.value, rel_tol=1e-9)
    assert compared >= 4


def training_spec(seed: int, schedule: str) -> str:
    """Forward nodes and backward nodes of some of them, with leaves of either kind, isolated nodes and groups; times
    and tensors of unlike magnitudes."""
    rng = random.Random(seed)
    nodes = rng.randint(1, 3)
    backward = [v for v in range(nodes) if rng.random() < 0.7]
    time, size = rng.choice([1, 1, 1e-4, 1e3]), rng.choice([1, 1, 1e-3, 1e3])
    odd, (gpus, hosts) = rng.choice([1, 1, 300]), rng.choice([(2, 0), (2, 1), (1, 1), (3, 0), (1, 2)])
    lines = ["graph {"]
    for v in range(nodes):
        for name, rest in ((f"n{v}", ""), (f"b{v}", ", backward = true"))[: 1 + (v in backward)]:
            quick, slow = time * rng.choice([0, 1, 2, 3, 5, odd]), time * rng.choice([2, 4, 9])
            times = [f"accelerator: {quick:.4g} ms"] if rng.random() < 0.9 or not hosts else []
            times += [f"host: {slow:.4g} ms"] if rng.random() < 0.8 or not times else []
            colour = f", color = {v}" if rng.random() < 0.5 else ""
            lines.append(
                f"    node {name} {{ time = {{{', '.join(times)}}}, memory = {rng.choice([0, 1, 2])} MiB, "
                f"output = {size * rng.choice([0, 1, 4, 9, odd]):.4g} MiB{colour}{rest} }}"
            )
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if rng.random() < 0.5:
                lines += [f"    n{u} -> n{v}"] + [f"    b{v} -> b{u}"] * (u in backward and v in backward)
    lines += [f"    n{v} -> b{v}" for v in backward if rng.random() < 0.6] + ["}"]
    lines.append(f"device gpu[{gpus}]: accelerator {{ memory = {rng.choice([2, 4, 9])} MiB }}")
    lines += [f"device cpu[{hosts}]: host"] * (hosts > 0)
    lines.append(f"interconnect {{ bandwidth = {size / time * rng.choice([0.4, 1, 8]):.6g} GiB/s }}")
    lines += [schedule, "minimize time_per_sample", "subject to", "    contiguous"]
    lines += ["    memory"] * (rng.random() < 0.8) + ["    colocated by color"] * any("color" in line for line in lines)
    return "\n".join(lines) + "\n"


@pytest.mark.sampled(30)
@pytest.mark.parametrize("communication", ["sequential", "overlapped", "full_duplex"])
@pytest.mark.parametrize("first", range(50_000, 52_000, 20))
def test_communication_models(first: int, communication: str) -> None:
    """The value of each, by the evaluator over all placements."""
    for seed in range(first, first + 20):
        text = training_spec(seed, f"schedule gpipe {{ communication = {communication} }}")
        problem = placedsl.loads(text).problem
        assert not reasons_against(problem, contiguous.SUPPORTS), seed
        assert not ignored(problem, contiguous.SUPPORTS), seed
        found, least = contiguous.solve(problem), best_by_evaluation(problem)
        assert found.complete, seed
        if least is None:
            assert found.placement is None, seed
            continue
        assert found.placement is not None, seed
        evaluation = evaluate(problem, found.placement.tolist())
        assert not evaluation.violations, seed
        assert math.isclose(found.value, least[0], rel_tol=1e-9), seed
        assert math.isclose(evaluation.objectives[0], found.value, rel_tol=1e-9), seed
