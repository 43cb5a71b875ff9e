"""What a terminal shows of why a placement is no better."""

from __future__ import annotations

import math

from rich.console import Console
from rich.markup import escape

from placedsl.diagnosis.sensitivity.binding import Binding, Bottleneck
from placedsl.diagnosis.sensitivity.report import Effect, Why
from placedsl.report.text import tables
from placedsl.report.text.summary import amount
from placedsl.tolerances import SAME_VALUE
from placedsl.units import Dimension

_SHOWN = 8


def print_why(why: Why, console: Console) -> None:
    """The bottleneck, what binds, and what each change would do."""
    goal = why.objective
    for bottleneck in why.bottlenecks:
        console.print(f"[bold]bottleneck[/bold] {_bottleneck(bottleneck, goal.dimension)}", highlight=False)
    if why.binding:
        console.print("[bold]what binds[/bold]", highlight=False)
        _print([(f"{b.span.source.name}:{b.span.line}", b.name, bound_by(b)) for b in why.binding], console)
    console.print(f"[bold]what would change {escape(goal.name)}, each by itself[/bold]", highlight=False)
    _print([(e.change, *effect(e, goal.dimension)) for e in why.effects], console)


def bound_by(binding: Binding) -> str:
    """Which instances of a rule have no slack."""
    if not binding.total:
        return "no slack to measure"
    if not binding.instances:
        return "slack at this placement"
    listed = [label for label in binding.instances if label]
    shown = ", ".join(listed[:_SHOWN]) + (f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
    if binding.total == 1:
        return shown or "yes"
    return f"{len(binding.instances)} of {binding.total}: {shown}"


def effect(effect: Effect, dimension: Dimension) -> tuple[str, str]:
    """What a change does, and how well that is known."""
    before, value, bound = (amount(x, dimension) for x in (effect.before, effect.value, effect.bound))
    if math.isinf(effect.value):
        return ("no placement", "proven") if effect.termination == "infeasible" else ("not known", effect.termination)
    if effect.proven:
        worse = effect.value > effect.before and not math.isclose(effect.value, effect.before, rel_tol=SAME_VALUE)
        return (f"{before} -> {value}" if effect.helps or worse else "no change", "proven")
    limit = f"no better than {bound} (bound)" if math.isfinite(effect.bound) else "no bound"
    return (f"{before} -> {value} or less" if effect.helps else "nothing better found", limit)


def _bottleneck(bottleneck: Bottleneck, dimension: Dimension) -> str:
    where = bottleneck.device + (f" in the {bottleneck.part} pass" if bottleneck.part else "")
    text = f"{where}: {amount(bottleneck.value, dimension)}"
    parts = (bottleneck.moving, "moving tensors"), (bottleneck.streamed, "streaming what does not fit")
    said = " and ".join(f"{amount(time, dimension)} {what}" for time, what in parts if time)
    return escape(f"{text}, of which {said}" if said else text)


def _print(rows: list[tuple[str, str, str]], console: Console) -> None:
    table = tables.table(headings=False)
    for row in rows:
        table.add_row(*(escape(text) for text in row))
    tables.print_table(table, console)
