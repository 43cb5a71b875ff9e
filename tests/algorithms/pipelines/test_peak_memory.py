"""The least peak memory of contiguous pipelines by dynamic programming, against enumeration by the evaluator."""

from __future__ import annotations

import math
import random

import pytest
from support.enumeration import enumerated, least

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import ignored, reasons_against
from placedsl.evaluation.evaluate import evaluate

MACHINES = (
    ("1f1b", "device gpu[2]: accelerator {{ memory = {limit} MiB }}\ndevice cpu: host {{ memory = 3 MiB }}"),
    ("gpipe", "device gpu[3]: accelerator {{ memory = {limit} MiB }}"),
    (
        "1f1b { communication = overlapped }",
        "device gpu: accelerator {{ memory = {limit} MiB }}\ndevice tpu: accelerator",
    ),
    ("1f1b", "device gpu[3]: accelerator {{ memory = {limit} MiB }}\nparallelism {{ data = 1..2, weights = memory }}"),
)


def spec_of(seed: int) -> str:
    """A small graph with leaves, isolated nodes, nodes without memory and nodes that only some devices support."""
    rng = random.Random(seed)
    nodes, extent = rng.randint(1, 6), rng.choice([1, 1, 1e-3, 1e4])
    schedule, machine = rng.choice(MACHINES)
    lines = ["graph {"]
    for v in range(nodes):
        host = ", host: 2 ms" if rng.random() < 0.5 else ""
        size = extent * rng.choice([0, 1, 2, 3, 700])
        lines.append(f"    node n{v} {{ time = {{accelerator: 1 ms{host}}}, memory = {size:.6g} MiB, output = 9 MiB }}")
    lines += [f"    n{u} -> n{v}" for u in range(nodes) for v in range(u + 1, nodes) if rng.random() < 0.4]
    lines += ["}", machine.format(limit=f"{extent * rng.choice([2, 5, 900]):.6g}")]
    lines += ["interconnect { bandwidth = 1 GiB/s }", f"schedule {schedule}"]
    lines += ["minimize peak_memory then devices_used", "subject to", "    contiguous"]
    return "\n".join(lines + ["    memory"] * (rng.random() < 0.7)) + "\n"


@pytest.mark.sampled(25)
@pytest.mark.parametrize("first", range(70_000, 71_000, 10))
def test_least_peak_memory_with_the_fewest_devices(first: int) -> None:
    for seed in range(first, first + 10):
        problem = placedsl.loads(spec_of(seed)).problem
        assert not reasons_against(problem, contiguous.SUPPORTS), seed
        assert not ignored(problem, contiguous.SUPPORTS), seed
        found, wanted = contiguous.solve(problem), least(enumerated(problem))
        assert found.complete, seed
        if wanted[0] == math.inf:
            assert found.placement is None, seed
            continue
        assert found.placement is not None, seed
        evaluation = evaluate(problem, found.placement.tolist(), found.values)
        assert not evaluation.violations, seed
        assert math.isclose(found.value, wanted[0], rel_tol=1e-9), seed
        assert math.isclose(evaluation.objectives[0], wanted[0], rel_tol=1e-9), seed
        assert not found.fewest or evaluation.objectives[1] == wanted[1], seed
