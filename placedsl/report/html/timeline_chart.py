"""A timeline as data for pages: bars on rows, to be drawn at once and to be zoomed into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from placedsl.report.html.amounts import amount
from placedsl.report.task_names import name_of, pass_of
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.sample import SampleTimeline
from placedsl.simulation.timeline import Task

#: So many samples and bars are shown, on so many rows of so many lanes; more cannot be told apart.
MOST_SAMPLES, MOST_BARS, MOST_ROWS, MOST_LANES = 48, 4_000, 96, 4
#: The whole time in the units of the bars; the width and left edge of the plot; the height of a row and of its bars.
GRID, WIDTH, LEFT, ROW, BAR = 1_000_000, 960, 170, 26, 20
KINDS = ("compute", "compute2", "backward", "backward2", "receive", "weights")
#: Characters per unit of width.
_CHARACTER = 7.0


@dataclass(frozen=True)
class TimelineChart:
    """``data``: what the script of a page reads; the rest is drawn without it.

    ``paths``   the bars of each kind, in units of :data:`GRID` to the right and of the picture downwards
    ``labels``  what is written in bars that have room for it: (x, y, text)
    """

    data: dict[str, Any]
    height: float
    rows: tuple[tuple[float, str, str], ...]
    paths: tuple[tuple[str, str], ...]
    critical: str
    labels: tuple[tuple[float, float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    about: str
    left_out: tuple[str, ...]


def timeline_chart(timeline: PipelineTimeline | SampleTimeline) -> TimelineChart:
    """The chart of a run: of many samples the first ones."""
    rows = [r for r, row in enumerate(timeline.rows) if row.tasks]
    horizon, about, left_out = _extent(timeline)
    unit = "s" if timeline.problem.graph.time_in_seconds else ""
    if len(rows) > MOST_ROWS:
        left_out.append(f"{len(rows) - MOST_ROWS} further rows are not drawn")
    critical, drawn, words = set(timeline.critical), list[dict[str, Any]](), dict[str, int]()
    room = MOST_BARS
    for r in rows[:MOST_ROWS]:
        bars: list[list[int]] = []
        lanes = timeline.lanes(r)
        for lane, tasks in enumerate(lanes):
            for place, k in enumerate(tasks):
                task = timeline.tasks[k]
                if task.start >= horizon or room <= 0:
                    break
                room -= 1
                bars += _bars(timeline, task, place, min(lane, MOST_LANES - 1), horizon, words, k in critical)
        drawn.append({
            "name": timeline.rows[r].name, "lanes": min(len(lanes), MOST_LANES), "bars": sorted(bars),
            "busy": timeline_busy(timeline, r, horizon),
        })  # fmt: skip
    if room <= 0:
        left_out.append(f"only the first {MOST_BARS:,} bars are drawn")
    data = {"unit": unit, "end": horizon, "kinds": KINDS, "words": list(words), "rows": drawn}
    names = tuple((ROW * (y + 0.5), _short(row["name"]), row["name"]) for y, row in enumerate(drawn))
    paths = [(kind, _path(drawn, partial(_is_of, number))) for number, kind in enumerate(KINDS)]
    return TimelineChart(
        data, ROW * len(drawn) + 30, names, tuple((kind, path) for kind, path in paths if path),
        _path(drawn, lambda bar: bool(bar[5])), tuple(_labels(drawn, list(words))),
        tuple((WIDTH * k / 6, amount(float(f"{horizon * k / 6:.3g}"), unit)) for k in range(7)), about, tuple(left_out),
    )  # fmt: skip


def _is_of(kind: int, bar: list[int]) -> bool:
    return bar[2] == kind


def timeline_busy(timeline: PipelineTimeline | SampleTimeline, row: int, horizon: float) -> float:
    """The share of the time that is shown in which something runs on a row."""
    busy, until = 0.0, 0.0
    for task in sorted((timeline.tasks[k] for k in timeline.rows[row].tasks), key=lambda t: t.start):
        if task.start >= horizon:
            break
        finish = min(task.finish, horizon)
        busy += max(0.0, finish - max(task.start, until))
        until = max(until, finish)
    return busy / horizon if horizon > 0.0 else 0.0


def _extent(timeline: PipelineTimeline | SampleTimeline) -> tuple[float, str, list[str]]:
    """Until when it is drawn, what it is, and what is left out."""
    if isinstance(timeline, SampleTimeline):
        return timeline.latency or 1.0, "one sample; the critical path is outlined", []
    shown = max(1, min(timeline.samples, MOST_SAMPLES, MOST_BARS // max(1, len(timeline.stages))))
    left_out = [f"of {timeline.samples} samples the first {shown} are shown"] if shown < timeline.samples else []
    about = f"{timeline.schedule}, numbers are samples"
    return float(timeline.end[:, shown - 1].max()) or 1.0, about, left_out


def _bars(
    timeline: PipelineTimeline | SampleTimeline, task: Task, place: int, lane: int, horizon: float,
    words: dict[str, int], critical: bool,
) -> list[list[int]]:  # fmt: skip
    """A task as bars [start, length, kind, lane, word, critical]: what it receives, computes and sends."""
    kind = pass_of(timeline, task)
    name = str(task.sample) if isinstance(timeline, PipelineTimeline) else name_of(timeline, task)
    word = words.setdefault(name, len(words))
    if task.kind == "weights":
        parts = [(task.start, task.finish, "weights")]
    elif kind == "transfer":
        parts = [(task.start, task.finish, "receive")]
    else:
        inner = task.start + task.receive, task.finish - task.send
        shade = {"forward": "compute", "backward": "backward"}[kind] + ("2" if place % 2 else "")
        parts = [(task.start, inner[0], "receive"), (*inner, shade), (inner[1], task.finish, "receive")]
    scale = GRID / horizon
    out = []
    for start, finish, shown in parts:
        left, right = round(start * scale), min(GRID, round(finish * scale))
        if left < GRID and (finish > start or len(parts) == 1):
            out.append([left, right - left, KINDS.index(shown), lane, word, int(critical)])
    return out


def _path(rows: list[dict[str, Any]], chosen: Any) -> str:
    """The outlines of all bars that are chosen."""
    out = []
    for y, row in enumerate(rows):
        height = BAR / row["lanes"]
        for bar in row["bars"]:
            if chosen(bar):
                top = ROW * y + (ROW - BAR) / 2 + height * bar[3]
                out.append(f"M{bar[0]} {top:g}h{bar[1]}v{height:g}h-{bar[1]}z")
    return "".join(out)


def _labels(rows: list[dict[str, Any]], words: list[str]) -> Any:
    for y, row in enumerate(rows):
        for left, length, kind, _, word, _ in row["bars"]:
            width = length * WIDTH / GRID
            if row["lanes"] == 1 and KINDS[kind] != "receive" and width > _CHARACTER * len(words[word]) + 4:
                yield (left + length / 2) * WIDTH / GRID, ROW * (y + 0.5), words[word]


def _short(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:10]}…{name[-11:]}"
