"""An answer as a picture: one bar per device in the order of the stages, made of its nodes and of what it moves."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from placedsl.diagnostics import PlacedslError, UsageError
from placedsl.graph.order import topological
from placedsl.planner.answer import Answer
from placedsl.problem.problem import Problem
from placedsl.system import files, paths
from placedsl.tolerances import SAME_VALUE
from placedsl.units import DATA, show

#: One text gives one file, byte for byte; texts stay texts, and a dollar sign starts no formula.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "placedsl", "svg.fonttype": "none", "text.parse_math": False}
#: Above the longest bar a unit of time is chosen so that numbers stay readable.
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
#: Shades of the first and of the last node; how moving tensors are drawn.
_DARKEST, _LIGHTEST = 0.08, 0.92
_MOVING: dict[str, Any] = {"facecolor": "#d9d9d9", "edgecolor": "#7f7f7f", "hatch": "////", "linewidth": 0.3}
#: Characters that a bar as long as the largest load has room for; a name is shortened to no fewer than the second.
_CHARACTERS, _LEAST = 90, 5


def check(path: Path) -> None:
    """UsageError when such a picture cannot be written: no matplotlib, an ending that it does not know, no folder."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("a picture needs matplotlib: pip install 'placedsl[picture]'")
    from matplotlib.figure import Figure

    kinds = Figure().canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in kinds:
        raise UsageError(f"'{path}': the name of a picture ends in one of .{', .'.join(sorted(kinds))}")
    if not paths.is_folder(path.parent):
        raise UsageError(f"'{path}': there is no folder '{path.parent}'")


def draw(answer: Answer, path: Path) -> None:
    """Write the picture; the ending of the file's name (svg, png, pdf) says which kind.

    Raises UsageError when there is nothing to draw, or as :func:`check` does.
    """
    save(lambda: _figure(answer), path)


def save(make: Callable[[], Any], path: Path) -> None:
    """Write the matplotlib Figure that ``make`` gives, whole or not at all; UsageError as :func:`check`."""
    check(path)
    import matplotlib as mpl

    metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
    paper = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        make().savefig(paper, format=path.suffix.lstrip(".").lower(), metadata=metadata)
    files.write(path, paper.getvalue())


def unit_for(longest: float, problem: Problem) -> tuple[str, float]:
    """The unit of time in which this length is a readable number, and how many of the problem's units it is."""
    if not problem.graph.time_in_seconds:
        return "the workload's unit", 1.0
    return next(((unit, scale) for unit, scale in _UNITS if longest >= scale), _UNITS[-1])


def _figure(answer: Answer) -> Any:
    """The picture itself, a matplotlib Figure."""
    if answer.evaluation is None or answer.placement is None:
        raise UsageError("there is no placement to draw")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    problem, evaluation = answer.problem, answer.evaluation
    rows = _rows(answer)
    longest = max(evaluation.loads)
    unit, scale = unit_for(longest, problem)
    longest /= scale
    figure = Figure(figsize=(9.0, 0.55 * len(rows) + 1.9), layout="constrained")
    axes = figure.add_subplot()
    colours = mpl.colormaps["viridis"]
    shades = _shades(problem)
    for y, (d, devices) in enumerate(rows):
        end, names = 0.0, []
        for node in sorted(evaluation.nodes[d], key=shades.__getitem__):
            duration = float(problem.time[node, d]) / scale / len(devices)
            axes.barh(y, duration, left=end, color=colours(shades[node]), edgecolor="white", linewidth=0.3, height=0.62)
            names.append((problem.graph.names[node], end, duration, shades[node]))
            end += duration
        for text, middle, shade in _labels(names, longest):
            axes.text(middle, y, text, ha="center", va="center", fontsize=7, color="black" if shade > 0.6 else "white")
        rest = evaluation.loads[d] / scale - end
        if rest > 1e-9 * max(1.0, longest):
            axes.barh(y, rest, left=end, height=0.62, **_MOVING)
        axes.text(max(end, end + rest) + 0.01 * longest, y, _memory(answer, d), va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), [_label(answer, d, devices) for d, devices in rows])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 1.16 * longest if longest > 0.0 else 1.0)
    axes.set_xlabel(f"busy for each sample ({unit})")
    goal = problem.objectives[0]
    distance = f"gap {answer.gap:.2%}" if math.isfinite(answer.gap) else "no bound"
    proof = "optimal" if answer.gap <= SAME_VALUE else distance
    axes.set_title(f"{goal.name} = {show(answer.value, goal.dimension)}  ({proof})", loc="left", fontsize=10)
    line = axes.axvline(longest, color="#d62728", linewidth=1.0, linestyle="--", label="largest load")
    _legend(figure, colours, line, shared=any(len(devices) > 1 for _, devices in rows))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _legend(figure: Any, colours: Any, line: Any, *, shared: bool) -> None:
    """What shades, hatches and the line mean, below the axes."""
    from matplotlib.patches import Patch

    moving = "moving tensors and weights" if shared else "moving tensors"
    handles = [
        Patch(color=colours(_DARKEST), label="first nodes of the graph"),
        Patch(color=colours(_LIGHTEST), label="last nodes"),
        Patch(label=moving, **_MOVING),
        line,
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=7, frameon=False)


def _rows(answer: Answer) -> list[tuple[int, tuple[str, ...]]]:
    """Devices in the order of the plan's stages, each with all that share its stage; idle ones last."""
    position = {device.name: d for d, device in enumerate(answer.problem.machine.devices)}
    rows: dict[int, tuple[str, ...]] = {}
    followers: set[int] = set()
    for stage in answer.plan.stages:
        rows.setdefault(position[stage.devices[0]], stage.devices)
        followers.update(position[name] for name in stage.devices[1:])
    idle = [(d, (name,)) for name, d in position.items() if d not in rows and d not in followers]
    return [*rows.items(), *idle]


def _shades(problem: Problem) -> list[float]:
    """The shade of each node, by its place in a topological order."""
    order = topological(problem.graph.nodes, problem.graph.edge_source, problem.graph.edge_target)
    if order is None:
        raise PlacedslError("internal error: the graph has a cycle")
    step = (_LIGHTEST - _DARKEST) / max(1, len(order) - 1)
    out = [0.0] * len(order)
    for rank, node in enumerate(order.tolist()):
        out[node] = _DARKEST + step * rank
    return out


def _labels(nodes: list[tuple[str, float, float, float]], longest: float) -> Iterator[tuple[str, float, float]]:
    """Names that fit into their bars, shortened where need be: text, middle and shade."""
    for name, left, duration, shade in nodes:
        room = int(_CHARACTERS * duration / longest) if longest > 0.0 else 0
        if len(name) <= room:
            yield name, left + duration / 2.0, shade
        elif room >= _LEAST:
            yield name[: room - 1] + "…", left + duration / 2.0, shade


def _memory(answer: Answer, device: int) -> str:
    """What is occupied, and of how much where there is a limit."""
    assert answer.evaluation is not None
    used, limit = answer.evaluation.memory[device], float(answer.problem.memory_limits[device])
    text = show(used, DATA)
    return f"{text} of {show(limit, DATA)}" if math.isfinite(limit) else text


def _label(answer: Answer, device: int, devices: tuple[str, ...]) -> str:
    assert answer.evaluation is not None
    count = len(answer.problem.graph.members(answer.evaluation.nodes[device]))
    names = devices[0] if len(devices) == 1 else f"{devices[0]} and {len(devices) - 1} more"
    return f"{names}  ({count} node{'s' if count != 1 else ''})"
