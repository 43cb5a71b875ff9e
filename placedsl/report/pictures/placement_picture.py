"""An answer as a picture: one bar a device, made of its nodes in the order of the graph and what it moves."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from placedsl.diagnostics import PlacedslError, UsageError
from placedsl.graph.order import topological
from placedsl.planner.answer import Answer
from placedsl.problem.problem import Problem
from placedsl.system import files
from placedsl.tolerances import SAME_VALUE
from placedsl.units import show

#: One text gives one file, byte for byte; texts stay texts, and a dollar sign starts no formula.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "placedsl", "svg.fonttype": "none", "text.parse_math": False}
#: Above the longest bar a unit of time is chosen so that numbers stay readable.
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


def check(path: Path) -> None:
    """UsageError when such a picture cannot be written: no matplotlib, an ending that it does not know, no folder."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("a picture needs matplotlib: pip install 'placedsl[picture]'")
    from matplotlib.figure import Figure

    kinds = Figure().canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in kinds:
        raise UsageError(f"'{path}': the name of a picture ends in one of .{', .'.join(sorted(kinds))}")
    if not path.parent.is_dir():
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


def svg(answer: Answer) -> str:
    """The picture as an ``<svg>`` element, to stand within a page; UsageError when there is nothing to draw."""
    return element(lambda: _figure(answer))


def element(make: Callable[[], Any]) -> str:
    """The matplotlib Figure that ``make`` gives as an ``<svg>`` element."""
    import matplotlib as mpl

    paper = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        make().savefig(paper, format="svg", metadata={"Date": None})
    text = paper.getvalue()
    return text[text.index("<svg") :]


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
    devices = problem.machine.devices
    order = topological(problem.graph.nodes, problem.graph.edge_source, problem.graph.edge_target)
    if order is None:
        raise PlacedslError("internal error: the graph has a cycle")
    longest = max(evaluation.loads)
    unit, scale = unit_for(longest, problem)
    figure = Figure(figsize=(9.0, 0.55 * len(devices) + 1.3), layout="constrained")
    axes = figure.add_subplot()
    colours = mpl.colormaps["viridis"]
    ends = [0.0] * len(devices)
    for rank, node in enumerate(order.tolist()):
        d = answer.placement[node]
        duration = float(problem.time[node, d]) / scale
        shade = colours(0.08 + 0.84 * rank / max(1, len(order) - 1))
        axes.barh(d, duration, left=ends[d], color=shade, edgecolor="white", linewidth=0.3, height=0.62)
        ends[d] += duration
    for d, load in enumerate(evaluation.loads):
        rest = load / scale - ends[d]
        if rest > 1e-9 * max(1.0, longest / scale):
            axes.barh(
                d, rest, left=ends[d], color="#d9d9d9", edgecolor="#7f7f7f", hatch="////", linewidth=0.3, height=0.62
            )
    axes.set_yticks(range(len(devices)), [_label(answer, d) for d in range(len(devices))])
    axes.invert_yaxis()
    axes.set_xlabel(f"busy for each sample ({unit}); shade: position in the graph; hatched: moving tensors")
    goal = problem.objectives[0]
    distance = f"gap {answer.gap:.2%}" if math.isfinite(answer.gap) else "no bound"
    proof = "optimal" if answer.gap <= SAME_VALUE else distance
    axes.set_title(f"{goal.name} = {show(answer.value, goal.dimension)}  ({proof})", loc="left", fontsize=10)
    axes.axvline(longest / scale, color="#d62728", linewidth=1.0, linestyle="--")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _label(answer: Answer, device: int) -> str:
    assert answer.evaluation is not None
    count = len(answer.problem.graph.members(answer.evaluation.nodes[device]))
    return f"{answer.problem.machine.devices[device].name}  ({count} node{'s' if count != 1 else ''})"
