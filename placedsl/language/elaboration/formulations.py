"""Formulations and built-in constraints: the files of ``models/``, and what a spec adds to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.language.checking import scope
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.definitions import check_definition
from placedsl.language.checking.schedule_vocabulary import QUANTITIES, of_every_schedule
from placedsl.language.checking.vocabulary import Family, Value, Vocabulary, with_clusters
from placedsl.language.elaboration import schedule as schedules_of_specs
from placedsl.language.elaboration.composition import Choices, Composition, model_for, renamed, scopes, within
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.parameters import bare_names
from placedsl.language.elaboration.variables import variable
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.parser import parse, parse_file, read_source
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.expression_walks import provided_names
from placedsl.problem.formulation import Definition, Formulation, NamedRule
from placedsl.problem.problem import Variable
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
    """The formulations of ``models/`` by name, not yet composed of their parts."""
    return {s.name.text: s for s in _library() if isinstance(s, syntax.Formulation)}


def parts() -> dict[str, syntax.Part]:
    """The parts of ``models/`` by name."""
    return {s.name.text: s for s in _library() if isinstance(s, syntax.Part)}


def aliases() -> dict[str, syntax.Alias]:
    """Other names of the formulations of ``models/``, by name."""
    return {s.name.text: s for s in _library() if isinstance(s, syntax.Alias)}


def derived() -> dict[str, syntax.Define]:
    """What ``models/`` defines: quantities that follow from others.  Files that define none are not parsed for them."""
    own = [path for path in model_files() if "\ndefine " in "\n" + read_source(path).text]
    return {s.name.text: s for path in own for s in _module(path).statements if isinstance(s, syntax.Define)}


def defined_for_specs() -> dict[str, syntax.Define]:
    """Those that every spec may use by their definition: what the vocabulary does not know itself."""
    return {name: one for name, one in derived().items() if name not in QUANTITIES}


def _library() -> Iterator[syntax.Statement]:
    return (s for module in modules() for s in module.statements)


#: Sets of a formulation that have one element where this choice of the execution model has this value.
SINGLE = {"passes": ("order", "1f1b"), "replicas": ("parallelism", "none")}


@dataclass(frozen=True)
class Setting:
    """What formulations are checked in: the words of the spec, and the execution model that it asks for."""

    words: Vocabulary
    parameters: dict[str, Value]
    definitions: Mapping[str, scope.Definition]
    found: list[Diagnostic]
    chosen: Choices


def stated(statements: Sequence[syntax.Statement], setting: Setting) -> Callable[[], list[Formulation]]:
    """What gives every formulation: those that a spec writes or extends (checked now), then the others of ``models/``.

    Formulations speak of the contracted graph: they see the parameters of a spec, not its sets and variables.
    """
    written = [s for s in statements if isinstance(s, syntax.Formulation)]
    own_parts: dict[str, syntax.Part] = {}
    for statement in (s for s in statements if isinstance(s, syntax.Part)):
        name, found = statement.name, setting.found
        if name.text in own_parts:
            found.append(Diagnostic(f"part '{name.text}' is there twice", name.at.span))
        own_parts[name.text] = statement
    named = models() | {s.name.text: s for s in written if not s.extends}
    others = aliases() | {s.name.text: s for s in statements if isinstance(s, syntax.Alias)}
    known = parts() | own_parts
    before = len(setting.found)
    composed = _composed(written, named, others, known, setting)
    vocabulary = setting.words
    plain = set(vocabulary.sets) & {
        "nodes", "forward", "backward", "devices", "accelerators", "hosts", "tensors", "edges", "reads",
        *vocabulary.families,
    }  # fmt: skip
    decided = {"copies": vocabulary.variables["copies"]} if setting.chosen["parallelism"] == "data" else {}
    full = with_clusters(replace(vocabulary, sets={n: vocabulary.sets[n] for n in plain}))
    words = replace(of_every_schedule(full), variables=decided, tables={})
    inner = replace(setting, words=words)
    whole = composed if len(setting.found) == before else {}  # of what is incomplete more would be told wrong
    checked = [replace(check_formulation(s, inner, vocabulary), own=True) for s in whole.values()]
    return lambda: checked + _others(composed, inner, vocabulary)


def _composed(
    written: Sequence[syntax.Formulation],
    named: Mapping[str, syntax.Formulation],
    others: Mapping[str, syntax.Alias],
    known: Mapping[str, syntax.Part],
    setting: Setting,
) -> dict[str, syntax.Formulation]:
    """The formulations that a spec writes and extends, by name, put together from their parts."""
    found = setting.found
    out: dict[str, syntax.Formulation] = {}
    compositions: dict[str, Composition] = {}
    follows = derived().keys() & setting.words.quantities.keys()

    def compose(statement: syntax.Formulation) -> None:
        name = statement.name.text
        compositions[name] = Composition(known, model_for(statement, setting.chosen), found, follows)
        out[name] = compositions[name].formulation(statement)

    for statement in written:
        if not statement.extends:
            if statement.name.text in out:
                found.append(Diagnostic(f"formulation '{statement.name.text}' is there twice", statement.name.at.span))
            compose(statement)
    for statement in written:
        name = statement.name.text
        if not statement.extends:
            continue
        if name not in out:
            alias = others.get(name) if name not in named else None
            if alias is not None and alias.of.text in named:
                compose(renamed(alias, named[alias.of.text]))
            elif name in named:
                compose(named[name])
            else:
                hint = nearest(name, [*named, *others])
                found.append(Diagnostic(f"there is no formulation '{name}' to extend", statement.name.at.span, hint))
                continue
        out[name] = compositions[name].extension(out[name], statement)
    return out


def _others(own: Mapping[str, syntax.Formulation], setting: Setting, vocabulary: Vocabulary) -> list[Formulation]:
    """The formulations of ``models/`` that are for the execution model of the spec."""
    out = []
    for name, statement in models().items():
        if name in own or not any(within(one, setting.chosen) for one in scopes(statement)):
            continue
        found: list[Diagnostic] = []
        composed = Composition(parts(), setting.chosen, found).formulation(statement)
        plain = replace(setting, parameters={}, definitions={}, found=found)
        out.append(check_formulation(composed, plain, vocabulary))
        if found:
            raise InputError(found)
    return out


def check_formulation(statement: syntax.Formulation, setting: Setting, vocabulary: Vocabulary) -> Formulation:
    """Resolve a composed formulation; what is wrong goes to ``setting.found``.

    ``vocabulary``: the spec's own, whose quantities are those that can be asked for.
    """
    name, span, found = statement.name, statement.at.span, setting.found
    sharing = setting.chosen["parallelism"] == "data"
    kinds = [clause for clause in statement.clauses if isinstance(clause, syntax.Parallel)]
    if kinds and not sharing:
        hint = "it speaks of copies[d], which come with parallelism { data = 1..4 }"
        found.append(Diagnostic("this formulation is for a spec with parallelism", kinds[0].at.span, hint))
        return Formulation(name.text, (), {}, {}, (), {}, span)
    before = len(found)
    variables, families = _variables(statement, setting)
    if len(found) > before:  # what uses the variables would be told wrong for it
        return Formulation(name.text, (), variables, {}, (), {}, span)
    words = replace(setting.words, variables={**setting.words.variables, **families})
    ours = {module.source for module in modules()}
    defined = [c for c in statement.clauses if isinstance(c, syntax.Define)]
    theirs = {c.name.text: c for c in defined if c.at.source in ours}
    local = {c.name.text: c for c in defined if c.at.source not in ours}
    provides: dict[str, Definition] = {}
    rules: list[NamedRule] = []
    tight: dict[str, tuple[NamedRule, ...]] = {}
    always: list[str] = []
    objectives = [c for c in statement.clauses if isinstance(c, syntax.Minimize)]
    for extra in objectives[1:]:
        hint = first_at(extra.at, objectives[0].at)
        found.append(Diagnostic("there is a second 'minimize' in this formulation", extra.at.span, hint))

    def checker(known: Vocabulary, source: Source) -> Checker:
        # What a spec defines means nothing within the files of models/, and hides what these define elsewhere.
        definitions = {**setting.definitions, **local}
        definitions = {**definitions, **theirs} if source in ours else {**theirs, **definitions}
        return Checker(known, setting.parameters, found, definitions)

    for clause in statement.clauses:
        checking = checker(words, clause.at.source)
        match clause:
            case syntax.Schedule():
                schedules_of_specs.execution(checking, clause)
            case syntax.Parallel(name=kind):
                if kind.text != "data":
                    checking.error(kind, f"there is no parallelism '{kind.text}'", nearest(kind.text, ["data"]))
            case syntax.Define() if clause.at.source not in ours:
                check_definition(checking, clause)
            case syntax.Provides():
                definition = _definition(checking, clause)
                if definition is not None:
                    provides[definition.name] = definition
            case syntax.Minimize(objectives=(objective,)):
                _objective(checker(setting.words, clause.at.source), objective, variables)
            case syntax.Subject():
                rules += _rules(checking, clause.rules)
            case syntax.Tight(variables=tightened, rules=written):
                for word in tightened:
                    if word.text not in variables:
                        checking.error(word, f"there is no variable '{word.text}'", nearest(word.text, variables))
                made = tuple(_rules(checking, written))
                tight |= {word.text: (*tight.get(word.text, ()), *made) for word in tightened}
                always += [word.text for word in tightened if not written]
    if "on" not in provides:
        hint = "as in provides v on d = x[v, d]"
        found.append(Diagnostic("this formulation does not provide where a node is", name.at.span, hint))
    _derive(provides, checker(words, next(iter(ours))), vocabulary)
    return Formulation(
        name.text,
        scopes(statement),
        variables,
        provides,
        (*rules, *(rule for variable in always for rule in tight.get(variable, ()))),
        {variable: held for variable, held in tight.items() if variable not in always},
        span,
        frozenset(c.name.text for c in statement.clauses if isinstance(c, syntax.Variable) and c.at.source not in ours),
    )


def _variables(statement: syntax.Formulation, setting: Setting) -> tuple[dict[str, Variable], dict[str, Family]]:
    """The variables of a formulation, and how each may be used."""
    variables: dict[str, Variable] = {}
    families: dict[str, Family] = {}
    found = setting.found
    local = {c.name.text: c for c in statement.clauses if isinstance(c, syntax.Define)}
    for clause in (c for c in statement.clauses if isinstance(c, syntax.Variable)):
        name = clause.name
        if name.text in setting.words.variables:
            hint = "the spec's own number of devices that share a stage; choose another name"
            found.append(Diagnostic(f"'{name.text}' is there already", name.at.span, hint))
        elif name.text in variables:
            found.append(Diagnostic(f"variable '{name.text}' is declared twice", name.at.span))
        checker = Checker(setting.words, setting.parameters, found, {**setting.definitions, **local})
        made, family = variable(checker, clause)
        variables[name.text], families[name.text] = _without_single(made, family, setting.chosen)
    return variables, families


def _without_single(made: Variable, family: Family, chosen: Choices) -> tuple[Variable, Family]:
    """A variable without the indices that have one value under the execution model."""
    names = {name for name, (axis, value) in SINGLE.items() if chosen[axis] == value}
    asked = set().union(*(walks.free_slots(b.condition) for b in made.binders if b.condition is not None))
    single = [
        i for i, b in enumerate(made.binders)
        if isinstance(b.set, core.NamedSet) and b.set.name in names and b.condition is None and not asked & {*b.slots}
    ]  # fmt: skip
    sorts = [(sort, i in single) for i, binder in enumerate(made.binders) for sort in binder.sorts]
    kept = tuple(binder for i, binder in enumerate(made.binders) if i not in single)
    positions = tuple(i for i, (_, one) in enumerate(sorts) if one)
    left = tuple(sort for sort, one in sorts if not one)
    return replace(made, binders=kept), replace(family, sorts=left, single=positions)


def _derive(provides: dict[str, Definition], checker: Checker, vocabulary: Vocabulary) -> None:
    """Add the quantities of the vocabulary that follow from those that a formulation provides."""
    waiting = [d for n, d in derived().items() if n in vocabulary.quantities and n not in provides]
    added = True
    while added:
        added = False
        for definition in list(waiting):
            names = [parameter.name.text for parameter in definition.parameters]
            sorts = vocabulary.quantities[definition.name.text].arguments
            with checker.bound():
                for name, sort in zip(names, sorts, strict=True):
                    checker.bind(name, sort, definition.at.span)
                body, _ = checker.number(definition.body)
            if set(provided_names(body)) <= provides.keys():
                made = Definition(definition.name.text, tuple(names), sorts, body, definition.at.span)
                provides[definition.name.text] = made
                waiting.remove(definition)
                added = True


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
