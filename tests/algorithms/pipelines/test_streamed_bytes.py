"""Bytes count to the last one where a device streams slowly: what is streamed is a small difference of large sums."""

from __future__ import annotations

import math
import random

import pytest
from support.streaming_specs import best

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.evaluation.evaluate import evaluate


def slow(seed: int) -> str:
    """Parameters of up to 1 TB; a few bytes do not fit, each of which takes as long as an operator."""
    rng = random.Random(f"slow {seed}")
    nodes = rng.randint(2, 7)
    sizes = [rng.randint(10**10, 10**12) for _ in range(nodes)]
    lines = ["graph {"]
    for v, size in enumerate(sizes):
        lines.append(
            f"    node n{v} {{ time = {rng.choice([1, 2, 3, 5])} ms, memory = {size} B, "
            f"output = {rng.choice([0, 1, 2])} MB }}"
        )
    pairs = [(u, v) for u in range(nodes) for v in range(u + 1, nodes)]
    lines += [f"    n{u} -> n{v}" for u, v in pairs if rng.random() < 1.6 / nodes]
    room = sum(sizes[: rng.randint(1, nodes)]) - rng.randint(0, 4)
    lines += [
        "}", f"device gpu[2]: accelerator {{ memory = {room} B, streams = {rng.choice([500, 1000, 3000])} B/s }}",
        "interconnect { bandwidth = 1 GB/s }", "minimize time_per_sample", "subject to", "    contiguous",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(40))
def test_the_dynamic_program_adds_up_whole_bytes(seed: int) -> None:
    problem = placedsl.loads(slow(seed)).problem
    least, found = best(problem), contiguous.solve(problem)
    assert found.complete
    assert found.placement is not None
    assert math.isclose(found.value, least, rel_tol=1e-9)
    assert math.isclose(evaluate(problem, found.placement.tolist()).objectives[0], least, rel_tol=1e-9)
