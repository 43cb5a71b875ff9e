"""A timeline as a Gantt chart: one row a device, one bar a piece and sample."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import Any

from placedsl.report import picture
from placedsl.timeline.timeline import Timeline

#: So many samples are drawn, and so many bars; more cannot be told apart.
MOST_SAMPLES, _MOST_BARS = 24, 4_000
#: Forward (and inference) dark, backward light, as in Figure 7; samples alternate between two shades.
_COLOURS = {False: ("#2b5c8a", "#3f78ad"), True: ("#a9c8e4", "#c2d8ec")}
_TEXT = {False: "white", True: "black"}


def draw(timeline: Timeline, path: Path) -> None:
    """Write the chart; the ending of the file's name (svg, png, pdf) says which kind.  UsageError as of any picture."""
    picture.save(lambda: _figure(timeline), path)


def element(timeline: Timeline, *, drawn: bool = True) -> str:
    """Measures and chart as an HTML element; the measures alone when not ``drawn``."""
    from rich.console import Console

    from placedsl.report.timeline_text import print_timeline

    paper = io.StringIO()
    print_timeline(timeline, Console(file=paper, width=120))
    chart = picture.element(lambda: _figure(timeline)) if drawn else ""
    return f"<div><pre>{escape(paper.getvalue())}</pre>{chart}</div>"


def _figure(timeline: Timeline) -> Any:
    """The chart itself, a matplotlib Figure."""
    from matplotlib.figure import Figure

    shown = _shown(timeline)
    horizon = float(timeline.end[:, shown - 1].max())
    unit, scale = picture.unit_for(horizon, timeline.problem)
    devices = [d for d in range(len(timeline.loads)) if any(piece.device == d for piece in timeline.pieces)]
    figure = Figure(figsize=(11.0, 0.5 * len(devices) + 1.3), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlim(0.0, horizon / scale)
    for row, device in enumerate(devices):
        own = [p for p, piece in enumerate(timeline.pieces) if piece.device == device]
        for backward in (False, True):
            parts = [p for p in own if timeline.pieces[p].backward == backward]
            for number, p in enumerate(parts):
                _bars(axes, timeline, p, row, scale, "abcdefgh"[number] if 1 < len(parts) <= 8 else "")
    axes.set_yticks(range(len(devices)), [timeline.problem.machine.devices[d].name for d in devices])
    axes.set_ylim(len(devices) - 0.5, -0.5)
    light = "; light: backward pass" if any(piece.backward for piece in timeline.pieces) else ""
    axes.set_xlabel(f"time ({unit}); numbers: samples{light}; hatched: moving tensors")
    of = f"the first {shown} of " if shown < timeline.samples else ""
    axes.set_title(f"{timeline.schedule}, {of}{timeline.samples} samples", loc="left", fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _shown(timeline: Timeline) -> int:
    """How many samples are drawn to their end."""
    return max(1, min(timeline.samples, MOST_SAMPLES, _MOST_BARS // len(timeline.pieces)))


def _bars(axes: Any, timeline: Timeline, piece: int, row: int, scale: float, letter: str) -> None:
    """The bars of one piece within the axes, transfers hatched, the number of the sample where there is room."""
    backward, horizon = timeline.pieces[piece].backward, axes.get_xlim()[1]
    receive, compute = timeline.costs.receive[piece] / scale, timeline.costs.compute[piece] / scale
    send = timeline.costs.send[piece] / scale
    width = receive + compute + send
    begins = timeline.start[piece] / scale
    within = [i for i, begin in enumerate(begins.tolist()) if begin < horizon]
    colours = [_COLOURS[backward][i % 2] for i in within]
    axes.broken_barh(
        [(begins[i], width) for i in within], (row - 0.36, 0.72), facecolors=colours, edgecolor="white", linewidth=0.3
    )
    for offset, length in ((0.0, receive), (receive + compute, send)):
        if length > 0:
            axes.broken_barh(
                [(begins[i] + offset, length) for i in within], (row - 0.36, 0.72), facecolors="#d9d9d9",
                edgecolor="#7f7f7f", hatch="////", linewidth=0.3,
            )  # fmt: skip
    if compute > 0.012 * horizon:
        for i in within:
            middle = begins[i] + receive + compute / 2
            axes.text(
                middle, row, f"{i + 1}{letter}", ha="center", va="center", fontsize=7, color=_TEXT[backward],
                clip_on=True,
            )  # fmt: skip
