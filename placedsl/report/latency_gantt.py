"""One sample's run as a Gantt chart: one row a device, port or link, the critical path in red."""

from __future__ import annotations

import io
import itertools
from html import escape
from pathlib import Path
from typing import Any

from placedsl.report import picture
from placedsl.report.latency_names import name_of, rules_of
from placedsl.timeline.sample import SampleTimeline, Task
from placedsl.units import show

#: Forward (and inference) dark, backward light, transfers grey; two shades keep neighbours apart.
_COLOURS = {"forward": ("#2b5c8a", "#3f78ad"), "backward": ("#a9c8e4", "#c2d8ec"), "transfer": ("#d9d9d9", "#c4c4c4")}
_TEXT = {"forward": "white", "backward": "black", "transfer": "black"}
_CRITICAL = "#d62728"
#: Of what overlaps on a row so many lanes are drawn, and so many steps of the critical path joined by lines.
_MOST_LANES, _MOST_STEPS = 8, 400


def draw(timeline: SampleTimeline, path: Path) -> None:
    """Write the chart; the ending of the file's name (svg, png, pdf) says which kind.  UsageError as of any picture."""
    picture.save(lambda: _figure(timeline), path)


def element(timeline: SampleTimeline, *, drawn: bool = True) -> str:
    """Measures and chart as an HTML element; the measures alone when not ``drawn``."""
    from rich.console import Console

    from placedsl.report.latency_text import print_sample

    paper = io.StringIO()
    print_sample(timeline, Console(file=paper, width=120))
    chart = picture.element(lambda: _figure(timeline)) if drawn else ""
    return f"<div><pre>{escape(paper.getvalue())}</pre>{chart}</div>"


def _figure(timeline: SampleTimeline) -> Any:
    """The chart itself, a matplotlib Figure."""
    from matplotlib.figure import Figure

    rows = [r for r, row in enumerate(timeline.rows) if row.tasks]
    unit, scale = picture.unit_for(timeline.latency, timeline.problem)
    figure = Figure(figsize=(11.0, 0.45 * len(rows) + 1.3), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlim(0.0, timeline.latency / scale or 1.0)
    middle: dict[int, float] = {}  # of each task on the first of its rows
    critical = set(timeline.critical)
    for y, r in enumerate(rows):
        _draw_row(axes, timeline, r, y, scale, critical, middle)
    for one, other in itertools.pairwise(timeline.critical[:_MOST_STEPS]):
        end, begin = timeline.tasks[one].finish / scale, timeline.tasks[other].start / scale
        axes.plot([end, begin], [middle[one], middle[other]], color=_CRITICAL, linewidth=1.0, solid_capstyle="round")
    axes.set_yticks(range(len(rows)), [timeline.rows[r].name for r in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    light = "; light: backward pass" if timeline.problem.graph.backward.any() else ""
    axes.set_xlabel(f"time ({unit}); red: critical path; hatched: moving tensors{light}")
    goal = next((o.dimension for o in timeline.problem.objectives if o.name == "latency"), None)
    value = show(timeline.latency, goal) if goal is not None else f"{timeline.latency / scale:.6g} {unit}"
    axes.set_title(f"{rules_of(timeline)}: latency = {value}", loc="left", fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _draw_row(
    axes: Any, timeline: SampleTimeline, r: int, y: int, scale: float, critical: set[int], middle: dict[int, float]
) -> None:
    """The tasks of a row; what overlaps lies side by side, beyond the last lane one over the other."""
    lanes = timeline.lanes(r)
    height = 0.76 / min(len(lanes), _MOST_LANES)
    for number, lane in enumerate(lanes):
        top = y - 0.38 + min(number, _MOST_LANES - 1) * height
        for place, k in enumerate(lane):
            middle.setdefault(k, top + height / 2)
            _draw_task(axes, timeline, k, (top, height), scale, place % 2, marked=k in critical)


def _draw_task(
    axes: Any, timeline: SampleTimeline, k: int, place: tuple[float, float], scale: float, shade: int, *, marked: bool
) -> None:
    """One bar, its transfers hatched, its name where there is room."""
    task = timeline.tasks[k]
    begin, width = task.start / scale, (task.finish - task.start) / scale
    kind = _kind(timeline, task)
    moving = [(begin, width)] if kind == "transfer" else []
    if task.kind == "call":
        moving = [(begin, task.receive / scale), (begin + width - task.send / scale, task.send / scale)]
    if task.kind != "transfer":
        axes.broken_barh([(begin, width)], place, facecolor=_COLOURS[kind][shade], edgecolor="white", linewidth=0.3)
    axes.broken_barh(
        [part for part in moving if part[1] > 0], place, facecolor=_COLOURS["transfer"][shade], edgecolor="#7f7f7f",
        hatch="////", linewidth=0.3,
    )  # fmt: skip
    if marked:
        axes.broken_barh([(begin, width)], place, facecolor="none", edgecolor=_CRITICAL, linewidth=1.6, zorder=3)
    name, left, right = name_of(timeline, task), begin + task.receive / scale, begin + width - task.send / scale
    # A character of this size is a ninetieth of the picture's width.
    if place[1] > 0.3 and right - left > len(name) * axes.get_xlim()[1] / 130:
        behind = {"facecolor": _COLOURS[kind][shade], "edgecolor": "none", "pad": 1.0} if moving else None
        axes.text(
            (left + right) / 2, place[0] + place[1] / 2, name, ha="center", va="center", fontsize=7, color=_TEXT[kind],
            clip_on=True, zorder=4, bbox=behind,
        )  # fmt: skip


def _kind(timeline: SampleTimeline, task: Task) -> str:
    """What the colour says: a call that computes some of the forward part is forward."""
    if task.kind == "transfer":
        return "transfer"
    backward = timeline.problem.graph.backward
    return "backward" if all(backward[v] for v in task.nodes) else "forward"
