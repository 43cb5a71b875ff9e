"""An answer: a verified placement with a proven bound, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from placedsl import cost_model
from placedsl.diagnostics import UsageError
from placedsl.evaluation.evaluate import Evaluation
from placedsl.problem.plan import Plan
from placedsl.problem.problem import Problem
from placedsl.records import dataclass
from placedsl.rendering import Rendered, Renderer
from placedsl.system.installation import versions
from placedsl.tolerances import CANCELLED, SAME_VALUE

if TYPE_CHECKING:
    from placedsl.simulation.pipeline_timeline import PipelineTimeline
    from placedsl.simulation.sample import SampleTimeline

#: How an answer's termination becomes the exit code of the command.
EXIT_SOLVED, EXIT_INFEASIBLE, EXIT_LIMIT, EXIT_NOTHING = 0, 3, 4, 5


class AnswerRenderer(Renderer, Protocol):
    """What reports, the simulation and exporters make of answers."""

    def files(self, answer: Any, runtime: str) -> dict[str, str | bytes]:
        """The files of a runtime."""

    def timeline(
        self, answer: Any, samples: int | None, schedule: str | None, microbatches: int | None
    ) -> PipelineTimeline | SampleTimeline:
        """The run of its placement."""


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Rendered[AnswerRenderer]):
    """What solving gave.

    ``termination``  why it ended: optimal, gap_reached, time_limit, ended (an algorithm came to its end without a
                     proof), infeasible, unbounded, interrupted, error
    ``placement``    device position of each node, or None; always verified by the evaluator
    ``evaluation``   what the evaluator says of it
    ``bound``        a proven lower bound on the first objective (-inf: none)
    ``bounds``       one for each objective
    ``method``       dp, paths, program or the algorithm of a plug-in (or none, when nothing was run)
    ``solver``       the solver of a program, else empty
    ``seconds``      by phase: read, build, solve, verify, total
    ``notes``        what is worth knowing, in sentences
    ``bound_by``     what proves each of the bounds, in words (empty: there is none)
    ``progress``     seconds since the search began, value (inf: none) and proven bound (-inf: none) of the first
                     objective, whenever one of them got better; the last moment is the end
    ``certificate``  the proof of the first bound as JSON data; None where what proves it has none
    """

    problem: Problem
    termination: str
    message: str
    placement: tuple[int, ...] | None
    evaluation: Evaluation | None
    bounds: tuple[float, ...]
    method: str
    solver: str
    seed: int
    seconds: Mapping[str, float]
    solver_versions: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())
    bound_by: tuple[str, ...] = field(default=())
    certificate: Mapping[str, Any] | None = field(default=None)
    progress: tuple[tuple[float, float, float], ...] = field(default=())

    @property
    def versions(self) -> dict[str, str]:
        """placedsl's own, Python's and numpy's, and that of the solver."""
        return versions() | dict(self.solver_versions)

    @property
    def value(self) -> float:
        """The first objective's value; inf without a placement."""
        return self.evaluation.objectives[0] if self.evaluation is not None else float("inf")

    @property
    def bound(self) -> float:
        """The proven lower bound of the first objective."""
        return self.bounds[0]

    @property
    def gap(self) -> float:
        """(value - bound) / |value|; inf without a placement or bound."""
        return self.gaps[0]

    @property
    def gaps(self) -> tuple[float, ...]:
        """The gap of each objective; relative to the terms that cancel, where the value is small against those."""
        if self.evaluation is None:
            return (float("inf"),) * len(self.bounds)
        known = zip(self.evaluation.objectives, self.bounds, self.evaluation.sizes, strict=True)
        return tuple(gap(value, bound, size) for value, bound, size in known)

    def proven(self, position: int = 0) -> bool:
        """Whether an objective is as good as it can be: the whole is proven no better than any of them."""
        return self.termination == "optimal" or self.gaps[position] <= SAME_VALUE

    @property
    def solution(self) -> str:
        """optimal, feasible or none."""
        if self.placement is None:
            return "none"
        return "optimal" if self.termination == "optimal" else "feasible"

    @property
    def exit_code(self) -> int:
        """What the command returns."""
        if self.termination in ("optimal", "gap_reached"):
            return EXIT_SOLVED
        if self.termination in ("infeasible", "unbounded"):
            return EXIT_INFEASIBLE
        if self.termination in ("time_limit", "interrupted"):
            return EXIT_LIMIT if self.placement is not None else EXIT_NOTHING
        return EXIT_LIMIT if self.placement is not None else EXIT_NOTHING

    def device_of(self) -> dict[int | str, str]:
        """Node id as in the graph to device name; members of fused operators each by themselves."""
        if self.placement is None:
            return {}
        devices = self.problem.machine.devices
        graph = self.problem.graph
        return {node: devices[d].name for node, d in zip(graph.written.ids, graph.spread(self.placement), strict=True)}

    def table(self) -> list[dict[str, Any]]:
        """One row a node, as ``pandas.DataFrame`` reads it: node (the id), name, device, time (there), memory.

        Times are seconds, or in the graph's own unit; without a placement ``device`` and ``time`` are None.  Members
        of a fused operator have a row and the time of their own each.
        """
        graph, machine = self.problem.graph.written, self.problem.machine
        devices = machine.devices
        placement = self.problem.graph.spread(self.placement) if self.placement else (None,) * graph.nodes
        whole = self.problem.graph.fusion is None
        time = self.problem.time if whole else cost_model.build(graph, machine).time
        return [
            {
                "node": graph.ids[v],
                "name": graph.names[v],
                "device": None if d is None else devices[d].name,
                "time": None if d is None else float(time[v, d]),
                "memory": float(graph.memory[v]),
            }
            for v, d in enumerate(placement)
        ]

    def graph(self) -> Any:
        """A ``networkx.DiGraph``: nodes with ``device``, ``time``, ``memory``, ``name``, ``backward`` and attributes
        of the graph, edges with ``bytes`` and ``time``.

        ``time`` of an edge is what writing its tensor from the one device and reading it on the other takes, 0 within a
        device.  A device pays once for a tensor, however many of its nodes read it: loads are no sums of these.
        """
        from placedsl.graph.networkx_graphs import digraph

        problem, graph, fusion = self.problem, self.problem.graph.written, self.problem.graph.fusion
        placement = None if self.placement is None else problem.graph.spread(self.placement)
        tensor_of = graph.edge_tensor if fusion is None else fusion.tensor_of[graph.edge_tensor]
        ends = (graph.edge_source.tolist(), graph.edge_target.tolist(), tensor_of.tolist())

        def moved(edge: int) -> float | None:
            if placement is None:
                return None
            u, v, tensor = placement[ends[0][edge]], placement[ends[1][edge]], ends[2][edge]
            return 0.0 if u == v else float(problem.transfer[tensor, u] + problem.transfer[tensor, v])

        out = digraph(graph, moved)
        for row in self.table():
            out.nodes[row["node"]].update(device=row["device"], time=row["time"])
        return out

    @cached_property
    def plan(self) -> Plan:
        """Ordered stages with their devices and nodes, and what they exchange; UsageError without a placement."""
        if self.evaluation is None:
            raise UsageError("there is no placement, and so no plan")
        return Plan.of(self.problem, self.evaluation)

    def export(self, runtime: str) -> dict[str, str | bytes]:
        """The files that configure a runtime (``"vllm"``, or one of a plug-in): texts, or bytes of models, by name.

        UsageError when there is no such exporter; InputError with the reasons where the runtime cannot run the plan.
        """
        return self._rendered().files(self, runtime)

    def timeline(
        self, samples: int | None = None, *, schedule: str | None = None, microbatches: int | None = None
    ) -> PipelineTimeline | SampleTimeline:
        """The pipeline that the placement makes, run sample by sample; docs/timelines.md has schedules and measures.

        Under a schedule of one sample, its run.  ``samples``: 100 when nothing is said.  UsageError without a
        placement, and for what does not fit the spec's schedule.
        """
        return self._rendered().timeline(self, samples, schedule, microbatches)


def gap(value: float, bound: float, size: float = 0.0) -> float:
    """The relative distance of a value from a lower bound, never negative; ``size``: of the terms of the value."""
    if value == float("inf") or bound == float("-inf"):
        return float("inf")
    if value <= bound:
        return 0.0
    against = max(abs(value), CANCELLED * size)
    return (value - bound) / against if against > 0.0 else float("inf")
