"""Every registered solver runs the shared suite, or is left out of it for a reason that is written down."""

from __future__ import annotations

import pytest
from support.suites import PATHS, SOLVERS

from placedsl.ir.row_meaning import MEANINGS
from placedsl.solvers import registry

#: Left out of the suite of solvers: a backend of a wrapper that runs there with another backend.
NOT_IN_THE_SUITE = {
    "mip:highs": "the wrapper runs there with CBC",
    "pyomo:glpk": "the wrapper runs there with CBC and HiGHS; needs the program 'glpk'",
    "pyomo:gurobi": "the wrapper runs there with CBC and HiGHS; needs a licence",
    "pyomo:scip": "the wrapper runs there with CBC and HiGHS; needs the program 'scip'",
}


def built_in() -> set[str]:
    return set(registry.BUILT_IN) - set(registry.ALSO)


def test_the_suite_has_every_solver() -> None:
    assert set(SOLVERS) | set(NOT_IN_THE_SUITE) == built_in()
    assert not set(SOLVERS) & set(NOT_IN_THE_SUITE)


def test_random_problems_are_solved_by_every_package() -> None:
    """One backend of a wrapper is enough: the suite above compares the others."""
    assert set(PATHS) - {"auto"} == {name for name in built_in() if ":" not in name}


@pytest.mark.parametrize("name", sorted(built_in()))
def test_a_solver_is_registered_under_the_name_that_it_bears(name: str) -> None:
    features = registry.get(name).features
    assert features.name == name
    assert features.note


@pytest.mark.parametrize("name", sorted(built_in()))
def test_what_a_solver_takes_natively_are_global_constraints(name: str) -> None:
    assert registry.get(name).features.native <= {kind.__name__ for kind in MEANINGS}
