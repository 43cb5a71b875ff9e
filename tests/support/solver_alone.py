"""What a solver says by itself."""

from __future__ import annotations

from placedsl import loads
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve


def by_program(text: str, solver: str) -> Answer:
    """The answer of a solver alone: nothing searches beside it, and nothing is known beforehand."""
    spec = loads(text)
    formulations = spec.elaborated.checked_formulations
    return solve(spec.problem, formulations, Request(method="program", solver=solver, start=False))
