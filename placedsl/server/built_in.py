"""What the files of ``models/`` say: built-in constraints, parts, and the formulas of quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from placedsl.diagnostics import Source
from placedsl.language.elaboration import model_library as library
from placedsl.language.elaboration.composition import Composition, model_for, scopes, within
from placedsl.language.syntax import statements as syntax
from placedsl.problem.execution import SCHEDULES, Execution
from placedsl.problem.formulation import choices


@lru_cache(maxsize=1)
def built_in_constraints() -> dict[str, tuple[syntax.ConstraintDefinition, Source]]:
    """Built-in constraints by name, each with the text that it stands in."""
    return {
        s.name.text: (s, module.source)
        for module in library.modules()
        for s in module.statements
        if isinstance(s, syntax.ConstraintDefinition)
    }


def parts() -> Mapping[str, syntax.Part]:
    """The parts that any formulation may use."""
    return library.parts()


def formulas(statements: tuple[syntax.Statement, ...], name: str, schedule: str) -> Iterator[syntax.At]:
    """Where the text, and then ``models/``, say what a quantity is; first what holds under the schedule."""
    chosen = choices(SCHEDULES.get(schedule, Execution()))
    own = [s for s in statements if isinstance(s, syntax.Formulation | syntax.Part)]
    written = [s for s in own if isinstance(s, syntax.Formulation)]
    known = {**parts(), **{s.name.text: s for s in own if isinstance(s, syntax.Part)}}
    for statement in sorted(written, key=lambda s: not any(within(one, chosen) for one in scopes(s))):
        yield from _provided(statement.clauses, name)
    for one in (s for s in own if isinstance(s, syntax.Part)):
        yield from _provided(one.clauses, name)
    library_formulations = library.models().values()
    for statement in sorted(library_formulations, key=lambda s: not any(within(one, chosen) for one in scopes(s))):
        composed = Composition(known, model_for(statement, chosen), []).formulation(statement)
        yield from _provided(composed.clauses, name)
        derived = library.derived().get(name)
        if derived is not None and any(within(one, chosen) for one in scopes(statement)):
            yield derived.name.at


def _provided(clauses: tuple[syntax.Clause, ...], name: str) -> Iterator[syntax.At]:
    for clause in clauses:
        inner = clause.clause if isinstance(clause, syntax.Under) else clause
        if isinstance(inner, syntax.Provides) and getattr(inner.pattern, "name", "") == name:
            yield inner.pattern.at


def schedules() -> tuple[str, ...]:
    """The schedules that there are."""
    return tuple(SCHEDULES)
