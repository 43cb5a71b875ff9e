"""Sets, indexed parameters and variables of a spec: each is checked with the names that those before it declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from placedsl.language.checking.checker import Checker
from placedsl.language.checking.definitions import check_definition
from placedsl.language.checking.scope import Definition
from placedsl.language.checking.vocabulary import PLAIN, Family, Vocabulary
from placedsl.language.elaboration import indexed_parameters as tables
from placedsl.language.elaboration.external_values import ExternalValues
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.parameters import bare_names
from placedsl.language.elaboration.spec_statements import SpecStatements
from placedsl.language.elaboration.variables import variable
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Variable

#: A checker of expressions with some vocabulary.
Checkers = Callable[[Vocabulary], Checker]


def sets_and_tables(
    spec: SpecStatements,
    words: Vocabulary,
    checkers: Checkers,
    external: ExternalValues,
    definitions: dict[str, Definition],
) -> tuple[dict[str, core.SetExpression], dict[str, Any], Vocabulary]:
    """Sets and the values of indexed parameters by name, and the vocabulary with both.

    Each is read after those that it mentions.  Formulas of parameters are added to ``definitions``.
    """
    out: dict[str, core.SetExpression] = {}
    values: dict[str, Any] = {}
    waiting = _declared(spec, words)
    while waiting:
        ready = [n for n, s in waiting.items() if not (_mentioned(s) & waiting.keys())]
        if not ready:
            for one in waiting.values():
                what = "set" if isinstance(one, syntax.SetOf) else "parameter"
                spec.error(one.name.at, f"{what} '{one.name.text}' is defined by itself")
            break
        for name in ready:
            one, checker = waiting.pop(name), checkers(words)
            if isinstance(one, syntax.Param):
                families, known, formulas = tables.read(checker, [one], external)
                values |= known
                definitions |= formulas
                words = replace(words, tables=dict(words.tables) | families)
                for formula in formulas.values():
                    _check_formula(checkers(words), formula, families[name])
                continue
            of = checker.set(one.value)
            if of is not None:
                out[name] = of
            sorts = of.sorts if of is not None else ("error",)
            words = replace(words, sets=dict(words.sets) | {name: sorts})
    return out, values, words


def variables(spec: SpecStatements, words: Vocabulary, checkers: Checkers) -> tuple[dict[str, Variable], Vocabulary]:
    """The spec's own variables by name, and the vocabulary with them."""
    out: dict[str, Variable] = {}
    families: dict[str, Family] = {}
    for clause in spec.all(syntax.Variable):
        name = clause.name.text
        if name in out:
            spec.error(clause.name.at, f"variable '{name}' is declared twice")
            continue
        out[name], families[name] = variable(checkers(words), clause)
    return out, replace(words, variables={**words.variables, **families})


def _declared(spec: SpecStatements, words: Vocabulary) -> dict[str, syntax.SetOf | syntax.Param]:
    """Sets and indexed parameters by name, without those whose name is taken."""
    statements: dict[str, syntax.SetOf | syntax.Param] = {}
    for statement in spec.all(syntax.SetOf):
        name = statement.name.text
        first = statements.setdefault(name, statement)
        if first is not statement:
            spec.error(statement.name.at, f"set '{name}' is declared twice", first_at(statement.at, first.at))
    for parameter in spec.all(syntax.Param):
        if parameter.items:
            statements.setdefault(parameter.name.text, parameter)
    return {name: s for name, s in statements.items() if name not in words.sets}


def _mentioned(statement: syntax.SetOf | syntax.Param) -> set[str]:
    """The names that a set or an indexed parameter is made of."""
    if isinstance(statement, syntax.SetOf):
        return bare_names(statement.value)
    return bare_names(statement.items) | bare_names(statement.value)


def _check_formula(checker: Checker, formula: syntax.Define, family: Family) -> None:
    """The formula of an indexed parameter has the parameter's type and depends on data alone."""
    body, kind = check_definition(checker, formula)
    if "error" in (kind.kind, family.type.kind):
        return
    if walks.decided(body):
        hint = f"define {formula.name.text}(…) = … gives it a name"
        checker.error(formula.body, "a parameter cannot depend on the placement", hint)
    elif kind != family.type:
        hint = "declare the type, as in param share[v in nodes]: time = …" if family.type == PLAIN else ""
        checker.error(formula.body, f"parameter '{formula.name.text}' is {family.type}, this is {kind}", hint)
