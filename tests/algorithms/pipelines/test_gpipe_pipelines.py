"""Dynamic programming under GPipe's schedule, against enumeration."""

from __future__ import annotations

import math

import pytest
from support.brute_force import best
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.evaluation.evaluate import evaluate


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
