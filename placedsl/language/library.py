"""The files of ``models/``: formulations and the meaning of built-in constraints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from placedsl import expressions as core
from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.formulation import Definition, Formulation, NamedRule, Variable
from placedsl.language import syntax
from placedsl.language.checking import Checker
from placedsl.language.parsing import parse, parse_file
from placedsl.language.vocabulary import Vocabulary
from placedsl.resources import model_files

SCHEDULES = ("pipedream", "gpipe")


@lru_cache(maxsize=1)
def modules() -> tuple[syntax.Module, ...]:
    """The parsed files of ``models/``."""
    return tuple(parse_file(path) for path in model_files())


def constraint_definitions() -> dict[str, tuple[syntax.ConstraintDefinition, Source]]:
    """Built-in constraints by name, each with the text it stands in."""
    return {
        s.name.text: (s, module.source)
        for module in modules()
        for s in module.statements
        if isinstance(s, syntax.ConstraintDefinition)
    }


def with_plugins(
    known: dict[str, tuple[syntax.ConstraintDefinition, Source]], wanted: Iterable[str]
) -> dict[str, tuple[syntax.ConstraintDefinition, Source]]:
    """The known definitions and, for wanted names that are not among them, those that plug-ins bring."""
    out = dict(known)
    for name in wanted:
        plugin = plugins.find("constraints", name) if name not in out else None
        if plugin is None:
            continue
        given = plugin.load()
        text = given if isinstance(given, str) else plugin.text(given)
        module = parse(Source(f"<{plugin}>", text))
        definitions = {s.name.text: s for s in module.statements if isinstance(s, syntax.ConstraintDefinition)}
        if name not in definitions or len(definitions) < len(module.statements):
            raise plugins.PluginError(f"{plugin} gives a text that does not hold 'constraint {name} = …' alone")
        out[name] = definitions[name], module.source
    return out


def formulations(vocabulary: Vocabulary) -> list[Formulation]:
    """Every formulation of ``models/``, checked against the names of one problem."""
    out = []
    for module in modules():
        for statement in module.statements:
            if isinstance(statement, syntax.Formulation):
                found: list[Diagnostic] = []
                out.append(check_formulation(statement, module.source, vocabulary, found))
                if found:
                    raise InputError(found)
    return out


def check_formulation(
    statement: syntax.Formulation, source: Source, vocabulary: Vocabulary, found: list[Diagnostic]
) -> Formulation:
    """Resolve a formulation; what is wrong goes to ``found``."""
    variables: dict[str, Variable] = {}
    schedules: list[str] = []
    before = len(found)
    for clause in statement.clauses:
        if isinstance(clause, syntax.Schedule):
            schedules.append(clause.name.text)
        if isinstance(clause, syntax.Variable):
            checker = Checker(source, vocabulary, {}, found)
            variables[clause.name.text] = _variable(checker, clause)
    if len(found) > before:  # what uses the variables would be told wrong for it
        return Formulation(statement.name.text, (), variables, {}, (), {}, source.span(*statement.at))
    words = replace(
        vocabulary,
        variables={n: tuple(s for b in v.binders for s in b.sorts) for n, v in variables.items()},
    )
    provides: dict[str, Definition] = {}
    rules: list[NamedRule] = []
    tight: dict[str, tuple[NamedRule, ...]] = {}
    for clause in statement.clauses:
        checker = Checker(source, words, {}, found)
        if isinstance(clause, syntax.Provides):
            definition = _definition(checker, clause)
            if definition is not None:
                provides[definition.name] = definition
        elif isinstance(clause, syntax.Subject):
            rules += _rules(checker, clause.rules)
        elif isinstance(clause, syntax.Tight):
            if clause.variable.text not in variables:
                checker.error(clause.variable, f"there is no variable '{clause.variable.text}'",
                              nearest(clause.variable.text, variables))  # fmt: skip
            tight[clause.variable.text] = tuple(_rules(checker, clause.rules))
    own = Checker(source, words, {}, found)
    for schedule in [c.name for c in statement.clauses if isinstance(c, syntax.Schedule)]:
        if schedule.text not in SCHEDULES:
            own.error(schedule, f"there is no schedule '{schedule.text}'", nearest(schedule.text, SCHEDULES))
    if not schedules:
        own.error(
            statement.name, "this formulation does not say under which schedule it holds", "as in schedule pipedream"
        )
    if "on" not in provides:
        own.error(
            statement.name, "this formulation does not provide where a node is", "as in provides v on d = x[v, d]"
        )
    return Formulation(
        statement.name.text, tuple(schedules), variables, provides, tuple(rules), tight, source.span(*statement.at)
    )


def _variable(checker: Checker, clause: syntax.Variable) -> Variable:
    binders = checker.binders(clause.items)
    low, high, integer = 0.0, float("inf"), False
    if clause.type is not None:
        kind = clause.type.text
        if kind == "binary":
            low, high, integer = 0.0, 1.0, True
        elif kind == "integer":
            integer = True
        elif kind != "real":
            checker.error(
                clause.type, f"'{kind}' is no type of a variable", nearest(kind, ["binary", "integer", "real"])
            )
    for bound, which in ((clause.low, "low"), (clause.high, "high")):
        if bound is not None:
            out, _ = checker.number(bound)
            if isinstance(out, core.Constant):
                low, high = (float(out.value), high) if which == "low" else (low, float(out.value))
    return Variable(clause.name.text, binders, integer, low, high, checker.source.span(*clause.at))


def _definition(checker: Checker, clause: syntax.Provides) -> Definition | None:
    words = checker.vocabulary.quantities
    pattern = clause.pattern
    slots: tuple[syntax.Expression, ...] = ()
    match pattern:
        case syntax.Binary(operator="on", left=left, right=right):
            name, slots = "on", (left, right)
        case syntax.Call(name=name, arguments=slots):
            pass
        case syntax.Name(name=name):
            pass
        case _:
            checker.error(pattern, "a formulation provides a quantity", "as in load(d), v on d, time_per_sample")
            return None
    quantity = words.get(name)
    if quantity is None:
        checker.error(pattern, f"'{name}' is no quantity that can be provided", nearest(name, words))
        return None
    names = [s.name for s in slots if isinstance(s, syntax.Name)]
    if len(names) != len(quantity.arguments):
        checker.error(pattern, f"'{name}' has {len(quantity.arguments)} arguments", quantity.meaning)
        return None
    checker.slots = dict(zip(names, quantity.arguments, strict=True))
    body, _ = checker.number(clause.value)
    return Definition(name, tuple(names), quantity.arguments, body, checker.source.span(*clause.at))


def _rules(checker: Checker, rules: Iterable[syntax.Rule]) -> list[NamedRule]:
    out = []
    for rule in rules:
        checker.slots = {}
        if rule.body is None:
            checker.error(rule.name, f"'{rule.name.text}' needs a formula here")
            continue
        out.append(NamedRule(rule.name.text, rule.label, checker.truth(rule.body), checker.span(rule.name)))
    return out
