"""The Python face: load a spec, solve it, look at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from placedsl import limits
from placedsl.api import arguments
from placedsl.diagnostics import InputError, Source
from placedsl.language.elaboration import external_values
from placedsl.language.elaboration.elaborate import Elaborated, elaborate
from placedsl.language.syntax.kept_trees import tree
from placedsl.language.syntax.source_files import read_source
from placedsl.language.syntax.statements import Module
from placedsl.problem.problem import Problem
from placedsl.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.api.timelines import SampleTimeline, Timeline
    from placedsl.diagnosis.infeasibility.conflict import Conflict
    from placedsl.diagnosis.infeasibility.parameter_repairs import Parameters
    from placedsl.diagnosis.sensitivity.report import Why
    from placedsl.evaluation.evaluation import Evaluation
    from placedsl.graph.graph import Graph
    from placedsl.graph.readers.sizes import Sizes
    from placedsl.planner.answer import Answer
    from placedsl.planner.bounds_by_name import FoundBound
    from placedsl.planner.incumbent import Progress
    from placedsl.problem.formulation import Formulation
    from placedsl.problem.values import Values
    from placedsl.report.explanation.explain import Explanation

#: The times of an answer, in messages.
_TIMES = "answer's JSON under 'schedule'"


class Spec:
    """A checked spec with its data: what :func:`load` gives."""

    def __init__(
        self, elaborated: Elaborated, read_seconds: float = 0.0, again: Callable[[str, str], Spec] | None = None
    ) -> None:
        self.elaborated = elaborated
        self.read_seconds = read_seconds
        #: The same spec with another value of one parameter.
        self.again = again

    @property
    def problem(self) -> Problem:
        """The problem: graph, machine, objectives and rules as arrays and expressions."""
        return self.elaborated.problem

    def solve(
        self,
        *,
        solver: str | None = None,
        method: str | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        workers: int | None = None,
        seed: int | None = None,
        dask: str | None = None,
        progress: Progress | None = None,
        start: tuple[Sequence[int], Values] | None = None,
    ) -> Answer:
        """Find a placement; what is None is as the spec's ``solve`` block says, else the default.

        ``solver`` auto or one that ``placedsl solvers`` lists; ``method`` auto, dp, program, or
        another that docs/methods.md tells of; of either also what plug-ins bring;
        ``time_limit`` seconds; ``gap`` relative; ``dask`` the address of a cluster's scheduler, whose workers
        search and prove as well; ``progress`` hears (value, bound, seconds); ``start``: the device
        position of each node, and values of variables, of a placement that is known beforehand.
        """
        from placedsl.api import display  # noqa: F401 - gives results the reports that show them
        from placedsl.planner.request import Request
        from placedsl.planner.solve import solve

        if progress is not None and not callable(progress):
            raise arguments.wrong("progress", progress, "a function of (value, bound, seconds) is expected")
        request = Request(solver, method, time_limit, gap, workers, seed, dask=dask)
        return solve(
            self.problem, self.elaborated.checked_formulations, request, progress, self.read_seconds, known=start
        )

    def conflict(
        self,
        *,
        by_instance: bool = False,
        infeasible: bool = False,
        solver: str | None = None,
        time_limit: float | None = None,
        workers: int | None = None,
        seed: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Conflict | None:
        """Which constraints cannot hold together, and what would repair it; None when there is a placement.

        ``by_instance``: down to the instances of each; ``infeasible``: solving has proven already that there is no
        placement; ``progress`` hears what is being done, in words.  LimitError when the time limit was reached before
        that was known.
        """
        from placedsl.diagnosis.infeasibility.conflict import find
        from placedsl.diagnosis.infeasibility.parameter_repairs import NONE
        from placedsl.planner.request import Request

        request = Request(solver=solver, time_limit=time_limit, workers=workers, seed=seed)
        return find(
            self.problem, self.elaborated.checked_formulations, request, infeasible=infeasible,
            by_instance=by_instance, progress=progress or (lambda _: None),
            parameters=NONE if self.again is None else self._parameters(self.again),
        )  # fmt: skip

    def _parameters(self, again: Callable[[str, str], Spec]) -> Parameters:
        """The numbers among the parameters, and what another value of one makes of the spec."""
        from placedsl.diagnosis.infeasibility.parameter_repairs import Parameters

        def changed(name: str, text: str) -> tuple[Problem, list[Formulation]]:
            other = again(name, text)
            return other.problem, other.elaborated.checked_formulations()

        known = self.elaborated.parameters.items()
        numbers = {n: (float(value), kind.dimension) for n, (value, kind) in known if kind.kind == "number"}
        return Parameters(numbers, changed)

    def why(
        self,
        answer: Answer,
        *,
        solver: str | None = None,
        method: str | None = None,
        time_limit: float | None = None,
        workers: int | None = None,
        seed: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Why:
        """What binds on an answer's placement, its bottleneck, and what further devices or memory would bring.

        The changed problems are solved one by one; ``time_limit`` is in seconds for each (None: 10);
        ``progress`` hears which change is looked at.
        """
        from placedsl.diagnosis.sensitivity.report import why
        from placedsl.planner.request import Request

        request = Request(solver, method, time_limit, None, workers, seed)
        hears = progress or (lambda _: None)
        return why(answer, self.elaborated.checked_formulations, request, progress=hears)

    def bounds(
        self,
        names: Sequence[str] = (),
        *,
        time_limit: float | None = None,
        value: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[FoundBound]:
        """The lower bounds of docs/bounds.md by name (none: all), each in a process of its own.

        ``time_limit`` is in seconds for each (None: 60); ``value``: of a placement that is known, at which a bound goes
        no further; ``progress`` hears which bound is computed.
        """
        from placedsl.planner.bounds_by_name import bounds_by_name

        upper = float("inf") if value is None else value
        return list(bounds_by_name(self.problem, names, upper, time_limit, progress or (lambda _: None)))

    def evaluate(
        self,
        placement: Mapping[str, str] | Sequence[int],
        variables: Mapping[str, object] | None = None,
        times: Mapping[str, object] | None = None,
    ) -> Evaluation:
        """What a placement costs and violates: node id to device name, or one device position a node.

        ``variables`` gives the values of the spec's own variables: a number, or an object of numbers by index.
        ``times``: what an answer's JSON says under ``schedule``.
        """
        from placedsl.api import display  # noqa: F401 - gives results the reports that show them
        from placedsl.evaluation.evaluate import evaluate
        from placedsl.problem.placement_files import schedule_decisions, values

        places = arguments.placement(self.problem, placement)
        known = values(self.problem, arguments.mapping("variables", variables, "{'x': 1}"))
        decisions = schedule_decisions(self.problem, arguments.mapping("times", times, _TIMES))
        return evaluate(self.problem, places, {**known, **decisions})

    def timeline(
        self,
        placement: Mapping[str, str] | Sequence[int],
        samples: int | None = None,
        *,
        schedule: str | None = None,
        microbatches: int | None = None,
        variables: Mapping[str, object] | None = None,
        times: Mapping[str, object] | None = None,
    ) -> Timeline | SampleTimeline:
        """The pipeline that a complete placement makes, run sample by sample; of an answer: ``answer.timeline``.

        Under a schedule of one sample, its run; ``times``: what an answer's JSON says under ``schedule``.
        ``variables``: as in :meth:`evaluate`; ``copies`` says how many devices share a stage.  ``samples``: 100 when
        nothing is said.  Whether the placement keeps to the constraints is for :meth:`evaluate` to say.
        """
        from placedsl.api.timelines import refuse_for_samples, shown_sample, shown_timeline
        from placedsl.evaluation.evaluate import evaluate
        from placedsl.problem.placement_files import schedule_decisions, values

        places = arguments.placement(self.problem, placement)
        if self.problem.execution.one_sample:
            refuse_for_samples(self.problem, samples=samples, schedule=schedule, microbatches=microbatches)
            decisions = schedule_decisions(self.problem, arguments.mapping("times", times, _TIMES))
            return shown_sample(self.problem, places, evaluate(self.problem, places, decisions))
        own = values(self.problem, arguments.mapping("variables", variables, "{'x': 1}"))
        shared = self.problem.execution.data_parallelism is not None
        found = evaluate(self.problem, places, own) if shared else None
        return shown_timeline(self.problem, places, found, samples, schedule, microbatches)

    def check(self) -> None:
        """Ground the problem as solving would; InputError for what cannot be stated, as a product of two loads."""
        from placedsl.grounding.build import build
        from placedsl.grounding.contradictions import refuse_contradictions
        from placedsl.planner.request import Request, resolve
        from placedsl.problem.formulation import choose

        resolve(self.problem, Request())
        if self.problem.execution.options is not None:
            from placedsl.planner.strategies.parallel_plans import stated

            if not stated(self.problem):
                return
        formulation = choose(self.problem, self.elaborated.checked_formulations())
        grounded = build(self.problem, formulation)
        refuse_contradictions(self.problem, formulation, grounded)
        if self.problem.execution.one_sample:
            from placedsl.planner.strategies.endless_times import refuse_endless

            refuse_endless(self.problem, grounded)

    def explanation(self, *, solver: str | None = None, method: str | None = None) -> Explanation:
        """Which path will be taken and why, and the program part by part; nothing is solved."""
        from placedsl.planner.request import Request
        from placedsl.report.explanation.explain import explain

        return explain(self.problem, self.elaborated.checked_formulations, Request(solver, method))

    def explain(self, *, solver: str | None = None, method: str | None = None) -> str:
        """The elaborated spec, which is a spec itself, and as comments what :meth:`explanation` tells."""
        from placedsl.report.explanation.elaborated_spec import elaborated
        from placedsl.report.explanation.explanation_text import explained

        return explained(elaborated(self.elaborated), self.explanation(solver=solver, method=method))

    def emit(self, format: str) -> str:
        """The program as a text: an ``lp`` or ``mps`` file, or a script for ``pyomo``, ``mip`` or ``cp-sat``.

        An exporter of a plug-in is given the answer of :meth:`solve`.  UsageError when there is no such
        format; InputError for what cannot be stated in it.
        """
        from placedsl import plugins
        from placedsl.export.programs.formats import FORMATS, known
        from placedsl.problem.formulation import choose

        known(arguments.text("format", format, "'lp'"))
        if format not in FORMATS:
            return plugins.export(self.solve(), format)
        formulation = choose(self.problem, self.elaborated.checked_formulations())
        return "".join(line + "\n" for line in FORMATS[format].write(self.problem, formulation))

    def __repr__(self) -> str:
        problem = self.problem
        counts = f"{problem.graph.nodes} nodes, {len(problem.machine.devices)} devices"
        goals = " then ".join(o.name for o in problem.objectives)
        return f"<Spec {problem.name.strip('<>')}: {counts}, {len(problem.constraints)} constraints; minimize {goals}>"

    def __rich__(self) -> str:
        from rich.markup import escape

        return escape(repr(self))

    def _repr_html_(self) -> str:
        from placedsl.report.html.notebook import spec_html

        return spec_html(self.problem)


def load(
    path: str | Path,
    parameters: Mapping[str, str] | None = None,
    data: str | Path | None = None,
    *,
    also: Sequence[str] = (),
) -> Spec:
    """Read and check a ``.place`` file; InputError with every diagnostic when it cannot be used.

    ``parameters`` gives values (as texts, ``"16 GiB"``) to parameters of the spec; ``data`` is a JSON or TOML file
    with values of parameters, also of indexed ones; ``also``: lines that are added under ``subject to``.
    """
    began = time.monotonic()
    file = arguments.path("path", path)
    source = read_source(file)
    if also:
        source = replace(source, text="\n".join([source.text, "subject to", *(f"    {line}" for line in also), ""]))
    return spec_of(source, file.parent, parameters, data, began=began)


def loads(
    text: str,
    folder: str | Path = ".",
    parameters: Mapping[str, str] | None = None,
    data: str | Path | None = None,
) -> Spec:
    """Read and check a spec from a text; ``folder`` is where its file names start from."""
    source = Source("<text>", arguments.text("text", text, "'graph { … }'"))
    return spec_of(source, arguments.path("folder", folder), parameters, data)


def spec_of(
    source: Source,
    folder: Path,
    parameters: Mapping[str, str] | None = None,
    data: str | Path | Source | None = None,
    held: Mapping[str, Source] | None = None,
    began: float | None = None,
    schedule: str | None = None,
) -> Spec:
    """The checked spec of a source.

    ``held``: texts of graph files and imports by name, which are then not read; ``began``: when reading began;
    ``schedule``: replaces the spec's own.
    """
    began = time.monotonic() if began is None else began
    at_hand = {folder / name: text for name, text in (held or {}).items()}
    if data is not None and not isinstance(data, Source):
        data = arguments.path("data", data)
    given = arguments.texts("parameters", parameters, "{'room': '16 GiB'}")
    values = external_values.read(given, data, schedule)
    reading = _Reading(tree(source), folder, values, at_hand)
    limits.settings()
    return Spec(reading.elaborated(values), time.monotonic() - began, reading.again)


def graph_of(
    path: str | Path, parameters: Mapping[str, str] | None = None, data: str | Path | None = None
) -> Graph:  # fmt: skip
    """The graph of a ``.place`` file as it is written, also where the rest of the spec, its profile say, is wrong.

    The arguments are those of :func:`load`; InputError where there is no graph.
    """
    file = arguments.path("path", path)
    given = arguments.texts("parameters", parameters, "{'room': '16 GiB'}")
    values = external_values.read(given, None if data is None else arguments.path("data", data), None)
    reading = _Reading(tree(read_source(file)), file.parent, values, {})
    try:
        return reading.elaborated(values).problem.graph.written
    except InputError:
        for graph in reading.graphs.values():
            return graph
        raise


@dataclass(frozen=True)
class _Reading:
    """What a spec is read from, to read it with another value of a parameter; each graph file is read once."""

    module: Module
    folder: Path
    values: external_values.ExternalValues
    at_hand: Mapping[Path, Source]
    graphs: dict[tuple[object, ...], Graph] = field(default_factory=dict)

    def graph(self, path: Path, form: str | None, sizes: Sizes) -> Graph:
        """The graph in a file."""
        from placedsl.graph.readers import read

        key = path, form, *((name, size.value) for name, size in sizes.items())
        if key not in self.graphs:
            self.graphs[key] = read(self.at_hand.get(path, path), form, sizes)
        return self.graphs[key]

    def elaborated(self, values: external_values.ExternalValues) -> Elaborated:
        """The spec with these values from outside."""
        return elaborate(self.module, self.folder, values, self.graph, self.at_hand)

    def again(self, name: str, text: str) -> Spec:
        """The spec with another value of a parameter."""
        return Spec(self.elaborated(replace(self.values, texts={**self.values.texts, name: text})))
