"""A parsed spec to a :class:`~placedsl.problem.Problem`: defaults filled in, names bound, data read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from placedsl import expressions as core
from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.formulation import Formulation
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read as read_graph
from placedsl.language import deployment, library, parameters, syntax
from placedsl.language.assemble import graph_in_seconds, labels_of, oriented, transfers
from placedsl.language.checking import Checker
from placedsl.language.inline_graph import read_inline, stand_in
from placedsl.language.parameters import bare_names
from placedsl.language.vocabulary import (
    DEVICE_ATTRIBUTES,
    Value,
    Vocabulary,
    number,
    vocabulary,
)
from placedsl.machine.machine import Machine
from placedsl.problem import BUILT_IN, Objective, Problem, Rule, Settings
from placedsl.units import NUMBER, TIME

S = TypeVar("S", bound=syntax.Statement)
#: A constraint definition and the text that it stands in.
Definition = tuple[syntax.ConstraintDefinition, Source]


@dataclass(frozen=True)
class Elaborated:
    """A checked spec: the problem, the formulations that can state it, and the text it came from."""

    problem: Problem
    module: syntax.Module
    vocabulary: Vocabulary
    parameters: Mapping[str, Value]
    checked_formulations: Callable[[], list[Formulation]]


def elaborate(
    module: syntax.Module,
    base: Path,
    overrides: Mapping[str, str] | None = None,
    held: Mapping[str, Source] | None = None,
) -> Elaborated:
    """Check a parsed spec and read its data.  ``base``: the folder that file names are relative to.

    ``overrides`` are parameter values as texts (``--set name=value``); ``held`` are texts of graph files, by name,
    that are at hand without a file.  Raises InputError with every
    independent error, UsageError for an override of a parameter that does not exist.
    """
    return _Elaboration(module, base, overrides or {}, held or {}).run()


class _Elaboration:
    def __init__(
        self, module: syntax.Module, base: Path, overrides: Mapping[str, str], held: Mapping[str, Source]
    ) -> None:
        self.module, self.base, self.overrides, self.held = module, base, overrides, held
        self.source: Source = module.source
        self.found: list[Diagnostic] = []
        self.parameters: dict[str, Value] = {}

    def all(self, kind: type[S]) -> list[S]:
        return [s for s in self.module.statements if isinstance(s, kind)]

    def error(self, at: syntax.At, message: str, hint: str = "") -> None:
        self.found.append(Diagnostic(message, self.source.span(*at), hint))

    def one(self, kind: type[S], what: str, example: str) -> S | None:
        """The single statement of a kind; a missing or second one is reported."""
        statements = self.all(kind)
        for extra in statements[1:]:
            line = self.source.span(*statements[0].at).line
            self.error(extra.at, f"there is a second '{what}'", f"the first is in line {line}")
        if not statements:
            end = len(self.source.text.rstrip())
            self.error((max(0, end - 1), end), f"the spec has no '{what}'", f"as in {example}")
            return None
        return statements[0]

    def run(self) -> Elaborated:
        self.constants = self.checker(_no_words())
        parameters.read(self.constants, self.all(syntax.Param), self.overrides)
        all_devices, families = deployment.devices(self.constants, self.all(syntax.DeviceFamily))
        if not self.all(syntax.DeviceFamily):
            self.one(syntax.DeviceFamily, "device", "device gpu[2]: accelerator { memory = 16 GiB }")
        elif not all_devices and not self.found:
            self.error(self.all(syntax.DeviceFamily)[0].at, "there is no device: every count is zero")
        machine = deployment.machine(
            self.constants, all_devices, families, self.all(syntax.LinkBetween), self.all(syntax.Interconnect)
        )
        minimize = self.one(syntax.Minimize, "minimize", "minimize time_per_sample")
        graph = self.read_graph(families)
        schedule = self.read_schedule()
        settings = self.read_settings()
        self.repeated_definitions()
        named = self.named_rules()
        if graph is None:
            inline = self.all(syntax.GraphInline)
            if not inline:
                self.fail()
                raise InputError(self.found)
            graph = stand_in(inline[0], self.source)
        dimensions = {k: DEVICE_ATTRIBUTES[k] for d in machine.devices for k in d.attributes}
        words = vocabulary(graph, machine, dimensions)
        words = replace(
            words,
            sets=dict(words.sets) | dict.fromkeys(families, ("device",)),
            families=dict(words.families) | {f: words.families.get(f, ()) for f in families},
        )
        sets, words = self.read_sets(words)
        objectives = self.read_objectives(minimize, words)
        rules = self.read_rules(named, words)
        own = [library.check_formulation(s, self.source, words, self.found) for s in self.all(syntax.Formulation)]
        transfer, size, missing = transfers(graph, machine, self.source)
        self.found += [] if self.found else missing
        self.fail()
        groups = {name: labels_of(graph, name) for name in _partitioned(rules, objectives, sets)}
        colocations = [groups[r.by] for r in rules if r.built_in == "colocated"]
        before, after, orientation = oriented(graph, colocations)
        time = np.column_stack([_times(graph, machine, i) for i in range(len(machine.devices))])
        problem = Problem(
            name=Path(self.source.name).stem, graph=graph, machine=machine, schedule=schedule,
            objectives=objectives, rules=rules, sets=sets, settings=settings, time=time, transfer=transfer,
            size=size, before=before, after=after, orientation=orientation, groups=groups,
            time_unit="s" if graph.time_in_seconds else "",
        )  # fmt: skip
        return Elaborated(problem, self.module, words, self.parameters, lambda: own + library.formulations(words))

    def fail(self) -> None:
        """Raise what has been found so far, in the order of the text."""
        if self.found:
            unique = dict.fromkeys(self.found)
            places = {d: (d.span.line, d.span.column) if d.span else (math.inf, 0) for d in unique}
            raise InputError(sorted(unique, key=places.__getitem__))

    def checker(self, words: Vocabulary) -> Checker:
        return Checker(self.source, words, self.parameters, self.found)

    # data

    def read_graph(self, families: list[str]) -> Graph | None:
        statements: list[Any] = [*self.all(syntax.GraphFile), *self.all(syntax.GraphInline)]
        statements.sort(key=lambda s: s.at)
        if not statements:
            self.one(syntax.GraphFile, "graph", 'graph from "model.json"')
            return None
        for extra in statements[1:]:
            line = self.source.span(*statements[0].at).line
            self.error(extra.at, "there is a second graph", f"the first is in line {line}")
        first = statements[0]
        try:
            if isinstance(first, syntax.GraphInline):
                return read_inline(first, self.constants, families)
            return self.read_graph_file(first)
        except InputError as problem:
            self.found += problem.diagnostics
            return None

    def read_graph_file(self, statement: syntax.GraphFile) -> Graph:
        given = Path(statement.path.text)
        path = given if given.is_absolute() else self.base / given
        form = None
        for entry in statement.block:
            if entry.name.text == "format":
                match entry.value:
                    case syntax.Text(value=text):
                        form = text
                    case _:
                        self.constants.error(entry.value, "a format in quotes is expected", 'as in format = "native"')
            elif entry.name.text != "time_unit":
                self.constants.error(entry.name, f"a graph file has no '{entry.name.text}'",
                                     nearest(entry.name.text, ["time_unit", "format"]))  # fmt: skip
        try:
            graph = read_graph(self.held.get(statement.path.text, path), form)
        except InputError as problem:
            place = self.source.span(*statement.path.at)
            raise InputError(
                Diagnostic(d.message, place, d.hint) if d.span is None else d for d in problem.diagnostics
            ) from None
        for entry in statement.block:
            if entry.name.text == "time_unit":
                out, kind = self.constants.number(entry.value)
                if kind != number(TIME) or not isinstance(out, core.Constant):
                    self.constants.error(entry.value, "a time is expected here", "as in time_unit = 1 ms")
                elif graph.time_in_seconds:
                    self.constants.error(entry.name, "this graph's times have a unit already")
                else:
                    graph = graph_in_seconds(graph, float(out.value))
        return graph

    def read_schedule(self) -> str:
        statements = self.all(syntax.Schedule)
        for extra in statements[1:]:
            self.error(extra.at, "there is a second 'schedule'")
        if not statements:
            return "pipedream"
        name = statements[0].name
        if name.text not in library.SCHEDULES:
            self.error(name.at, f"there is no schedule '{name.text}'", nearest(name.text, library.SCHEDULES))
        return name.text

    def read_settings(self) -> Settings:
        known = {"time_limit": TIME, "gap": NUMBER, "workers": NUMBER, "seed": NUMBER}
        words: dict[str, str] = {}
        places: dict[str, Span] = {}
        numbers: list[syntax.Entry] = []
        statements = self.all(syntax.Solve)
        for extra in statements[1:]:
            self.error(extra.at, "there is a second 'solve'")
        for entry in statements[0].block if statements else ():
            if entry.name.text in ("solver", "method"):
                match entry.value:
                    case syntax.Name(name=word) | syntax.Text(value=word):
                        words[entry.name.text] = word
                        places[entry.name.text] = self.constants.span(entry.value)
                    case _:
                        self.constants.error(entry.value, "a name is expected here")
            elif entry.name.text not in known:
                self.constants.error(entry.name, f"'solve' has no '{entry.name.text}'",
                                     nearest(entry.name.text, [*known, "solver", "method"]))  # fmt: skip
            else:
                numbers.append(entry)
        values = deployment.entry_values(self.constants, tuple(numbers), known, "'solve'")
        given: dict[str, Any] = {}
        for name, (value, entry) in values.items():
            if name in ("workers", "seed") and not value.is_integer():
                self.constants.error(entry.value, f"'{name}' is a whole number")
            elif name == "gap" and value >= 1:
                self.constants.error(entry.value, "a gap is below 100%", "as in gap = 1%")
            elif name in ("workers", "time_limit") and not value:
                self.constants.error(entry.value, f"'{name}' cannot be zero")
            else:
                given[name] = int(value) if name in ("workers", "seed") else value
        given |= words
        given["places"] = places
        return Settings(**given)

    # sets, objectives, rules

    def read_sets(self, words: Vocabulary) -> tuple[dict[str, core.Binder], Vocabulary]:
        out: dict[str, core.Binder] = {}
        statements = {s.name.text: s for s in reversed(self.all(syntax.SetOf))}
        for statement in self.all(syntax.SetOf):
            name = statement.name.text
            if statements[name] is not statement:
                self.error(statement.name.at, f"set '{name}' is declared twice")
            elif name in words.sets:
                self.error(statement.name.at, f"'{name}' is the name of another set already")
        waiting = {name: statement for name, statement in statements.items() if name not in words.sets}
        while waiting:
            ready = [n for n, s in waiting.items() if not (bare_names(s.value) & waiting.keys())]
            if not ready:
                for statement in waiting.values():
                    self.error(statement.name.at, f"set '{statement.name.text}' is defined by itself")
                break
            for name in ready:
                binder = self.checker(words).binder_of_set(waiting.pop(name).value)
                if binder is not None:
                    out[name] = binder
                sorts = binder.sorts if binder is not None else ("error",)
                words = replace(words, sets=dict(words.sets) | {name: sorts})
        return out, words

    def read_objectives(self, statement: syntax.Minimize | None, words: Vocabulary) -> tuple[Objective, ...]:
        out = []
        for expression in statement.objectives if statement else ():
            checker = self.checker(words)
            body, kind = checker.number(expression)
            if kind.kind != "error":
                name = self.source.text[expression.at[0] : expression.at[1]]
                out.append(Objective(" ".join(name.split()), body, kind.dimension, checker.span(expression)))
        return tuple(out)

    def definitions(self) -> dict[str, Definition]:
        own = {s.name.text: (s, self.source) for s in self.all(syntax.ConstraintDefinition)}
        return library.constraint_definitions() | own

    def repeated_definitions(self) -> None:
        seen: set[str] = set()
        for statement in self.all(syntax.ConstraintDefinition):
            name = statement.name.text
            if name in BUILT_IN or name in seen:
                kind = "built in" if name in BUILT_IN else "defined already"
                self.error(statement.name.at, f"constraint '{name}' is {kind}", "choose another name")
            seen.add(name)

    def named_rules(self) -> list[tuple[syntax.Rule, Definition | None]]:
        """The rules with the definitions that they name; what is wrong without looking at the data is reported."""
        asked = [r.name.text for block in self.all(syntax.Subject) for r in block.rules if r.body is None]
        known = library.with_plugins(self.definitions(), asked)
        out: list[tuple[syntax.Rule, Definition | None]] = []
        names: set[str] = set()
        for rule in [r for block in self.all(syntax.Subject) for r in block.rules]:
            name = rule.name.text
            key = f"{name} by {rule.by.text}" if rule.by else name
            if key in names:
                self.error(rule.name.at, f"constraint '{key}' stands twice")
            names.add(key)
            if rule.body is not None and name in known:
                self.error(rule.name.at, f"'{name}' is the name of a built-in constraint", "choose another name")
            elif rule.body is None and name not in known:
                hint = nearest(name, (*known, *plugins.names("constraints")))
                if "did you mean" not in hint:
                    hint += "; one's own is written name: formula"
                self.error(rule.name.at, f"there is no constraint '{name}'", hint)
            elif rule.body is None and known[name][0].by is not None and rule.by is None:
                self.error(rule.name.at, f"'{name}' needs an attribute", f"as in {name} by colorClass")
            elif rule.body is None and known[name][0].by is None and rule.by is not None:
                self.error(rule.by.at, f"'{name}' takes no 'by'")
            else:
                out.append((rule, None if rule.body is not None else known[name]))
        return out

    def read_rules(self, named: list[tuple[syntax.Rule, Definition | None]], words: Vocabulary) -> tuple[Rule, ...]:
        checked = [self.rule(rule, definition, words) for rule, definition in named]
        used = {rule.name.text for rule, _ in named}
        # A definition that no rule asks for is checked all the same.
        for statement in self.all(syntax.ConstraintDefinition):
            if statement.name.text not in used and statement.by is None:
                self.checker(words).truth(statement.body)
        return tuple(rule for rule in checked if rule is not None)

    def rule(self, rule: syntax.Rule, defined: Definition | None, words: Vocabulary) -> Rule | None:
        name, span = rule.name.text, self.source.span(*rule.name.at)
        if defined is None:
            assert rule.body is not None
            return Rule(name, "", "", self.checker(words).truth(rule.body), self.source.span(*rule.at))
        definition, source = defined
        by = ""
        if definition.by is not None and rule.by is not None:
            by = rule.by.text
            node = {n: a for n, a in words.attributes["node"].items() if not a.per_device}
            if by not in node:
                self.error(rule.by.at, f"nodes have no '{by}'", nearest(by, node))
                return None
            words = replace(words, keys={definition.by.text: by})
        body = Checker(source, words, self.parameters, self.found).truth(definition.body)
        return Rule(f"{name} by {by}" if by else name, name if name in BUILT_IN else "", by, body, span)


def _no_words() -> Vocabulary:
    """The vocabulary before there is a graph: numbers and parameters only."""
    empty = np.zeros(0)
    whole = np.zeros(0, dtype=np.int64)
    graph = Graph((), (), {}, empty, np.zeros(0, dtype=bool), {}, whole, whole, whole, whole, empty, empty, True,
                  Source("", ""))  # fmt: skip
    return Vocabulary({}, {}, {}, {}, graph, Machine(()), {})


def _partitioned(
    rules: tuple[Rule, ...], objectives: tuple[Objective, ...], sets: Mapping[str, core.Binder]
) -> set[str]:
    """The attributes that some expression partitions the nodes by."""
    out = {r.by for r in rules if r.by}
    stack: list[Any] = [*(r.body for r in rules), *(o.body for o in objectives), *sets.values()]
    while stack:
        part = stack.pop()
        if isinstance(part, core.NamedSet) and part.name.startswith("partition:"):
            out.add(part.name.partition(":")[2])
        stack.extend(core.children(part))
    return out


def _times(graph: Graph, machine: Machine, device: int) -> np.ndarray:
    """Running times on one device: given for it, its family, or its kind; else not supported."""
    d = machine.devices[device]
    for key in (d.name, d.family, d.kind):
        if key in graph.time:
            own = np.asarray(graph.time[key], dtype=float)
            for wider in (d.family, d.kind):
                if wider in graph.time and wider != key:
                    own = np.where(np.isinf(own), graph.time[wider], own)
            return own
    return np.full(graph.nodes, np.inf)
