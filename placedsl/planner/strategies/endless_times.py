"""Times of one sample without an end: objectives that later starts improve for ever, and times without a latest one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.grounding.build import Grounded
from placedsl.ir.program import Program
from placedsl.lowering.lower import lower
from placedsl.lowering.unboundedness import is_unbounded
from placedsl.problem import expression_walks as walks
from placedsl.problem.execution import TIMES
from placedsl.problem.problem import Problem
from placedsl.solvers.bound_propagation import finite_bounds
from placedsl.solvers.interface import Features

_HINT = "limit the times by a constraint, as in  soon: latency <= 1 s"


def refuse_endless(problem: Problem, grounded: Grounded) -> None:
    """InputError for an objective of one sample's times that later starts improve for ever."""
    for position, goal in enumerate(problem.objectives if problem.execution.run == "operators" else ()):
        if is_unbounded(grounded.program, position, tuple(range(position))):
            message = f"'{goal.name}' has no least value: later starts make it smaller for ever"
            raise InputError([Diagnostic(message, goal.span, _HINT)])


def refuse_times_without_end(problem: Problem, program: Program, features: Features) -> None:
    """InputError where nothing says how late anything may be: at the constraints that combine times so.

    Those that alone leave that open, if there are such; else all that speak of times.
    """
    if problem.execution.run != "operators":
        return
    found = [r for r in problem.constraints if not r.built_in and not TIMES.isdisjoint(walks.provided_names(r.body))]
    names = {rule.name for rule in found}
    alone = [rule for rule in found if not _ends(without(program, names - {rule.name}), features)]
    message = "with this constraint no latest time follows from the spec, which programs need"
    if found:
        raise InputError([Diagnostic(message, rule.span, _HINT) for rule in alone or found])


def _ends(program: Program, features: Features) -> bool:
    """Whether what a solver would get has bounds where it needs them."""
    try:
        lowered = lower(program, native=features.native, integral=features.integers_only)
    except InputError:
        return False
    return not features.integers_only or bool(np.isfinite(finite_bounds(lowered.program)[1]).all())


def without(program: Program, names: Collection[str]) -> Program:
    """A program without what some constraints have become."""
    return replace(
        program, rows=tuple(r for r in program.rows if r.origin.name not in names),
        constraints=tuple(c for c in program.constraints if c.origin.name not in names),
    )  # fmt: skip
