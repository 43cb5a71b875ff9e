"""What the files of ``models/`` say: built-in constraints, quantities, schedules."""

from __future__ import annotations

from functools import lru_cache

from placedsl.diagnostics import Source
from placedsl.language import syntax
from placedsl.language.library import modules


@lru_cache(maxsize=1)
def built_in_constraints() -> dict[str, tuple[syntax.ConstraintDefinition, Source]]:
    """Built-in constraints by name, each with the text that it stands in."""
    return {
        s.name.text: (s, module.source)
        for module in modules()
        for s in module.statements
        if isinstance(s, syntax.ConstraintDefinition)
    }


def formulations() -> list[tuple[syntax.Formulation, Source]]:
    """The formulations, each with the text that it stands in."""
    return [(s, module.source) for module in modules() for s in module.statements if isinstance(s, syntax.Formulation)]


def schedules_of(formulation: syntax.Formulation) -> list[str]:
    """The schedules that a formulation holds under."""
    return [clause.name.text for clause in formulation.clauses if isinstance(clause, syntax.Schedule)]


def schedules() -> list[str]:
    """The schedules that there are formulations for."""
    return list(dict.fromkeys(name for formulation, _ in formulations() for name in schedules_of(formulation)))
