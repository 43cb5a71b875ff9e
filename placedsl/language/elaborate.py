"""A parsed spec to a :class:`~placedsl.problem.Problem`: defaults filled in, names bound, data read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from placedsl import expressions as core
from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.formulation import Formulation
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read as read_graph
from placedsl.language import (
    deployment,
    estimates,
    graph_files,
    library,
    parallelism,
    parameters,
    rules,
    schedules,
    settings,
    syntax,
    tables,
)
from placedsl.language.assemble import (
    labels_of,
    leaving,
    moves_of,
    oriented,
    transfers,
    unlike_profile,
    unreachable,
)
from placedsl.language.checking import Checker
from placedsl.language.fusing import fused, unclear
from placedsl.language.given import Given
from placedsl.language.imports import first_at, imported
from placedsl.language.inline_graph import read_inline, stand_in
from placedsl.language.parameters import bare_names
from placedsl.language.schedule_words import with_schedule
from placedsl.language.scope import Definition
from placedsl.language.variables import variable
from placedsl.language.vocabulary import (
    DEVICE_ATTRIBUTES,
    PLAIN,
    SETS,
    Family,
    Value,
    Vocabulary,
    types,
    vocabulary,
    with_clusters,
)  # fmt: skip
from placedsl.machine.machine import Machine
from placedsl.problem import BUILT_IN, Objective, Problem, Rule, Soft, Variable

S = TypeVar("S", bound=syntax.Statement)
Body = core.Expression | core.SetExpression | core.Binder


@dataclass(frozen=True)
class Elaborated:
    """A checked spec: the problem, the formulations that can state it, and the text it came from.

    ``statements`` are those of the spec and of all that it imports; ``folders`` says of each of these texts what its
    file names are relative to.
    """

    problem: Problem
    module: syntax.Module
    statements: tuple[syntax.Statement, ...]
    vocabulary: Vocabulary
    parameters: Mapping[str, Value]
    checked_formulations: Callable[[], list[Formulation]]
    folders: Mapping[Source, Path]


def elaborate(
    module: syntax.Module,
    base: Path,
    given: Given | None = None,
    read: graph_files.Read = read_graph,
    held: Mapping[Path, Source] | None = None,
) -> Elaborated:
    """Check a parsed spec and read its data.  ``base``: the folder that file names are relative to.

    ``given`` are parameter values from outside; ``read`` reads a graph file; ``held`` are texts of imported files
    and profiles that need not be read.  Raises InputError with every independent error, UsageError for a value on the
    command line of a parameter that does not exist.
    """
    return _Elaboration(module, base, given or Given(), read, held or {}).run()


class _Elaboration:
    def __init__(
        self,
        module: syntax.Module,
        base: Path,
        given: Given,
        read: graph_files.Read,
        held: Mapping[Path, Source],
    ) -> None:
        self.module, self.given, self.read, self.held = module, given, read, held
        self.source: Source = module.source
        self.found: list[Diagnostic] = []
        self.texts = imported(module, base, self.found, held)
        self.parameters: dict[str, Value] = {}
        self.definitions: dict[str, Definition] = {}

    def all(self, kind: type[S]) -> list[S]:
        return [s for s in self.texts.statements if isinstance(s, kind)]

    def error(self, at: syntax.At, message: str, hint: str = "") -> None:
        self.found.append(Diagnostic(message, at.span, hint))

    def one(self, kind: type[S], what: str, example: str) -> S | None:
        """The single statement of a kind; a missing or second one is reported."""
        statements = self.all(kind)
        for extra in statements[1:]:
            self.error(extra.at, f"there is a second '{what}'", first_at(extra.at, statements[0].at))
        if not statements:
            self.error(self.end(), f"the spec has no '{what}'", f"as in {example}")
            return None
        return statements[0]

    def end(self) -> syntax.At:
        """The last character of the spec."""
        end = len(self.source.text.rstrip())
        return syntax.At(max(0, end - 1), end, self.source)

    def run(self) -> Elaborated:
        self.constants = self.checker(no_words())
        parameters.read(self.constants, self.all(syntax.Param), self.given)
        declared = [s for s in self.texts.statements if isinstance(s, syntax.DeviceFamily | syntax.Cluster)]
        park = deployment.Park(self.constants, declared)
        families = park.device_families
        if not families and not self.found:
            self.one(syntax.DeviceFamily, "device", "device gpu[2]: accelerator { memory = 16 GiB }")
        elif not park.devices and not self.found:
            self.error(declared[0].at, "there is no device: every count is zero")
        machine = deployment.machine(self.constants, park, self.all(syntax.LinkBetween), self.all(syntax.Interconnect))
        minimize = self.one(syntax.Minimize, "minimize", "minimize time_per_sample")
        graph, notes = self.read_graph(families, machine), tuple[str, ...]()
        if graph is not None and (fuse := self.all(syntax.Fuse)):
            graph, notes = fused(self.constants, fuse, graph)
        spoken = schedules.spoken_of(self.all(syntax.Minimize), self.all(syntax.Subject), self.defined_names())
        sample = schedules.schedule(self.constants, self.all(syntax.Schedule), self.given.schedule, spoken)
        schedule = sample.name
        if schedule in ("gpipe", "calls") and machine.clusters:
            first = next(s for s in declared if isinstance(s, syntax.Cluster))
            hint = ", ".join(name for name in schedules.SCHEDULES if name not in ("gpipe", "calls")) + " do"
            self.error(first.name.at, f"schedule {schedule} does not know clusters", hint)
        solve = settings.settings(self.constants, self.all(syntax.Solve))
        defined: list[Definition] = [
            s for s in self.texts.statements if isinstance(s, syntax.Define | syntax.ConstraintDefinition)
        ]
        self.definitions |= rules.definitions(defined, self.all(syntax.Formulation), self.found)
        asked = [r.name.text for block in self.all(syntax.Subject) for r in block.rules if r.body is None]
        self.definitions |= library.from_plugins(name for name in asked if name not in self.definitions)
        named = rules.named(self.all(syntax.Subject), self.definitions, self.found)
        if schedule != "dataflow":
            for rule, _ in named:
                if rule.name.text in ("sequential", "congestion") and rule.body is None:
                    hint = "schedule dataflow does: each operator runs as soon as its inputs have arrived"
                    self.error(rule.name.at, f"schedule {schedule} knows no '{rule.name.text}'", hint)
            named = [(r, d) for r, d in named if r.body is not None or r.name.text not in ("sequential", "congestion")]
        if graph is None:
            inline = self.all(syntax.GraphInline)
            if not inline:
                self.fail()
                raise InputError(self.found)
            graph = stand_in(inline[0])
        dimensions = {k: DEVICE_ATTRIBUTES[k] for d in machine.devices for k in d.attributes}
        words = with_schedule(vocabulary(graph, machine, dimensions), schedule)
        words = replace(
            words,
            sets=dict(words.sets) | dict.fromkeys(families, ("device",)),
            families=dict(words.families) | {f: words.families.get(f, ()) for f in families},
        )
        replication = parallelism.replication(self.constants, self.all(syntax.Parallelism), schedule, graph, machine)
        if replication is not None:
            words = parallelism.with_copies(words, replication)
        if park.cluster_families:
            words = with_clusters(words)
            words = replace(words, sets=dict.fromkeys(park.cluster_families, ("cluster",)) | dict(words.sets))
        self.clashes(words)
        sets, table_values, words = self.read_sets(words)
        own, words = self.read_variables(words)
        if replication is not None:
            own["copies"], _ = parallelism.variable(replication)
        for definition in defined:
            if not (isinstance(definition, syntax.ConstraintDefinition) and definition.by):
                self.checker(words).check_definition(definition)
        objectives = self.read_objectives(minimize, words)
        hard = [self.rule(rule, definition, words) for rule, definition in named if rule.price is None]
        soft = self.read_soft([rule for rule, _ in named if rule.price is not None], words, objectives)
        checked = tuple(rule for rule in hard if rule is not None)
        if soft and objectives:
            objectives = (_with_costs(objectives[0], soft), *objectives[1:])
        stated = library.stated(
            self.all(syntax.Formulation), words, self.parameters, self.definitions, self.found, replication
        )
        transfer, size, missing = transfers(graph, machine, self.source)
        further, apart = leaving(graph, machine, declared)
        between = None
        if schedule == "dataflow":
            between, missing = moves_of(graph, machine, transfer, size), []
            apart = unlike_profile(graph, machine, park.families)
            apart = apart or unreachable(graph, machine, between, park.families)
        self.found += [] if self.found else missing
        self.found += [] if self.found else apart
        bodies = _bodies(checked, objectives, sets, own)
        for part, member in unclear(graph, bodies):
            hint = "what is fused needs one value; flops, bytes and parameters add up"
            self.found.append(Diagnostic(f"members of '{member}' differ in '{part.name}'", part.span, hint))
        self.fail()
        declared_at = {name: family.name.at for name, family in park.families.items()}
        timing = estimates.timing(graph, machine, declared_at, self.graph_at())
        self.found += timing.missing
        self.fail()
        time = timing.time
        self.unsupported(graph, time)
        self.fail()
        groups = {name: labels_of(graph, name) for name in _partitioned(checked, bodies)}
        colocations = [groups[r.by] for r in checked if r.built_in == "colocated"]
        before, after, orientation = oriented(graph, colocations)
        problem = Problem(
            name=Path(self.source.name).stem, graph=graph, machine=machine, schedule=schedule,
            objectives=objectives, rules=checked, sets=sets, settings=solve, time=time, transfer=transfer,
            size=size, before=before, after=after, orientation=orientation, groups=groups,
            time_unit="s" if graph.time_in_seconds else "", variables=own, tables=table_values, soft=soft,
            notes=(*_unknown_kinds(graph, machine, families), *graph.notes, *notes, *timing.notes),
            own_formulations=bool(self.all(syntax.Formulation)), replication=replication, leaving=further,
            measured=timing.measured, pieces=sample.pieces, moves=between,
        )  # fmt: skip
        statements, folders = tuple(self.texts.statements), self.texts.folders
        return Elaborated(problem, self.module, statements, words, self.parameters, stated, folders)

    def defined_names(self) -> list[str]:
        """Names that the spec gives a meaning itself, whatever else they may mean."""
        kinds = (syntax.Param, syntax.SetOf, syntax.Variable, syntax.Define, syntax.ConstraintDefinition)
        names = [s.name.text for s in self.texts.statements if isinstance(s, kinds)]
        graphs = self.all(syntax.GraphInline)
        return names + [item.name.text for g in graphs for item in g.items if isinstance(item, syntax.Node)]

    def fail(self) -> None:
        """Raise what has been found so far, in the order of the text."""
        if self.found:
            unique = dict.fromkeys(self.found)
            places = {d: (d.span.line, d.span.column) if d.span else (math.inf, 0) for d in unique}
            raise InputError(sorted(unique, key=places.__getitem__))

    def unsupported(self, graph: Graph, time: np.ndarray) -> None:
        """Nodes that run on none of the devices."""
        nowhere = np.flatnonzero(~np.isfinite(time).any(axis=1))
        kinds = ", ".join(sorted(graph.time)) or "none"
        words = {n.name.text: n.name for g in self.all(syntax.GraphInline) for n in g.items
                 if isinstance(n, syntax.Node)}  # fmt: skip
        files = self.all(syntax.GraphFile)
        for position in nowhere[:20]:
            name = str(graph.ids[position])
            at = words[name].at if name in words else files[0].path.at if files else self.end()
            hint = f"the graph has times for: {kinds}"
            self.error(at, f"node '{graph.names[position]}' runs on none of these devices", hint)

    def checker(self, words: Vocabulary) -> Checker:
        return Checker(words, self.parameters, self.found, self.definitions)

    def clashes(self, words: Vocabulary) -> None:
        """Names of the spec that mean something else already."""
        named: list[tuple[str, syntax.Word]] = [("parameter", s.name) for s in self.all(syntax.Param)]
        named += [("set", s.name) for s in self.all(syntax.SetOf)]
        named += [("variable", s.name) for s in self.all(syntax.Variable)]
        named += [("definition", s.name) for s in self.all(syntax.Define)]
        named += [("constraint", s.name) for s in self.all(syntax.ConstraintDefinition) if s.name.text not in BUILT_IN]
        inline = {item.name.text for graph in self.all(syntax.GraphInline) for item in graph.items
                  if isinstance(item, syntax.Node)}  # fmt: skip
        known: dict[str, tuple[str, syntax.Word]] = {}
        for kind, word in named:
            name = word.text
            first = known.setdefault(name, (kind, word))
            if name in SETS or (name in ("links", "hops") and name in words.sets):
                self.error(word.at, f"'{name}' is the name of a set already", "choose another name")
            elif words.sets.get(name) == ("cluster",):
                self.error(word.at, f"'{name}' is the name of a cluster already", "choose another name")
            elif name in words.variables:
                self.error(word.at, f"'{name}' is how many devices hold a stage", "choose another name")
            elif name in words.families:
                self.error(word.at, f"'{name}' is the name of a device already", "choose another name")
            elif name in words.quantities or name == "abs":
                self.error(word.at, f"'{name}' is a quantity already", "choose another name")
            elif name in inline:
                self.error(word.at, f"'{name}' is a node of the graph already", "choose another name")
            elif first[1] is not word and first[0] != kind and {first[0], kind} != {"definition", "constraint"}:
                hint = first_at(word.at, first[1].at)
                self.error(word.at, f"'{name}' is the name of a {first[0]} already", hint)

    # data

    def graph_at(self) -> syntax.At:
        """Where the graph is given."""
        statements: list[syntax.GraphFile | syntax.GraphInline] = [
            *self.all(syntax.GraphFile), *self.all(syntax.GraphInline)
        ]  # fmt: skip
        first = min(statements, key=lambda s: s.at)
        return first.path.at if isinstance(first, syntax.GraphFile) else first.at

    def read_graph(self, families: list[str], machine: Machine) -> Graph | None:
        statements: list[Any] = [*self.all(syntax.GraphFile), *self.all(syntax.GraphInline)]
        statements.sort(key=lambda s: s.at)
        if not statements:
            self.one(syntax.GraphFile, "graph", 'graph from "model.json"')
            return None
        for extra in statements[1:]:
            self.error(extra.at, "there is a second graph", first_at(extra.at, statements[0].at))
        first = statements[0]
        try:
            if isinstance(first, syntax.GraphInline):
                return read_inline(first, self.constants, families)
            folder = self.texts.folder(first.at)
            return graph_files.read(first, folder, self.constants, self.read, machine, self.held)
        except InputError as problem:
            self.found += problem.diagnostics
            return None

    # sets, variables, objectives, rules

    def read_sets(self, words: Vocabulary) -> tuple[dict[str, core.SetExpression], dict[str, Any], Vocabulary]:
        """Sets and indexed parameters, each after what it is made of."""
        out: dict[str, core.SetExpression] = {}
        values: dict[str, Any] = {}
        statements: dict[str, syntax.SetOf | syntax.Param] = {}
        for statement in self.all(syntax.SetOf):
            name = statement.name.text
            first = statements.setdefault(name, statement)
            if first is not statement:
                self.error(statement.name.at, f"set '{name}' is declared twice", first_at(statement.at, first.at))
        for parameter in self.all(syntax.Param):
            if parameter.items:
                statements.setdefault(parameter.name.text, parameter)
        waiting = {name: s for name, s in statements.items() if name not in words.sets}
        while waiting:
            ready = [n for n, s in waiting.items() if not (_mentioned(s) & waiting.keys())]
            if not ready:
                for one in waiting.values():
                    what = "set" if isinstance(one, syntax.SetOf) else "parameter"
                    self.error(one.name.at, f"{what} '{one.name.text}' is defined by itself")
                break
            for name in ready:
                one = waiting.pop(name)
                checker = self.checker(words)
                if isinstance(one, syntax.Param):
                    families, given, formulas = tables.read(checker, [one], self.given)
                    values |= given
                    self.definitions |= formulas
                    words = replace(words, tables=dict(words.tables) | families)
                    for formula in formulas.values():
                        self.formula(formula, families[name], words)
                    continue
                of = checker.set(one.value)
                if of is not None:
                    out[name] = of
                sorts = of.sorts if of is not None else ("error",)
                words = replace(words, sets=dict(words.sets) | {name: sorts})
        return out, values, words

    def formula(self, formula: syntax.Define, family: Family, words: Vocabulary) -> None:
        """The formula of an indexed parameter has the parameter's type and depends on data alone."""
        body, kind = self.checker(words).check_definition(formula)
        if "error" in (kind.kind, family.type.kind):
            return
        if core.decided(body):
            hint = f"define {formula.name.text}(…) = … gives it a name"
            self.error(formula.body.at, "a parameter cannot depend on the placement", hint)
        elif kind != family.type:
            hint = "declare the type, as in param share[v in nodes]: time = …" if family.type == PLAIN else ""
            self.error(formula.body.at, f"parameter '{formula.name.text}' is {family.type}, this is {kind}", hint)

    def read_variables(self, words: Vocabulary) -> tuple[dict[str, Variable], Vocabulary]:
        out: dict[str, Variable] = {}
        families: dict[str, Family] = {}
        for clause in self.all(syntax.Variable):
            name = clause.name.text
            if name in out:
                self.error(clause.name.at, f"variable '{name}' is declared twice")
                continue
            out[name], families[name] = variable(self.checker(words), clause)
        return out, replace(words, variables={**words.variables, **families})

    def read_objectives(self, statement: syntax.Minimize | None, words: Vocabulary) -> tuple[Objective, ...]:
        out = []
        for expression in statement.objectives if statement else ():
            body, kind = self.checker(words).number(expression)
            if kind.kind != "error":
                out.append(Objective(" ".join(expression.at.text.split()), body, kind.dimension, expression.at.span))
        return tuple(out)

    def rule(self, rule: syntax.Rule, definition: syntax.ConstraintDefinition | None, words: Vocabulary) -> Rule | None:
        return rules.rule(self.checker(words), rule, definition)

    def read_soft(
        self, written: list[syntax.Rule], words: Vocabulary, objectives: tuple[Objective, ...]
    ) -> tuple[Soft, ...]:
        if not objectives:
            return ()
        checked = [rules.soft(self.checker(words), rule, objectives[0]) for rule in written]
        return tuple(soft for soft in checked if soft is not None)


