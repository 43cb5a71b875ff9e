"""Answers and evaluations as the Python face gives them: as tables, as graphs, in notebooks and on terminals."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from placedsl import answer as answers
from placedsl.cost import verdict
from placedsl.diagnostics import UsageError
from placedsl.problem import Problem

if TYPE_CHECKING:
    from rich.text import Text

    from placedsl.timelines import Timeline


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(verdict.Evaluation):
    """An evaluation that knows its problem, and so can show itself."""

    problem: Problem = field(kw_only=True)

    def __repr__(self) -> str:
        from placedsl.report.summary import amount

        goals = zip(self.problem.objectives, self.objectives, strict=True)
        values = ", ".join(f"{goal.name} = {amount(value, goal.dimension)}" for goal, value in goals)
        violated = ", ".join(v.rule for v in self.violations)
        return f"<Evaluation {'violates ' + violated if violated else 'feasible'}: {values}>"

    def __rich__(self) -> Text:
        from placedsl.report.summary import print_evaluation, printed

        return printed(lambda console: print_evaluation(self.problem, self, console))

    def _repr_html_(self) -> str:
        from placedsl.report.notebook import evaluation_html

        return evaluation_html(self.problem, self)


@dataclass(frozen=True, repr=False, eq=False)
class Answer(answers.Answer):
    """An answer, with its placement as a table or a graph."""

    def table(self) -> list[dict[str, Any]]:
        """One row a node, as ``pandas.DataFrame`` reads it: node (the id), name, device, time (there), memory.

        Times are seconds, or in the graph's own unit; without a placement ``device`` and ``time`` are None.
        """
        graph, devices = self.problem.graph, self.problem.machine.devices
        placement = self.placement or (None,) * graph.nodes
        return [
            {
                "node": graph.ids[v],
                "name": graph.names[v],
                "device": None if d is None else devices[d].name,
                "time": None if d is None else float(self.problem.time[v, d]),
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

        problem, placement = self.problem, self.placement
        ends = (
            problem.graph.edge_source.tolist(),
            problem.graph.edge_target.tolist(),
            problem.graph.edge_tensor.tolist(),
        )

        def moved(edge: int) -> float | None:
            if placement is None:
                return None
            u, v, tensor = placement[ends[0][edge]], placement[ends[1][edge]], ends[2][edge]
            return 0.0 if u == v else float(problem.transfer[tensor, u] + problem.transfer[tensor, v])

        out = digraph(problem.graph, moved)
        for row in self.table():
            out.nodes[row["node"]].update(device=row["device"], time=row["time"])
        return out

    def timeline(self, samples: int = 100, *, schedule: str | None = None, microbatches: int | None = None) -> Timeline:
        """The pipeline that the placement makes, run sample by sample; docs/timelines.md has schedules and measures.

        UsageError without a placement, and for a schedule that does not fit.
        """
        if self.placement is None:
            raise UsageError("there is no placement, and so no timeline")
        from placedsl.timelines import shown_timeline

        return shown_timeline(self.problem, self.placement, samples, schedule, microbatches)

    def __repr__(self) -> str:
        from placedsl.report.notebook import told

        by = ", ".join(filter(None, (self.method, self.solver)))
        return f"<Answer {self.termination} ({by}): {'; '.join(told(self)) or self.message}>"

    def __rich__(self) -> Text:
        from placedsl.report.summary import print_answer, printed

        return printed(lambda console: print_answer(self, console))

    def _repr_html_(self) -> str:
        from placedsl.report.notebook import answer_html

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
