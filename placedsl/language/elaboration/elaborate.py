"""A parsed spec to a :class:`~placedsl.problem.problem.Problem`: defaults filled in, names bound, data read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from placedsl import cost_model, limits
from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.contraction import precedence
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read as read_graph
from placedsl.graph.sections import groups_by
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.definitions import check_definition
from placedsl.language.checking.schedule_vocabulary import with_execution
from placedsl.language.checking.scope import Definition, Expansion
from placedsl.language.checking.vocabulary import Value, Vocabulary, types, vocabulary, with_clusters
from placedsl.language.elaboration import constraints as rules
from placedsl.language.elaboration import exports, model_library, parallelism, parameters, streamed_parameters
from placedsl.language.elaboration import graph_file as graph_files
from placedsl.language.elaboration import machine as deployment
from placedsl.language.elaboration import schedule as schedules
from placedsl.language.elaboration import solve_block as settings
from placedsl.language.elaboration.declared_names import sets_and_tables, variables
from placedsl.language.elaboration.external_values import ExternalValues
from placedsl.language.elaboration.formulation_clauses import Setting
from placedsl.language.elaboration.formulations import formulations_of_spec
from placedsl.language.elaboration.fusion import fused, unclear
from placedsl.language.elaboration.goals import Body, Named, goals
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.inline_graph import read_inline, stand_in
from placedsl.language.elaboration.name_clashes import report_clashes
from placedsl.language.elaboration.spec_statements import SpecStatements
from placedsl.language.elaboration.statement_entries import DEVICE_DIMENSIONS, NODE_DIMENSIONS
from placedsl.language.elaboration.written_units import written_units
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.machine.routes import between_accelerators
from placedsl.problem import expression_walks as walks
from placedsl.problem.execution import Execution
from placedsl.problem.formulation import Formulation, choices
from placedsl.problem.problem import Constraint, Problem, Settings
from placedsl.problem.streaming import streaming_of
from placedsl.records import dataclass

#: So many nodes that run nowhere are reported.
_MOST_NAMED = 20
_NONE = np.zeros(0, dtype=np.int64)


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
    external: ExternalValues | None = None,
    read: graph_files.Read = read_graph,
    held: Mapping[Path, Source] | None = None,
) -> Elaborated:
    """Check a parsed spec and read its data.  ``base``: the folder that file names are relative to.

    ``external`` are parameter values from outside; ``read`` reads a graph file; ``held`` are texts of imported files
    and profiles that need not be read.  Raises InputError with every independent error, UsageError for a value on the
    command line of a parameter that does not exist.
    """
    return _Elaboration(SpecStatements(module, base, held or {}), external or ExternalValues(), read).run()


class _Elaboration:
    """The steps, in the order in which they depend on one another.  Errors are collected, and raised where what
    follows could not be understood without what is wrong."""

    def __init__(self, spec: SpecStatements, external: ExternalValues, read: graph_files.Read) -> None:
        self.spec, self.external, self.read = spec, external, read
        self.parameters: dict[str, Value] = {}
        self.definitions: dict[str, Definition] = {}
        self.expansion = Expansion()
        self.constants = self.checker(no_words())

    def checker(self, words: Vocabulary) -> Checker:
        checker = Checker(words, self.parameters, self.spec.found, self.definitions)
        checker.expansion = self.expansion
        return checker

    def run(self) -> Elaborated:
        """Every statement of the spec, and the problem that they make."""
        spec = self.spec
        parameters.read(self.constants, spec.all(syntax.Param), self.external)
        devices, machine = self.declare_devices()
        minimize = spec.one(syntax.Minimize, "minimize", "minimize time_per_sample")
        graph, notes = self.read_graph(devices, machine)
        execution = self.choose_execution()
        solve = settings.settings(self.constants, spec.all(syntax.Solve))
        named = self.name_constraints(execution)
        graph = self.with_options(graph or self.stand_in(), machine, devices, execution)
        graph = exports.with_units(graph, named, spec.found)
        asked = spec.all(syntax.Parallelism)
        places = [rule.name.at for rule in spec.all(syntax.Option)] or [spec.graph_at]
        sharing = parallelism.data_parallelism(self.constants, asked, execution, graph, machine, places[0].span)
        execution = replace(execution, data_parallelism=sharing)
        execution = schedules.with_transfers(execution, spec.all(syntax.Schedule), machine, graph)
        parallelism.refuse_routes(self.constants, sharing, execution)
        execution = replace(execution, streams=streaming_of(machine).kind)
        families = devices.device_families
        streamed_parameters.refuse(self.constants, devices.streams, families, named, execution, asked)
        streamed_parameters.refuse_costs(self.constants, devices.streams, machine, graph)
        words = self.vocabulary(graph, machine, devices, execution)
        report_clashes(spec, words)
        sets, tables, words = sets_and_tables(spec, words, self.checker, self.external, self.definitions)
        decided, words = variables(spec, words, self.checker)
        if sharing is not None:
            decided["copies"], _ = parallelism.variable(sharing)
        self.check_definitions(words)
        stated = goals(self.checker(words), minimize, exports.conjuncts(named, self.definitions, words))
        setting = Setting(words, self.parameters, self.definitions, spec.found, choices(execution))
        formulations = formulations_of_spec(spec.texts.statements, setting)
        bodies = stated.bodies(sets, decided)
        self.check_fused_attributes(graph, bodies)
        spec.fail()
        costs = self.costs(graph, machine, devices, execution)
        if sharing is not None:
            priced = replace(
                sharing, synchronisation=costs.weight_exchange, options=costs.options, across=costs.cluster_levels
            )
            execution = replace(execution, data_parallelism=priced)
        groups = {name: groups_by(graph, name) for name in stated.partitioned(bodies)}
        colocated = [groups[r.by] for r in stated.rules if r.built_in == "colocated"]
        before, after, orientation = precedence(graph, colocated)
        problem = Problem(
            name=Path(spec.module.source.name).stem, graph=graph, machine=machine, execution=execution,
            objectives=stated.objectives, constraints=stated.rules,
            soft_constraints=stated.soft_constraints, sets=sets, variables=decided,
            tables=tables, settings=solve, time=costs.time, measured=costs.measured, transfer=costs.transfer,
            size=costs.size, cluster_surcharge=costs.cluster_surcharge, device_to_device=costs.device_to_device,
            own_shares_exact=costs.own_shares_exact,
            precedence_source=before, precedence_target=after, orientation=orientation, groups=groups,
            time_unit="s" if graph.time_in_seconds else "",
            notes=(
                *_unknown_kinds(graph, machine, devices), *graph.notes, *notes, *costs.notes,
                *_samples_in_flight(graph, machine, execution, stated.rules),
                *_links_without_effect(spec.all(syntax.Schedule), machine, execution),
            ),
            has_user_formulations=bool(spec.all(syntax.Formulation)),
        )  # fmt: skip
        statements, folders = tuple(spec.texts.statements), spec.texts.folders
        return Elaborated(problem, spec.module, statements, words, self.parameters, formulations, folders)

    def declare_devices(self) -> tuple[deployment.DeviceDeclarations, Machine]:
        """Devices, clusters and links."""
        spec, declared = self.spec, self.spec.families
        devices = deployment.DeviceDeclarations(self.constants, declared)
        if not devices.device_families and not spec.found:
            spec.one(syntax.DeviceFamily, "device", "device gpu[2]: accelerator { memory = 16 GiB }")
        elif not devices.devices and not spec.found:
            spec.error(declared[0].at, "there is no device: every count is zero")
        links, interconnects = spec.all(syntax.LinkBetween), spec.all(syntax.Interconnect)
        return devices, deployment.machine(self.constants, devices, links, interconnects)

    def read_graph(
        self, devices: deployment.DeviceDeclarations, machine: Machine
    ) -> tuple[Graph | None, tuple[str, ...]]:
        """The graph with its operators fused, and notes on that; None where there is none that can be read."""
        spec, statements = self.spec, self.spec.graphs
        if not statements:
            spec.one(syntax.GraphFile, "graph", 'graph from "model.json"')
            return None, ()
        for extra in statements[1:]:
            spec.error(extra.at, "there is a second graph", first_at(extra.at, statements[0].at))
        first = statements[0]
        try:
            if isinstance(first, syntax.GraphInline):
                graph = read_inline(first, self.constants, devices.device_families)
            else:
                folder = spec.texts.folder(first.at)
                graph = graph_files.read(first, folder, self.constants, self.read, machine, spec.held)
        except InputError as problem:
            spec.found += problem.diagnostics
            return None, ()
        fuse = spec.all(syntax.Fuse)
        if fuse and graph.options is not None:
            spec.error(fuse[0].at, "operators with options cannot be fused", "their options are of each by itself")
            return graph, ()
        return fused(self.constants, fuse, graph) if fuse else (graph, ())

    def stand_in(self) -> Graph:
        """In place of an inline graph that is wrong, one with its names, so that the rest can be checked."""
        inline = self.spec.all(syntax.GraphInline)
        if not inline:
            self.spec.fail()
            raise InputError(self.spec.found)
        return stand_in(inline[0])

    def choose_execution(self) -> Execution:
        """``schedule``, or what the spec speaks of."""
        spec = self.spec
        spoken = schedules.spoken_of(spec.all(syntax.Minimize), spec.all(syntax.Subject), spec.names)
        return schedules.schedule(self.constants, spec.all(syntax.Schedule), self.external.schedule, spoken)

    def name_constraints(self, execution: Execution) -> list[Named]:
        """The constraints of ``subject to`` with the definitions that they name; definitions are known from here on."""
        spec, blocks = self.spec, self.spec.all(syntax.Subject)
        self.definitions |= rules.definitions(spec.definitions, spec.all(syntax.Formulation), spec.found)
        asked = [r.name.text for block in blocks for r in block.rules if r.body is None]
        self.definitions |= model_library.from_plugins(name for name in asked if name not in self.definitions)
        named = rules.named(blocks, self.definitions, spec.found)
        if execution.run == "operators":
            return named
        unknown = [rule for rule, _ in named if rule.body is None and rule.name.text in ("sequential", "congestion")]
        for rule in unknown:
            hint = "schedule dataflow does: each operator runs as soon as its inputs have arrived"
            spec.error(rule.name.at, f"schedule {execution.name} knows no '{rule.name.text}'", hint)
        return [(rule, definition) for rule, definition in named if rule not in unknown]

    def with_options(
        self, graph: Graph, machine: Machine, devices: deployment.DeviceDeclarations, execution: Execution
    ) -> Graph:
        """The graph with the options that rules give its operators, or the bytes of its nodes that only plans count."""
        spec, asked = self.spec, self.spec.all(syntax.Option)
        planned = graph.options is None and not graph.attributes.keys().isdisjoint(("stash", "sharded"))
        if not asked and not planned:
            return graph
        spec.fail()  # rules are worked out on graph and machine
        from placedsl.language.elaboration import option_rules  # with the grounding of formulas, which few specs need

        seen = option_rules.with_bytes(graph)
        words = self.vocabulary(seen, machine, devices, execution)
        sets, tables, words = sets_and_tables(spec, words, self.checker, self.external, self.definitions)
        spec.found.clear()  # told again where sets may use whatever the spec decides
        costs = cost_model.build(graph, machine, cost_model.Options(places=self.places(devices)))
        if np.isnan(costs.time).any():
            spec.found += costs.diagnostics
            spec.fail()
        problem = Problem(
            name="", graph=seen, machine=machine, execution=Execution(), objectives=(), constraints=(), sets=sets,
            settings=Settings(), time=cost_model.plain_times(graph, machine, costs.time), transfer=costs.transfer,
            size=costs.size, precedence_source=_NONE, precedence_target=_NONE, orientation="", tables=tables,
            cluster_surcharge=costs.cluster_surcharge, measured=costs.measured,
        )  # fmt: skip
        try:
            made = option_rules.with_options(asked, problem, self.checker(words))
            graph = replace(graph, options=made.options, notes=made.notes)
        except InputError as problem_found:
            spec.found += problem_found.diagnostics
        spec.fail()
        return graph

    def places(self, devices: deployment.DeviceDeclarations) -> cost_model.Places:
        """Where messages about costs point."""
        exchange = self.spec.all(syntax.Parallelism)
        asked = exchange[0].at.span if exchange else None
        return cost_model.Places(devices.names, devices.declarations, self.spec.graph_at.span, asked)

    def vocabulary(
        self, graph: Graph, machine: Machine, devices: deployment.DeviceDeclarations, execution: Execution
    ) -> Vocabulary:
        """The names that graph, machine and execution model give."""
        known = {**DEVICE_DIMENSIONS, **{name: kind.dimension for name, kind in devices.own.items()}}
        dimensions = {k: known[k] for d in machine.devices for k in d.attributes}
        words = with_execution(vocabulary(graph, machine, dimensions, NODE_DIMENSIONS), execution)
        families = devices.device_families  # also those of which there is no device
        words = replace(
            words,
            sets=dict(words.sets) | dict.fromkeys(families, ("device",)),
            families=dict(words.families) | {f: words.families.get(f, ()) for f in families},
        )
        words = replace(words, units=written_units(self.spec.texts.statements))
        if execution.data_parallelism is not None:
            words = parallelism.with_copies(words, execution.data_parallelism)
        if devices.cluster_families:
            words = with_clusters(words)
            words = replace(words, sets=dict.fromkeys(devices.cluster_families, ("cluster",)) | dict(words.sets))
        return words

    def check_definitions(self, words: Vocabulary) -> None:
        """Each definition by itself, but for those whose attribute is only known where they are used."""
        for definition in self.spec.definitions:
            if not (isinstance(definition, syntax.ConstraintDefinition) and definition.by):
                check_definition(self.checker(words), definition)

    def check_fused_attributes(self, graph: Graph, bodies: list[Body]) -> None:
        """Attributes that expressions ask for have one value on every fused operator."""
        for part, member in unclear(graph, bodies):
            hint = "what is fused needs one value; flops, bytes and parameters add up"
            self.spec.found.append(Diagnostic(f"members of '{member}' differ in '{part.name}'", part.span, hint))

    def costs(
        self, graph: Graph, machine: Machine, devices: deployment.DeviceDeclarations, execution: Execution
    ) -> cost_model.Costs:
        """All costs; raises InputError where they are not known, or where a node runs on no device."""
        spec, sharing = self.spec, execution.data_parallelism
        places = self.places(devices)
        weights = None if sharing is None else sharing.weights
        planned = sharing is not None and sharing.planned
        names = None if sharing is None else sharing.names
        options = cost_model.Options(
            execution.device_to_device, not execution.one_sample, weights, places, planned, names,
            levels=execution.cluster_levels,
        )  # fmt: skip
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused below
            costs = cost_model.build(graph, machine, options)
        spec.found += costs.diagnostics
        spec.fail()
        self.refuse_large(graph, costs)
        for position in np.flatnonzero(~np.isfinite(costs.time).any(axis=1))[:_MOST_NAMED]:
            declared = spec.nodes.get(str(graph.ids[position]))
            files = spec.all(syntax.GraphFile)
            at = declared.at if declared is not None else files[0].path.at if files else spec.end
            hint = f"the graph has times for: {', '.join(sorted(graph.time)) or 'none'}"
            spec.error(at, f"node '{graph.names[position]}' runs on none of these devices", hint)
        spec.fail()
        return costs

    def refuse_large(self, graph: Graph, costs: cost_model.Costs) -> None:
        """Costs that cannot be added up, each at its node; raises InputError where there are any."""
        spec = self.spec
        producer = [graph.ids[v] for v in graph.tensor_producer]
        for what, values, owner in (
            ("runs", costs.time, graph.ids), ("needs memory", graph.memory, graph.ids),
            ("has its output moved", costs.transfer, producer), ("has an output", costs.size, producer),
            ("has its output moved", costs.cluster_surcharge.T, producer),
        ):  # fmt: skip
            row, value = _largest(values)
            if value > limits.limit("cost"):
                declared = spec.nodes.get(str(owner[row]))
                at = declared.at if declared is not None else spec.graph_at
                unit = "bytes" if what in ("needs memory", "has an output") else "units of time"
                message = f"node '{owner[row]}' {what}: {value:.3g} {unit}, more than {limits.limit('cost'):g}"
                hint = "check its entries, and bandwidths and rates of the devices"
                spec.error(at, message, limits.hint(hint, "cost", value))
        spec.fail()


def _largest(values: np.ndarray) -> tuple[int, float]:
    """The row with the largest finite number of an array, and that number; (0, 0) without any."""
    if not values.size:
        return 0, 0.0
    finite = np.where(np.isfinite(values), values, 0.0).reshape(len(values), -1)
    most = finite.max(axis=1)
    return int(most.argmax()), float(most.max())


def _unknown_kinds(graph: Graph, machine: Machine, devices: deployment.DeviceDeclarations) -> tuple[str, ...]:
    """Times that no device here can have: a graph may serve several specs, or a name be misspelt."""
    known = {"accelerator", "host", *devices.device_families, *machine.positions}
    unknown = sorted(set(graph.time) - known)
    return tuple(f"the graph has times for '{name}', which is no device or kind of the spec" for name in unknown)


def _samples_in_flight(
    graph: Graph, machine: Machine, execution: Execution, rules: Sequence[Constraint]
) -> tuple[str, ...]:
    """What a limit of memory leaves out where training samples follow one another through a pipeline."""
    bounded = any(math.isfinite(device.memory) for device in machine.devices)
    limits = [r for r in rules if {"memory", "peak_memory"} & walks.provided_names(r.body)]
    if execution.one_sample or not graph.backward.any() or not any(bounded or not r.built_in for r in limits):
        return ()
    return ("memory leaves out activations of the samples in flight, which 'placedsl timeline' shows",)


def _links_without_effect(asked: Sequence[syntax.Schedule], machine: Machine, execution: Execution) -> tuple[str, ...]:
    """Links between accelerators, where the graph gives times between RAM and devices in place of sizes."""
    said = any(entry.name.text == "transfers" for statement in asked for entry in statement.block)
    if said or execution.one_sample or execution.device_to_device or not between_accelerators(machine):
        return ()
    return (
        "links between accelerators have no effect: the graph gives times of transfers between RAM and devices, "
        "and tensors without sizes; with output = ... in place of times they go from device to device",
    )


def no_words() -> Vocabulary:
    """The vocabulary before there is a graph: numbers and parameters only."""
    empty = np.zeros(0)
    whole = np.zeros(0, dtype=np.int64)
    graph = Graph((), (), {}, empty, np.zeros(0, dtype=bool), {}, whole, whole, whole, whole, empty, empty, True,
                  Source("", ""))  # fmt: skip
    return Vocabulary({}, {}, {}, {}, graph, Machine(()), {}, types())
