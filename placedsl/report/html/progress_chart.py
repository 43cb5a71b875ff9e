"""The objective and its bound over the time of the search, from an answer's document, as two lines of steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placedsl.planner.answer import gap
from placedsl.report.html.amounts import amount

#: The plot, and the space beside it.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760.0, 190.0, 96.0, 12.0, 150.0, 30.0


@dataclass(frozen=True)
class ProgressChart:
    """Paths of value, bound and the gap between them; ticks as (place, text); moments as texts for a table."""

    value: str
    bound: str
    gap: str
    ticks_x: tuple[tuple[float, str], ...]
    ticks_y: tuple[tuple[float, str], ...]
    ends: tuple[tuple[str, float, str], ...]
    moments: tuple[tuple[str, str, str, str], ...]


def progress_chart(document: Mapping[str, Any]) -> ProgressChart | None:
    """The chart; None where nothing is known at any time, or the answer does not say when."""
    moments = document.get("progress", [])
    known: list[float] = [x for moment in moments for x in (moment["value"], moment["bound"]) if x is not None]
    if not known:
        return None
    unit = document["objective"]["unit"]
    end: float = max(moment["seconds"] for moment in moments) or 1.0
    low, high = float(min(known)), float(max(known))
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = low - margin, high + margin

    def x(seconds: float) -> float:
        return LEFT + WIDTH * seconds / end

    def y(value: float) -> float:
        return float(TOP + HEIGHT * (high - value) / (high - low))

    lines = {key: [(x(m["seconds"]), y(m[key])) for m in moments if m[key] is not None] for key in ("value", "bound")}
    ends, place = [], dict[str, float]()
    for key, points in lines.items():
        if points:
            place[key] = points[-1][1]
    if len(place) == 2 and abs(place["value"] - place["bound"]) < 16:
        place = {"value": place["value"] - 8, "bound": place["bound"] + 10}
    for key, level in place.items():
        ends.append((key, level, f"{key} {amount(document['objective'][key], unit)}"))
    both = [m for m in moments if m["value"] is not None and m["bound"] is not None]
    area = ""
    if both:
        upper = _steps([(x(m["seconds"]), y(m["value"])) for m in both])
        lower = _steps([(x(m["seconds"]), y(m["bound"])) for m in both], backwards=True)
        area = f"{upper}L{lower}Z"
    levels = [low + (high - low) * k / 4 for k in (0.3, 1.5, 2.5, 3.7)]
    return ProgressChart(
        _steps(lines["value"]), _steps(lines["bound"]), area,
        tuple((x(end * k / 4), f"{end * k / 4:.3g} s") for k in range(5)),
        tuple((y(level), amount(float(f"{level:.4g}"), unit)) for level in levels),
        tuple(ends),
        tuple((f"{m['seconds']:.3f} s", amount(m["value"], unit), amount(m["bound"], unit), _gap(m)) for m in moments),
    )  # fmt: skip


def _gap(moment: Mapping[str, Any]) -> str:
    value, bound = moment["value"], moment["bound"]
    distance = float("inf") if value is None or bound is None else gap(value, bound)
    return f"{distance:.2%}" if distance < float("inf") else "–"


def _steps(points: list[tuple[float, float]], *, backwards: bool = False) -> str:
    """A line that keeps its level until the next point; backwards without the letter at its begin."""
    corners: list[tuple[float, float]] = []
    for x, y in points:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    told = [f"{x:.1f} {y:.1f}" for x, y in (reversed(corners) if backwards else corners)]
    return ("" if backwards or not told else "M") + "L".join(told)
