"""Constraints that the data alone refute: rows that are false whatever the placement."""

from __future__ import annotations

from dataclasses import replace

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.grounding.build import Grounded, build
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Constraint, Problem

_MOST_TOLD = 20


def refuse_contradictions(problem: Problem, formulation: Formulation, grounded: Grounded) -> None:
    """InputError, in the lines of the spec, for every instance of a constraint that is false by itself.

    What is false only together with other constraints (nodes that must share a device, and one of them pinned
    where another does not run) is a conflict, not an error.
    """
    suspects = {origin.name for origin, _ in grounded.never}
    found = [
        d for rule in problem.constraints if rule.name in suspects for d in contradictions(problem, formulation, rule)
    ]
    if found:
        raise InputError(found[:_MOST_TOLD])


def contradictions(problem: Problem, formulation: Formulation, rule: Constraint) -> list[Diagnostic]:
    """The instances of one constraint that are false whatever the placement, and whatever else is asked."""
    return [
        Diagnostic(f"'{text}' is false whatever the placement", rule.span)
        for text in false_instances(problem, formulation, rule)
    ]


def false_instances(problem: Problem, formulation: Formulation, rule: Constraint) -> tuple[str, ...]:
    """The same as texts: the name of the constraint, and which instance."""
    alone = build(replace(problem, constraints=(rule,)), formulation, contracted=False)
    return tuple(dict.fromkeys(origin.describe(row) for origin, row in alone.never if origin.name == rule.name))
