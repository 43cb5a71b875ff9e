"""Tables that stay arrays say what lists say."""

from __future__ import annotations

import pytest
from support.random_specs import random_spec

from placedsl import loads
from placedsl.evaluation import problem_data
from placedsl.evaluation.evaluate import evaluate


@pytest.mark.parametrize("seed", range(20))
def test_the_same_evaluation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = loads(random_spec(seed)).problem
    placement = [v % len(problem.machine.devices) for v in range(problem.graph.nodes)]
    lists = evaluate(problem, placement)
    monkeypatch.setattr(problem_data, "_LISTED", 0)
    arrays = evaluate(problem, placement)
    assert (arrays.objectives, arrays.loads, arrays.memory) == (lists.objectives, lists.loads, lists.memory)
    assert arrays.violations == lists.violations
