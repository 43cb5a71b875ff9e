"""What a terminal shows of the bounds by name."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from placedsl.planner.bounds_by_name import FoundBound
from placedsl.report.text import tables
from placedsl.units import TIME, show


def print_bounds(bounds: Sequence[FoundBound], value: float | None, console: Console) -> None:
    """A line for each bound: its value, its seconds, the known value over it, and whether it is a bound of the problem.

    ``value``: of the placement that is known (None: none).
    """
    table = tables.table(indented=False)
    for heading in ("bound", "value", "seconds", *(("value / bound",) if value is not None else ()), "valid"):
        table.add_column(heading, justify="left" if heading in ("bound", "valid") else "right")
    for one in bounds:
        cells = [one.name, "-", "-"]
        if not one.against:
            cells = [one.name, "-" if one.value is None else show(one.value, TIME), f"{one.seconds:.2f}"]
        if value is not None:
            cells.append(ratio(value, one.value))
        table.add_row(*cells, escape(_valid(one)))
    tables.print_table(table, console)


def ratio(value: float, bound: float | None) -> str:
    """A value over a bound, or a dash where there is none."""
    return "-" if bound is None or bound <= 0.0 else f"{value / bound:.4f}"


def _valid(one: FoundBound) -> str:
    """Whether it is a bound of the problem, and whether more time would give more."""
    if one.against:
        return f"no: {'; '.join(one.against)}"
    if one.failed:
        return f"its process ended early: {one.failed}"
    if one.value is None:
        return "nothing was proven in the time"
    return "yes" if one.final else "yes, not final"
