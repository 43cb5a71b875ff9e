"""``extend name { … }``: a formulation with more variables, more rows, and some of its own replaced."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from placedsl.diagnostics import Diagnostic, nearest
from placedsl.language.syntax import statements as syntax


def extended(
    base: syntax.Formulation, extension: syntax.Formulation, found: list[Diagnostic], derived: Collection[str] = ()
) -> syntax.Formulation:
    """The formulation with the clauses of its extension; clashes go to ``found``.

    ``derived``: quantities that follow from others where a formulation says nothing of them.
    """
    clauses: list[syntax.Clause] = list(base.clauses)
    variables = {c.name.text for c in clauses if isinstance(c, syntax.Variable)}
    provided = {_provided(c) for c in clauses if isinstance(c, syntax.Provides)}
    defined = {c.name.text for c in clauses if isinstance(c, syntax.Define)}
    named = {rule.name.text for c in clauses if isinstance(c, syntax.Subject | syntax.Tight) for rule in c.rules}

    def error(word: syntax.Word | syntax.Expression, message: str, hint: str) -> None:
        found.append(Diagnostic(message, word.at.span, hint))

    for clause in extension.clauses:
        match clause:
            case syntax.Variable(name=name) if name.text in variables:
                error(name, f"'{base.name.text}' has a variable '{name.text}' already", "choose another name")
            case syntax.Define(name=name) if name.text in defined:
                error(name, f"'{base.name.text}' has a definition '{name.text}' already", "choose another name")
            case syntax.Provides(pattern=pattern, replaces=replaces):
                what = _provided(clause)
                if what in provided and not replaces:
                    hint = "to say something else in its place, write replace provides …"
                    error(pattern, f"'{base.name.text}' provides this already", hint)
                elif replaces and what not in provided and what not in derived:
                    known = sorted({*provided, *derived})
                    error(pattern, f"'{base.name.text}' does not provide this", nearest(what, known))
                clauses = [c for c in clauses if not (isinstance(c, syntax.Provides) and _provided(c) == what)]
                clauses.append(clause)
            case syntax.Minimize():
                clauses = [c for c in clauses if not isinstance(c, syntax.Minimize)]
                clauses.append(clause)
            case syntax.Subject(rules=rules) | syntax.Tight(rules=rules):
                for rule in rules:
                    name = rule.name
                    if rule.replaces and name.text not in named:
                        error(name, f"'{base.name.text}' has no row '{name.text}'", nearest(name.text, named))
                    elif not rule.replaces and name.text in named:
                        hint = f"to state it otherwise, write replace {name.text}: …"
                        error(name, f"'{base.name.text}' has a row '{name.text}' already", hint)
                    if rule.replaces:
                        clauses = [_without(c, name.text) for c in clauses]
                plain = tuple(replace(rule, replaces=False) for rule in rules)
                clauses.append(replace(clause, rules=plain))
            case _:
                clauses.append(clause)
    return replace(base, clauses=tuple(clauses))


def _provided(clause: syntax.Provides) -> str:
    """The quantity that a clause provides."""
    match clause.pattern:
        case syntax.Binary(operator="on"):
            return "on"
        case syntax.Call(name=name) | syntax.Name(name=name):
            return name
    return clause.pattern.at.text


def _without(clause: syntax.Clause, name: str) -> syntax.Clause:
    """A clause without the rows of a name."""
    if isinstance(clause, syntax.Subject | syntax.Tight):
        return replace(clause, rules=tuple(rule for rule in clause.rules if rule.name.text != name))
    return clause
