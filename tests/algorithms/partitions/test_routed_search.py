"""The search for partitions over routes: its values are the evaluator's, and small problems reach the optimum."""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
import pytest
from problem.test_direct_transfers import random_spec
from support.brute_force import best_by_evaluation

import placedsl
from placedsl.algorithms.partitions import routed_search
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem


def problem_of(seed: int) -> Problem:
    """A small problem without contiguity and shared stages, transfers after computation."""
    text = re.sub(
        r"schedule \w+ \{ communication = \w+", "schedule 1f1b { communication = sequential", random_spec(seed)
    )
    return placedsl.loads(text.replace("    contiguous\n", "").replace("parallelism { data = 1..2 }\n", "")).problem


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_values_are_those_of_the_evaluator(first: int) -> None:
    rng = np.random.default_rng(first)
    for seed in range(first, first + 20):
        problem = problem_of(seed)
        search = routed_search.begin(problem, None, seed)
        for _ in range(3):
            device = rng.integers(len(problem.machine.devices), size=len(search.instance.memory))
            found = evaluate(problem, device[search.unit_of_node].tolist())
            value = routed_search.value_of(search.instance, device)
            fits = not any(violation.rule == "memory" for violation in found.violations)
            assert value == pytest.approx(found.objectives[0] if fits else np.inf, rel=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(9))
def test_small_problems_reach_the_optimum(seed: int) -> None:
    problem = problem_of(seed)
    expected = best_by_evaluation(problem)
    search = routed_search.begin(problem, None, seed)
    for _ in islice(routed_search.run(search), 4):
        pass
    if expected is None:
        assert search.value == np.inf
    else:
        assert search.value == pytest.approx(expected[0], rel=1e-9)
        assert evaluate(problem, search.placement.tolist()).objectives[0] == pytest.approx(search.value, rel=1e-9)
