"""Nested max, min, abs and if are what they mean, wherever they stand: every solver agrees with brute force."""

from __future__ import annotations

import pytest
from support.brute_force import best_by_evaluation
from support.nested_maxima import nested_spec

from placedsl import InputError, loads
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.formulation import choose

pytestmark = pytest.mark.rotates(2)

SOLVERS = ("cp-sat", "highs", "pyomo", "mip", "cvxpy", "auto")
#: What the grounding refuses because no placement satisfies it.
CONTRADICTION = "is false whatever the placement"


def confirm(text: str, solver: str) -> None:
    """The solver's answer is the best of all placements and values of variables."""
    read = loads(text)
    least = best_by_evaluation(read.problem)
    request = Request(solver, "auto" if solver == "auto" else "program", workers=1, start=solver == "auto")
    try:
        found = solve(read.problem, read.elaborated.checked_formulations, request)
    except InputError as refused:
        if CONTRADICTION not in str(refused):
            raise
        found = None
    if found is None:
        assert least is None
        return
    if least is None:
        assert found.termination == "infeasible", found.message
        return
    assert found.termination in ("optimal", "gap_reached"), found.message
    assert found.evaluation is not None
    assert found.evaluation.objectives == pytest.approx(least, rel=3e-6, abs=3e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("schedule", ["pipedream", "calls"])
@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.sampled(100)) for k in range(100)])
def test_nested_numbers_are_what_the_evaluator_says(seed: int, schedule: str, solver: str) -> None:
    confirm(nested_spec(seed, schedule), solver)


@pytest.mark.parametrize("seed", [10, 40, 45, 46, 56])
def test_times_of_calls_have_bounds_wherever_they_stand(seed: int) -> None:
    """In maxima, products and strict comparisons, which rest on bounds: a run is no longer than all of it in turn."""
    confirm(nested_spec(seed, "calls"), "highs")


@pytest.mark.parametrize("seed", [5, 47, 64])
def test_bounds_go_through_every_level_of_a_nest(seed: int) -> None:
    """A strict comparison of a maximum of a mean of maxima: rows bound what maxima define, and the other way round."""
    read = loads(nested_spec(seed))
    program = build(read.problem, choose(read.problem, read.elaborated.checked_formulations())).program
    assert lower(program).notes
    confirm(nested_spec(seed), "highs")


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_smaller_of_a_largest_time_and_a_limit(solver: str) -> None:
    """There was an answer, and the command ended without one."""
    text = """graph {
    node a { time = 1 s, memory = 1 GiB }
    node b { time = 3 s, memory = 1 GiB }
    a -> b
}
device gpu[2]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 1 GB/s }
minimize time_per_sample
subject to
    late: min(max(d in devices: load(d)), 5 s) >= 4 s
"""
    confirm(text, solver)
