"""A timeline as a Gantt chart: one row a device, port or link, the critical path in red where there is one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from placedsl.report.pictures import placement_picture as picture
from placedsl.report.task_names import name_of, pass_of, rules_of
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline
from placedsl.simulation.timeline import Task
from placedsl.units import show

#: So many samples of a pipeline are drawn, and so many bars; more cannot be told apart.
MOST_SAMPLES, _MOST_BARS = 24, 4_000
#: Forward (and inference) dark, backward light as in Figure 7, transfers grey; two shades keep neighbours apart.
_COLOURS = {"forward": ("#2b5c8a", "#3f78ad"), "backward": ("#a9c8e4", "#c2d8ec"), "transfer": ("#d9d9d9", "#c4c4c4")}
_TEXT = {"forward": "white", "backward": "black", "transfer": "black"}
_CRITICAL = "#d62728"
#: Of what overlaps on a row so many lanes are drawn, and so many steps of the critical path joined by lines.
_MOST_LANES, _MOST_STEPS = 8, 400


def draw(timeline: PipelineTimeline | SampleTimeline, path: Path) -> None:
    """Write the chart; the ending of the file's name (svg, png, pdf) says which kind.  UsageError as of any picture."""
    picture.save(lambda: _figure(timeline), path)


def _figure(timeline: PipelineTimeline | SampleTimeline) -> Any:
    """The chart itself, a matplotlib Figure."""
    from matplotlib.figure import Figure

    rows = [r for r, row in enumerate(timeline.rows) if row.tasks]
    horizon, title, labels = _about(timeline)
    unit, scale = picture.unit_for(horizon, timeline.problem)
    figure = Figure(figsize=(11.0, 0.45 * len(rows) + 1.3), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlim(0.0, horizon / scale or 1.0)
    middle: dict[int, float] = {}  # of each task on the first of its rows
    for y, r in enumerate(rows):
        _draw_row(axes, timeline, r, y, scale, middle)
    for one, other in itertools.pairwise(timeline.critical[:_MOST_STEPS]):
        end, begin = timeline.tasks[one].finish / scale, timeline.tasks[other].start / scale
        axes.plot([end, begin], [middle[one], middle[other]], color=_CRITICAL, linewidth=1.0, solid_capstyle="round")
    axes.set_yticks(range(len(rows)), [timeline.rows[r].name for r in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"time ({unit}); {labels}")
    axes.set_title(title, loc="left", fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _about(timeline: PipelineTimeline | SampleTimeline) -> tuple[float, str, str]:
    """Until when it is drawn, the title, and what the labels and colours mean."""
    light = "light: backward pass"
    if isinstance(timeline, PipelineTimeline):
        shown = max(1, min(timeline.samples, MOST_SAMPLES, _MOST_BARS // len(timeline.stages)))
        of = f"the first {shown} of " if shown < timeline.samples else ""
        training = f"; {light}" if any(stage.backward for stage in timeline.stages) else ""
        kinds = {operation.kind for operation in timeline.work.operations}
        kinds |= set() if timeline.links is None else {operation.kind for operation in timeline.links.links.operations}
        weights = "; w: exchange of weights" if "weights" in kinds else ""
        labels = f"numbers: samples{training}; hatched: moving tensors{weights}"
        return float(timeline.end[:, shown - 1].max()), f"{timeline.schedule}, {of}{timeline.samples} samples", labels
    unit, scale = picture.unit_for(timeline.latency, timeline.problem)
    goal = next((o.dimension for o in timeline.problem.objectives if o.name == "latency"), None)
    value = show(timeline.latency, goal) if goal is not None else f"{timeline.latency / scale:.6g} {unit}"
    training = f"; {light}" if timeline.problem.graph.backward.any() else ""
    labels = f"red: critical path; hatched: moving tensors{training}"
    return timeline.latency, f"{rules_of(timeline)}: latency = {value}", labels


def _draw_row(
    axes: Any, timeline: PipelineTimeline | SampleTimeline, r: int, y: int, scale: float, middle: dict[int, float]
) -> None:
    """The tasks of a row; what overlaps lies side by side, beyond the last lane one over the other."""
    lanes, critical = timeline.lanes(r), set(timeline.critical)
    height = 0.76 / min(max(1, len(lanes)), _MOST_LANES)
    horizon = axes.get_xlim()[1]
    for number, lane in enumerate(lanes):
        top = y - 0.38 + min(number, _MOST_LANES - 1) * height
        drawn = itertools.takewhile(lambda k: timeline.tasks[k].start / scale < horizon, lane)
        tasks = [(k, timeline.tasks[k], place % 2) for place, k in enumerate(drawn)]
        for k, _, _ in tasks:
            middle.setdefault(k, top + height / 2)
        _draw_lane(axes, timeline, [(task, shade) for _, task, shade in tasks], (top, height), scale)
        marked = [(task.start / scale, (task.finish - task.start) / scale) for k, task, _ in tasks if k in critical]
        if marked:
            axes.broken_barh(marked, (top, height), facecolor="none", edgecolor=_CRITICAL, linewidth=1.6, zorder=3)


def _draw_lane(
    axes: Any, timeline: PipelineTimeline | SampleTimeline, tasks: list[tuple[Task, int]], at: tuple[float, float],
    scale: float,
) -> None:  # fmt: skip
    """Bars, their transfers hatched, their labels where there is room."""
    bars, moves = list[tuple[tuple[float, float], str]](), list[tuple[tuple[float, float], str]]()
    for task, place in tasks:
        shade = task.sample % 2 if task.sample else place
        begin, width, kind = task.start / scale, (task.finish - task.start) / scale, pass_of(timeline, task)
        receive, send = task.receive / scale, task.send / scale
        parts = [(begin, width)] if kind == "transfer" else [(begin, receive), (begin + width - send, send)]
        moving = [part for part in parts if part[1] > 0]
        moves += [(part, _COLOURS["transfer"][shade]) for part in moving]
        bars += [((begin, width), _COLOURS[kind][shade])] if kind != "transfer" else []
        label, left, right = _label(timeline, task), begin + receive, begin + width - send
        # A character of this size is a ninetieth of the picture's width.
        if at[1] > 0.3 and right - left > len(label) * axes.get_xlim()[1] / 130:
            behind = {"facecolor": _COLOURS[kind][shade], "edgecolor": "none", "pad": 1.0}
            axes.text(
                (left + right) / 2, at[0] + at[1] / 2, label, ha="center", va="center", fontsize=7,
                color=_TEXT[kind], clip_on=True, zorder=4, bbox=behind if moving and not task.sample else None,
            )  # fmt: skip
    for held, edge, hatch in ((bars, "white", ""), (moves, "#7f7f7f", "////")):
        if held:
            axes.broken_barh(
                [part for part, _ in held], at, facecolors=[colour for _, colour in held], edgecolor=edge,
                hatch=hatch or None, linewidth=0.3,
            )  # fmt: skip


def _label(timeline: PipelineTimeline | SampleTimeline, task: Task) -> str:
    """The name; of a stage the number of its sample, with a letter where its device has several of its pass."""
    if not isinstance(timeline, PipelineTimeline):
        return name_of(timeline, task)
    if task.kind == "weights":
        return "w"
    own = timeline.stages[task.first]
    alike = [p for p, s in enumerate(timeline.stages) if (s.device, s.backward) == (own.device, own.backward)]
    return f"{task.sample}{'abcdefgh'[alike.index(task.first)] if 1 < len(alike) <= 8 else ''}"
