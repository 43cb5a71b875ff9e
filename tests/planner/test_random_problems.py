"""500 random small problems: the dynamic program and every solver agree with brute force."""

from __future__ import annotations

import math

import pytest
from brute_force import best
from random_specs import random_spec

from placedsl import loads
from placedsl.planner import Request, solve

SOLVERS = ("highs", "cp-sat", "pyomo", "mip", "cvxpy")
CHUNK = 10


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_all_paths_agree_with_brute_force(first: int) -> None:
    for seed in range(first, first + CHUNK):
        spec = loads(random_spec(seed))
        expected = best(spec.problem)
        requests = [Request(method="auto", seed=1)]
        requests += [Request(method="program", solver=name, workers=1, seed=1) for name in SOLVERS]
        for request in requests:
            answer = solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
            what = f"seed {seed}, {request.method} {request.solver}: {answer.message}"
            if expected is None:
                assert answer.termination == "infeasible", what
                assert answer.placement is None, what
                continue
            value = expected[0]
            assert answer.termination == "optimal", what
            assert answer.evaluation is not None, what
            assert not answer.evaluation.violations, what
            assert math.isclose(answer.value, value, rel_tol=2e-6, abs_tol=1e-12), f"{what}: {answer.value} {value}"
            assert answer.bound <= value * (1 + 1e-9), what
