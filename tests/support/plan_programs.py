"""What programs of plans find by themselves, and what enumeration says of it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import placedsl
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve


def by_program(text: str, folder: Path, solver: str) -> Answer:
    """The answer of a program alone: no search, nothing known beforehand."""
    spec = placedsl.loads(text, folder)
    request = Request(solver, method="program", workers=1, start=False)
    return solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)


def expect(answer: Answer, exact: tuple[Fraction, ...] | tuple[float, ...] | None, seed: int) -> None:
    """Values and bounds of the best plan, or that there is none."""
    if exact is None:
        assert answer.termination == "infeasible", f"seed {seed}"
        return
    assert answer.termination == "optimal", f"seed {seed}: {answer.message}"
    assert answer.evaluation is not None
    expected = tuple(map(float, exact))
    assert answer.evaluation.objectives == pytest.approx(expected, rel=2e-6), f"seed {seed}"
    assert answer.bounds == pytest.approx(expected, rel=2e-6), f"seed {seed}"
