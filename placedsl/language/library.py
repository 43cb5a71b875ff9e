"""Formulations and built-in constraints: the files of ``models/``, and what a spec adds to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.formulation import Definition, Formulation, NamedRule
from placedsl.language import scope, syntax
from placedsl.language.checking import Checker
from placedsl.language.extending import extended
from placedsl.language.imports import first_at
from placedsl.language.parallelism import replicas
from placedsl.language.parameters import bare_names
from placedsl.language.parsing import parse, parse_file, read_source
from placedsl.language.schedule_words import of_every_schedule
from placedsl.language.schedules import SCHEDULES
from placedsl.language.variables import variable
from placedsl.language.vocabulary import Family, Value, Vocabulary, with_clusters
from placedsl.problem import Replication, Variable
from placedsl.resources import model_files


def modules() -> tuple[syntax.Module, ...]:
    """The parsed files of ``models/``."""
    return tuple(_module(path) for path in model_files())


@lru_cache(maxsize=64)
def _module(path: Path) -> syntax.Module:
    return parse_file(path)


@lru_cache(maxsize=1)
def constraint_definitions() -> Mapping[str, syntax.ConstraintDefinition]:
    """Built-in constraints by name.  Files that have none, which are most of the text, are not parsed for them."""
    own = [path for path in model_files() if "\nconstraint " in "\n" + read_source(path).text]
    return {
        s.name.text: s for path in own for s in _module(path).statements if isinstance(s, syntax.ConstraintDefinition)
    }


def from_plugins(wanted: Iterable[str]) -> dict[str, syntax.ConstraintDefinition]:
    """The constraints by these names that plug-ins bring."""
    out: dict[str, syntax.ConstraintDefinition] = {}
    for name in wanted:
        plugin = plugins.find("constraints", name)
        if plugin is None:
            continue
        given = plugin.load()
        text = given if isinstance(given, str) else plugin.text(given)
        module = parse(Source(f"<{plugin}>", text))
        definitions = {s.name.text: s for s in module.statements if isinstance(s, syntax.ConstraintDefinition)}
        if name not in definitions or len(definitions) < len(module.statements):
            raise plugins.PluginError(f"{plugin} gives a text that does not hold 'constraint {name} = …' alone")
        out[name] = definitions[name]
    return out


def models() -> dict[str, syntax.Formulation]:
    """The formulations of ``models/`` by name."""
    return {s.name.text: s for module in modules() for s in module.statements if isinstance(s, syntax.Formulation)}


def stated(
    written: Sequence[syntax.Formulation],
    vocabulary: Vocabulary,
    parameters: dict[str, Value],
    definitions: Mapping[str, scope.Definition],
    found: list[Diagnostic],
    replication: Replication | None,
) -> Callable[[], list[Formulation]]:
    """What gives every formulation: those that a spec writes or extends (checked now), then the others of ``models/``.

    Formulations speak of the contracted graph: they see the parameters of a spec, not its sets and variables.
    """
    own: dict[str, syntax.Formulation] = {}
    for statement in written:
        name = statement.name.text
        if statement.extends:
            continue
        if name in own:
            found.append(Diagnostic(f"formulation '{name}' is there twice", statement.name.at.span))
        own[name] = statement
    for statement in written:
        if statement.extends:
            name = statement.name.text
            base = own.get(name) or models().get(name)
            if base is None:
                known = nearest(name, [*own, *models()])
                found.append(Diagnostic(f"there is no formulation '{name}' to extend", statement.name.at.span, known))
            else:
                own[name] = extended(base, statement, found)
    plain = set(vocabulary.sets) & {
        "nodes", "forward", "backward", "devices", "accelerators", "hosts", "tensors", "edges", "reads",
        *vocabulary.families,
    }  # fmt: skip
    decided = {"copies": vocabulary.variables["copies"]} if replication is not None else {}
    full = with_clusters(replace(vocabulary, sets={n: vocabulary.sets[n] for n in plain}))
    words = replace(of_every_schedule(full), variables=decided, tables={})
    checked = [
        replace(check_formulation(s, words, parameters, definitions, found, replication), own=True)
        for s in own.values()
    ]
    return lambda: checked + _others(own, words, replication)


def _others(
    own: Mapping[str, syntax.Formulation], words: Vocabulary, replication: Replication | None
) -> list[Formulation]:
    out = []
    for name, statement in models().items():
        parallel = any(isinstance(clause, syntax.Parallel) for clause in statement.clauses)
        if name not in own and parallel <= (replication is not None):
            found: list[Diagnostic] = []
            out.append(check_formulation(statement, words, {}, {}, found, replication))
            if found:
                raise InputError(found)
    return out


def check_formulation(
    statement: syntax.Formulation,
    vocabulary: Vocabulary,
    parameters: dict[str, Value],
    definitions: Mapping[str, scope.Definition],
    found: list[Diagnostic],
    replication: Replication | None = None,
) -> Formulation:
    """Resolve a formulation; what is wrong goes to ``found``."""
    name, span = statement.name, statement.at.span
    kinds = [clause for clause in statement.clauses if isinstance(clause, syntax.Parallel)]
    if kinds and replication is None:
        hint = "it speaks of copies[d], which come with parallelism { data = 1..4 }"
        found.append(Diagnostic("this formulation is for a spec with parallelism", kinds[0].at.span, hint))
        return Formulation(name.text, (), (), {}, {}, (), {}, span)

    def checking(words: Vocabulary) -> Checker:
        checker = Checker(words, parameters, found, definitions)
        if replication is not None:
            checker.given["replicas"] = replicas(replication)
        return checker

    variables: dict[str, Variable] = {}
    families: dict[str, Family] = {}
    before = len(found)
    ours = {module.source for module in modules()}
    always = frozenset(
        c.name.text for c in statement.clauses if isinstance(c, syntax.Variable) and c.at.source not in ours
    )
    for clause in statement.clauses:
        if isinstance(clause, syntax.Variable):
            if clause.name.text in vocabulary.variables:
                hint = "the spec's own number of devices that share a stage; choose another name"
                found.append(Diagnostic(f"'{clause.name.text}' is there already", clause.name.at.span, hint))
            elif clause.name.text in variables:
                found.append(Diagnostic(f"variable '{clause.name.text}' is declared twice", clause.name.at.span))
            made, family = variable(checking(vocabulary), clause)
            variables[clause.name.text], families[clause.name.text] = made, family
    if len(found) > before:  # what uses the variables would be told wrong for it
        return Formulation(name.text, (), (), variables, {}, (), {}, span)
    words = replace(vocabulary, variables={**vocabulary.variables, **families})
    provides: dict[str, Definition] = {}
    rules: list[NamedRule] = []
    tight: dict[str, tuple[NamedRule, ...]] = {}
    schedules: list[str] = []
    parallelism: list[str] = []
    objectives = [c for c in statement.clauses if isinstance(c, syntax.Minimize)]
    for extra in objectives[1:]:
        hint = first_at(extra.at, objectives[0].at)
        found.append(Diagnostic("there is a second 'minimize' in this formulation", extra.at.span, hint))
    for clause in statement.clauses:
        checker = checking(words)
        match clause:
            case syntax.Schedule(name=schedule):
                if schedule.text not in SCHEDULES:
                    hint = nearest(schedule.text, SCHEDULES)
                    checker.error(schedule, f"there is no schedule '{schedule.text}'", hint)
                schedules.append(schedule.text)
            case syntax.Parallel(name=kind):
                if kind.text != "data":
                    checker.error(kind, f"there is no parallelism '{kind.text}'", nearest(kind.text, ["data"]))
                parallelism.append(kind.text)
            case syntax.Provides():
                definition = _definition(checker, clause)
                if definition is not None:
                    provides[definition.name] = definition
            case syntax.Minimize(objectives=(objective,)):
                _objective(checking(vocabulary), objective, variables)
            case syntax.Subject():
                rules += _rules(checker, clause.rules)
            case syntax.Tight(variable=word):
                if word.text not in variables:
                    checker.error(word, f"there is no variable '{word.text}'", nearest(word.text, variables))
                tight[word.text] = (*tight.get(word.text, ()), *_rules(checker, clause.rules))
    if "on" not in provides:
        hint = "as in provides v on d = x[v, d]"
        found.append(Diagnostic("this formulation does not provide where a node is", name.at.span, hint))
    return Formulation(
        name.text,
        tuple(schedules) or SCHEDULES[:1],
        tuple(dict.fromkeys(parallelism)),
        variables,
        provides,
        tuple(rules),
        tight,
        span,
        always,
    )


def _objective(checker: Checker, written: syntax.Expression, variables: Mapping[str, Variable]) -> None:
    """What a formulation minimises is said in quantities: the evaluator knows these, not the variables."""
    own = sorted(bare_names(written) & variables.keys())
    if own:
        hint = f"minimise a quantity, as in provides time_per_sample = {own[0]} and minimize time_per_sample"
        checker.error(written, f"'{own[0]}' is a variable of the formulation, which means nothing outside it", hint)
    else:
        checker.number(written)


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
    for slot, sort in zip(names, quantity.arguments, strict=True):
        checker.bind(slot, sort, pattern.at.span)
    body, _ = checker.number(clause.value)
    return Definition(name, tuple(names), quantity.arguments, body, clause.at.span)


def _rules(checker: Checker, rules: Iterable[syntax.Rule]) -> list[NamedRule]:
    out = []
    for rule in rules:
        if rule.replaces:
            checker.error(rule.name, "'replace' stands in an 'extend' block", "as in extend max_load { … }")
        if rule.price is not None:
            checker.error(rule.name, "a row of a formulation has no price", "soft constraints stand in the spec")
        checker.slots = {}
        if rule.body is None:
            checker.error(rule.name, f"'{rule.name.text}' needs a formula here")
            continue
        out.append(NamedRule(rule.name.text, rule.label, checker.truth(rule.body), rule.name.at.span))
    return out
