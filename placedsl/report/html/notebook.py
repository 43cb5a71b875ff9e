"""Specs, answers and evaluations as HTML, for notebooks.  Well-formed, escaped, without scripts and style sheets."""

from __future__ import annotations

import io
import math
from collections import Counter

from rich.console import Console

from placedsl.evaluation.evaluation import Evaluation
from placedsl.planner.answer import Answer
from placedsl.problem.plan import sharing
from placedsl.problem.problem import Objective, Problem
from placedsl.report.html import progress_chart, timeline_chart
from placedsl.report.html.render import render
from placedsl.report.html.stage_picture import stage_picture
from placedsl.report.json.answer_document import document
from placedsl.report.text.summary import WORDS, amount, memory_limit
from placedsl.report.text.timeline_text import print_timeline
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline
from placedsl.units import DATA, NUMBER, TIME, show

#: So many devices are listed, and so many nodes are drawn; a page that holds more is of no use.
_MOST_DEVICES, _MOST_DRAWN = 64, 2_000


def objective_lines(answer: Answer) -> list[str]:
    """The objectives with their values, bounds and gaps, in words."""
    out = []
    for k, goal in enumerate(answer.problem.objectives):
        value = answer.evaluation.objectives[k] if answer.evaluation else math.inf
        if math.isfinite(value):
            out.append(f"{goal.name} = {amount(value, goal.dimension)} ({_proof(goal, answer, k)})")
        elif math.isfinite(answer.bounds[k]) and answer.termination != "infeasible":
            out.append(f"{goal.name} is at least {amount(answer.bounds[k], goal.dimension)}")
    return out


def answer_html(answer: Answer) -> str:
    """Status, objectives with bounds and gaps, devices, and the stages and the search as pages show them."""
    by = ", ".join(filter(None, (answer.method, answer.solver, f"{answer.seconds.get('total', 0.0):.2f} s")))
    return render(
        "answer.html", ended=WORDS[answer.termination], by=by, message=answer.message,
        objectives=objective_lines(answer),
        table=_devices(answer.problem, answer.evaluation) if answer.evaluation is not None else None,
        **_charts(answer), notes=answer.notes,
    )  # fmt: skip


def evaluation_html(problem: Problem, evaluation: Evaluation) -> str:
    """Objectives, what is violated, devices."""
    goals = zip(problem.objectives, evaluation.objectives, strict=True)
    return render(
        "evaluation.html", objectives=[(goal.name, amount(value, goal.dimension)) for goal, value in goals],
        violations=evaluation.violations, table=_devices(problem, evaluation),
    )  # fmt: skip


def spec_html(problem: Problem) -> str:
    """What a spec holds: graph, devices, objectives, constraints."""
    graph = problem.graph
    families = Counter((d.family, d.kind, d.memory) for d in problem.machine.devices)
    devices = (
        f"{number} x {family} ({kind}" + (")" if math.isinf(memory) else f", {show(memory, DATA)})")
        for (family, kind, memory), number in families.items()
    )
    rows = (
        ("graph", f"{graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors"),
        ("devices", ", ".join(devices)),
        ("schedule", problem.execution.name),
        ("minimize", " then ".join(o.name for o in problem.objectives)),
        ("subject to", ", ".join(r.name for r in problem.constraints) or "nothing"),
    )
    return render("spec.html", name=problem.name, rows=rows)


def _proof(goal: Objective, answer: Answer, position: int) -> str:
    distance, bound = answer.gaps[position], answer.bounds[position]
    if answer.proven(position):
        return "proven optimal"
    return "no bound" if math.isinf(distance) else f"bound {amount(bound, goal.dimension)}, gap {distance:.2%}"


def _devices(problem: Problem, evaluation: Evaluation) -> dict[str, object]:
    """Load with a bar, memory and number of nodes of each device; one that shares a stage has those of its leader."""
    time = TIME if problem.graph.time_in_seconds else NUMBER
    most = max((load for load in evaluation.loads if math.isfinite(load)), default=0.0) or 1.0
    devices, rows = problem.machine.devices, list[dict[str, object]]()
    leader = sharing(problem, evaluation)
    for i, device in enumerate(devices[:_MOST_DEVICES]):
        first = leader.get(i, i)
        load = evaluation.loads[first]
        limit = memory_limit(problem, evaluation, first, device.memory)
        rows.append({
            "name": device.name, "load": amount(load, time), "memory": show(evaluation.memory[first], DATA) + limit,
            "width": 12 * min(1.0, load / most) if math.isfinite(load) else 12,
            "nodes": len(problem.graph.members(evaluation.nodes[first])),
        })  # fmt: skip
    headings = ("device", "load", "", "memory", "nodes")
    return {"headings": headings, "rows": rows, "more": max(0, len(devices) - _MOST_DEVICES)}


def _charts(answer: Answer) -> dict[str, object]:
    """Stages and search; nothing of what is too large to be looked at."""
    small = answer.problem.graph.nodes <= _MOST_DRAWN and len(answer.problem.machine.devices) <= _MOST_DEVICES
    told = document(answer)
    stages = stage_picture(told) if small else None
    return {"stages": stages, "progress": progress_chart.progress_chart(told), "plot": progress_chart}


def timeline_html(timeline: PipelineTimeline | SampleTimeline) -> str:
    """Measures and chart of a run."""
    paper = io.StringIO()
    print_timeline(timeline, Console(file=paper, width=120))
    return render(
        "timeline.html", text=paper.getvalue(), chart=timeline_chart.timeline_chart(timeline), size=timeline_chart
    )
