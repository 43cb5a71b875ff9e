"""Nodes and transfers that take no time, about half of them: the programs against enumeration."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from support.one_sample import least_of_calls, least_of_dataflow, random_calls, random_dataflow

from placedsl import loads
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.problem import Problem


def with_zeros(text: str, seed: int) -> str:
    rng = np.random.default_rng(seed + 1000)
    text = re.sub(
        r"((?:accelerator|host): |output = )([\d.]+)",
        lambda found: found[1] + ("0" if rng.random() < 0.5 else found[2]),
        text,
    )
    return text.replace(", latency = 1 s", "") if rng.random() < 0.5 else text


@pytest.mark.parametrize(
    ("write", "least", "most"), [(random_calls, least_of_calls, 4), (random_dataflow, least_of_dataflow, 5)]
)
def test_against_enumeration(write: Callable[[int], str], least: Callable[[Problem], float], most: int) -> None:
    seen = 0
    for seed in range(14):
        spec = loads(with_zeros(write(seed), seed))
        if spec.problem.graph.nodes > most:
            continue
        seen += 1
        request = Request("cp-sat", "program", start=False)
        found = solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
        value = least(spec.problem)
        assert found.termination == ("infeasible" if value == np.inf else "optimal"), found.message
        assert found.value == pytest.approx(value, rel=2e-6, abs=1e-9)
    assert seen > 5
