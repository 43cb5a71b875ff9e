"""Answers and evaluations as the Python face gives them: as tables, as graphs, in notebooks and on terminals."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from placedsl import cost_model
from placedsl.diagnostics import UsageError
from placedsl.evaluation import evaluation as verdict
from placedsl.planner import answer as answers
from placedsl.problem.problem import Problem

if TYPE_CHECKING:
    from rich.text import Text

    from placedsl.api.timelines import SampleTimeline, Timeline
    from placedsl.problem.plan import Plan


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(verdict.Evaluation):
    """An evaluation that knows its problem, and so can show itself."""

    problem: Problem = field(kw_only=True)

    def __repr__(self) -> str:
        from placedsl.report.text.summary import amount

        goals = zip(self.problem.objectives, self.objectives, strict=True)
        values = ", ".join(f"{goal.name} = {amount(value, goal.dimension)}" for goal, value in goals)
        violated = ", ".join(v.rule for v in self.violations)
        return f"<Evaluation {'violates ' + violated if violated else 'feasible'}: {values}>"

    def __rich__(self) -> Text:
        from placedsl.report.text.summary import print_evaluation, printed

        return printed(lambda console: print_evaluation(self.problem, self, console))

    def _repr_html_(self) -> str:
        from placedsl.report.html.notebook import evaluation_html

        return evaluation_html(self.problem, self)


@dataclass(frozen=True, repr=False, eq=False)
class Answer(answers.Answer):
    """An answer, with its placement as a table or a graph."""

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
        from placedsl.problem.plan import Plan

        if self.evaluation is None:
            raise UsageError("there is no placement, and so no plan")
        return Plan.of(self.problem, self.evaluation)

    def export(self, runtime: str) -> dict[str, str]:
        """The files that configure a runtime (``"vllm"``, or one of a plug-in), texts by file name.

        UsageError when there is no such exporter; InputError with the reasons where the runtime cannot run the plan.
        """
        from placedsl.export.registry import files

        return files(self.plan, runtime)

    def timeline(
        self, samples: int | None = None, *, schedule: str | None = None, microbatches: int | None = None
    ) -> Timeline | SampleTimeline:
        """The pipeline that the placement makes, run sample by sample; docs/timelines.md has schedules and measures.

        Under a schedule of one sample, its run.  ``samples``: 100 when nothing is said.  UsageError without a
        placement, and for what does not fit the spec's schedule.
        """
        if self.placement is None or self.evaluation is None:
            raise UsageError("there is no placement, and so no timeline")
        from placedsl.api.timelines import refuse_for_samples, shown_sample, shown_timeline

        if self.problem.execution.one_sample:
            refuse_for_samples(self.problem, samples=samples, schedule=schedule, microbatches=microbatches)
            return shown_sample(self.problem, self.placement, self.evaluation)
        return shown_timeline(self.problem, self.placement, self.evaluation, samples, schedule, microbatches)

    def __repr__(self) -> str:
        from placedsl.report.html.notebook import objective_lines

        by = ", ".join(filter(None, (self.method, self.solver)))
        return f"<Answer {self.termination} ({by}): {'; '.join(objective_lines(self)) or self.message}>"

    def __rich__(self) -> Text:
        from placedsl.report.text.summary import print_answer, printed

        return printed(lambda console: print_answer(self, console))

    def _repr_html_(self) -> str:
        from placedsl.report.html.notebook import answer_html

        return answer_html(self)


def shown_evaluation(problem: Problem, found: verdict.Evaluation) -> Evaluation:
    """The same evaluation, able to show itself."""
    return Evaluation(**{f.name: getattr(found, f.name) for f in fields(found)}, problem=problem)


def shown_answer(found: answers.Answer) -> Answer:
    """The same answer, able to show itself."""
    held = {f.name: getattr(found, f.name) for f in fields(found)}
    if found.evaluation is not None:
        held["evaluation"] = shown_evaluation(found.problem, found.evaluation)
    return Answer(**held)
