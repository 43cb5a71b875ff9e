"""The clauses of a formulation, composed of its parts, resolved to a :class:`Formulation`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from placedsl.diagnostics import Diagnostic, Source, nearest
from placedsl.language.checking import scope
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.definitions import check_definition
from placedsl.language.checking.vocabulary import Family, Value, Vocabulary
from placedsl.language.elaboration import schedule as schedules_of_specs
from placedsl.language.elaboration.composition import Choices, scopes
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.model_library import derived, sources
from placedsl.language.elaboration.parameters import bare_names
from placedsl.language.elaboration.variables import variable
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.formulation import Definition, Formulation, NamedRule
from placedsl.problem.problem import Variable
from placedsl.records import dataclass

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


def check_formulation(statement: syntax.Formulation, setting: Setting, vocabulary: Vocabulary) -> Formulation:
    """Resolve a composed formulation; what is wrong goes to ``setting.found``.

    ``vocabulary``: the spec's own, whose quantities are those that can be asked for.
    """
    name, span, found = statement.name, statement.at.span, setting.found
    sharing = setting.chosen["parallelism"] != "none"
    kinds = [clause for clause in statement.clauses if isinstance(clause, syntax.Parallel)]
    if kinds and not sharing:
        hint = "it speaks of copies[d], which come with parallelism { data = 1..4 }"
        found.append(Diagnostic("this formulation is for a spec with parallelism", kinds[0].at.span, hint))
        return Formulation(name.text, (), {}, {}, (), {}, span)
    before = len(found)
    variables, families = _variables(statement, setting)
    if len(found) > before:  # what uses the variables would be told wrong for it
        return Formulation(name.text, (), variables, {}, (), {}, span)
    objectives = [c for c in statement.clauses if isinstance(c, syntax.Minimize)]
    for extra in objectives[1:]:
        hint = first_at(extra.at, objectives[0].at)
        found.append(Diagnostic("there is a second 'minimize' in this formulation", extra.at.span, hint))
    words = replace(setting.words, variables={**setting.words.variables, **families})
    clauses = _Clauses(statement, setting, words, variables)
    for clause in statement.clauses:
        clauses.check(clause)
    if "on" not in clauses.provides:
        hint = "as in provides v on d = x[v, d]"
        found.append(Diagnostic("this formulation does not provide where a node is", name.at.span, hint))
    _derive(clauses.provides, clauses.checker(words, next(iter(clauses.ours))), vocabulary)
    return clauses.formulation()


class _Clauses:
    """The checked clauses of a formulation.

    ``always``: variables whose ``tight`` rows are always there; ``ours``: the files of ``models/``.
    """

    def __init__(
        self, statement: syntax.Formulation, setting: Setting, words: Vocabulary, variables: dict[str, Variable]
    ) -> None:
        self.statement, self.setting, self.words, self.variables = statement, setting, words, variables
        self.ours = set(sources())
        self.provides: dict[str, Definition] = {}
        self.rules: list[NamedRule] = []
        self.tight: dict[str, tuple[NamedRule, ...]] = {}
        self.always: list[str] = []
        defined = [c for c in statement.clauses if isinstance(c, syntax.Define)]
        self.theirs = {c.name.text: c for c in defined if c.at.source in self.ours}
        self.local = {c.name.text: c for c in defined if c.at.source not in self.ours}

    def checker(self, words: Vocabulary, source: Source) -> Checker:
        """A checker for the text of a file.

        What a spec defines means nothing within the files of models/, and hides what these define elsewhere.
        """
        definitions = {**self.setting.definitions, **self.local}
        definitions = {**definitions, **self.theirs} if source in self.ours else {**self.theirs, **definitions}
        return Checker(words, self.setting.parameters, self.setting.found, definitions)

    def check(self, clause: syntax.Clause) -> None:
        """Check a clause and keep what it states."""
        checker = self.checker(self.words, clause.at.source)
        match clause:
            case syntax.Schedule():
                schedules_of_specs.execution(checker, clause)
            case syntax.Parallel(name=kind):
                if kind.text != "data":
                    checker.error(kind, f"there is no parallelism '{kind.text}'", nearest(kind.text, ["data"]))
            case syntax.Define() if clause.at.source not in self.ours:
                check_definition(checker, clause)
            case syntax.Provides():
                definition = _definition(checker, clause)
                if definition is not None:
                    self.provides[definition.name] = definition
            case syntax.Minimize(objectives=(objective,)):
                _objective(self.checker(self.setting.words, clause.at.source), objective, self.variables)
            case syntax.Subject():
                self.rules += _rules(checker, clause.rules)
            case syntax.Tight(variables=tightened, rules=written):
                self._tight(checker, tightened, written)

    def _tight(self, checker: Checker, variables: Sequence[syntax.Word], written: Sequence[syntax.Rule]) -> None:
        """Rows that hold variables down where something rewards a value that is too large."""
        for word in variables:
            if word.text not in self.variables:
                checker.error(word, f"there is no variable '{word.text}'", nearest(word.text, self.variables))
        rules = tuple(_rules(checker, written))
        self.tight |= {word.text: (*self.tight.get(word.text, ()), *rules) for word in variables}
        self.always += [word.text for word in variables if not written]

    def formulation(self) -> Formulation:
        """The formulation of these clauses."""
        declared = [c for c in self.statement.clauses if isinstance(c, syntax.Variable)]
        return Formulation(
            self.statement.name.text,
            scopes(self.statement),
            self.variables,
            self.provides,
            (*self.rules, *(rule for variable in self.always for rule in self.tight.get(variable, ()))),
            {variable: held for variable, held in self.tight.items() if variable not in self.always},
            self.statement.at.span,
            frozenset(c.name.text for c in declared if c.at.source not in self.ours),
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
            if walks.provided_names(body) <= provides.keys():
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