def _with_costs(objective: Objective, soft: tuple[Soft, ...]) -> Objective:
    """The objective with what broken soft constraints cost."""
    body = objective.body
    for one in soft:
        body = core.Arithmetic("+", body, one.cost, objective.span)
    return replace(objective, body=body, name=" + ".join([objective.name, *(one.name for one in soft)]))


def _mentioned(statement: syntax.SetOf | syntax.Param) -> set[str]:
    """The names that a set or an indexed parameter is made of."""
    if isinstance(statement, syntax.SetOf):
        return bare_names(statement.value)
    return bare_names(statement.items) | bare_names(statement.value)


def _unknown_kinds(graph: Graph, machine: Machine, families: list[str]) -> tuple[str, ...]:
    """Times that no device here can have: a graph may serve several specs, or a name be misspelt."""
    known = {"accelerator", "host", *families, *(d.name for d in machine.devices)}
    unknown = sorted(set(graph.time) - known)
    return tuple(f"the graph has times for '{name}', which is no device or kind of the spec" for name in unknown)


def no_words() -> Vocabulary:
    """The vocabulary before there is a graph: numbers and parameters only."""
    empty = np.zeros(0)
    whole = np.zeros(0, dtype=np.int64)
    graph = Graph((), (), {}, empty, np.zeros(0, dtype=bool), {}, whole, whole, whole, whole, empty, empty, True,
                  Source("", ""))  # fmt: skip
    return Vocabulary({}, {}, {}, {}, graph, Machine(()), {}, types())


def _bodies(
    checked: tuple[Rule, ...],
    objectives: tuple[Objective, ...],
    sets: Mapping[str, core.SetExpression],
    variables: Mapping[str, Variable],
) -> list[Body]:
    """All that the spec asks of its elements."""
    bodies: list[Body] = [r.body for r in checked]
    return [*bodies, *(o.body for o in objectives), *sets.values(), *(b for v in variables.values() for b in v.binders)]


def _partitioned(checked: tuple[Rule, ...], bodies: list[Body]) -> set[str]:
    """The attributes that some expression partitions the nodes by."""
    parts = (part for body in bodies for part in core.every(body))
    named = {part.name for part in parts if isinstance(part, core.NamedSet)}
    by = {name.partition(":")[2] for name in named if name.startswith("partition:")}
    return by | {r.by for r in checked if r.built_in == "colocated"}
