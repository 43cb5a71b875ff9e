"""Specs, answers and evaluations as HTML, for notebooks.  Well-formed, escaped, without scripts and style sheets."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from placedsl.answer import Answer, gap
from placedsl.cost.verdict import Evaluation
from placedsl.problem import Objective, Problem
from placedsl.report.summary import WORDS, amount
from placedsl.units import DATA, NUMBER, TIME, show

#: So many devices are listed, and so many nodes are drawn; a page that holds more is of no use.
_MOST_DEVICES, _MOST_DRAWN = 64, 2_000
_BAR = "background:#6f9fd8;height:0.8em;width:"


def told(answer: Answer) -> list[str]:
    """The objectives with their values, bounds and gaps, in words."""
    out = []
    for k, goal in enumerate(answer.problem.objectives):
        value = answer.evaluation.objectives[k] if answer.evaluation else math.inf
        if math.isfinite(value):
            out.append(f"{goal.name} = {amount(value, goal.dimension)} ({_proof(goal, value, answer.bounds[k])})")
        elif math.isfinite(answer.bounds[k]) and answer.termination != "infeasible":
            out.append(f"{goal.name} is at least {amount(answer.bounds[k], goal.dimension)}")
    return out


def answer_html(answer: Answer) -> str:
    """Status, objectives with bounds and gaps, devices, and a picture where matplotlib is installed."""
    by = ", ".join(filter(None, (answer.method, answer.solver, f"{answer.seconds.get('total', 0.0):.2f} s")))
    parts = [_line(f"<b>{escape(WORDS[answer.termination])}</b> ({escape(by)}): {escape(answer.message)}")]
    parts += [_line(escape(text)) for text in told(answer)]
    if answer.evaluation is not None:
        parts += [_devices(answer.problem, answer.evaluation), _picture(answer)]
    parts += [_line(f"note: {escape(note)}") for note in answer.notes]
    return _whole(parts)


def evaluation_html(problem: Problem, evaluation: Evaluation) -> str:
    """Objectives, what is violated, devices."""
    goals = zip(problem.objectives, evaluation.objectives, strict=True)
    parts = [_line(f"{escape(goal.name)} = <b>{escape(amount(value, goal.dimension))}</b>") for goal, value in goals]
    parts += [_line(f"<b>violated</b> {escape(v.rule)}: {escape(v.message)}") for v in evaluation.violations]
    if not evaluation.violations:
        parts.append(_line("every constraint holds"))
    return _whole([*parts, _devices(problem, evaluation)])


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
        ("schedule", problem.schedule),
        ("minimize", " then ".join(o.name for o in problem.objectives)),
        ("subject to", ", ".join(r.name for r in problem.rules) or "nothing"),
    )
    body = ("<tr>" + _cell(f"<b>{escape(name)}</b>") + _cell(escape(text)) + "</tr>" for name, text in rows)
    return _whole([_line(f"<b>{escape(problem.name)}</b>"), _table(body)])


def _proof(goal: Objective, value: float, bound: float) -> str:
    distance = gap(value, bound)
    if distance <= 1e-6:
        return "proven optimal"
    return "no bound" if math.isinf(distance) else f"bound {amount(bound, goal.dimension)}, gap {distance:.2%}"


def _devices(problem: Problem, evaluation: Evaluation) -> str:
    """Load with a bar, memory and number of nodes of each device."""
    time = TIME if problem.graph.time_in_seconds else NUMBER
    most = max((load for load in evaluation.loads if math.isfinite(load)), default=0.0) or 1.0
    headings = ("device", "load", "", "memory", "nodes")
    rows = ["<tr>" + "".join(f'<th style="text-align:left">{heading}</th>' for heading in headings) + "</tr>"]
    devices = problem.machine.devices
    for i, device in enumerate(devices[:_MOST_DEVICES]):
        load = evaluation.loads[i]
        limit = "" if math.isinf(device.memory) else f" of {show(device.memory, DATA)}"
        width = 12 * min(1.0, load / most) if math.isfinite(load) else 12
        cells = (
            escape(device.name), escape(amount(load, time)), f'<div style="{_BAR}{width:.2f}em"></div>',
            escape(show(evaluation.memory[i], DATA) + limit), str(len(problem.graph.members(evaluation.nodes[i]))),
        )  # fmt: skip
        rows.append("<tr>" + "".join(map(_cell, cells)) + "</tr>")
    if len(devices) > _MOST_DEVICES:
        rows.append("<tr>" + _cell(f"and {len(devices) - _MOST_DEVICES} more") + "</tr>")
    return _table(rows)


def _picture(answer: Answer) -> str:
    """The picture as inline SVG; nothing without matplotlib, and nothing for what is too large to be looked at."""
    small = answer.problem.graph.nodes <= _MOST_DRAWN and len(answer.problem.machine.devices) <= _MOST_DEVICES
    if not small or importlib.util.find_spec("matplotlib") is None:
        return ""
    from placedsl.report.picture import svg

    return svg(answer)


def _line(inner: str) -> str:
    return f"<div>{inner}</div>"


def _cell(inner: str) -> str:
    return f'<td style="text-align:left">{inner}</td>'


def _table(rows: Iterable[str]) -> str:
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _whole(parts: Sequence[str]) -> str:
    return f"<div>{''.join(parts)}</div>"
