"""What a terminal shows of a conflict."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from placedsl.diagnosis.infeasibility.conflict import Conflict, Member
from placedsl.report.text import tables

_SHOWN = 8


def print_conflict(conflict: Conflict, console: Console) -> None:
    """The constraints with their places in the spec, how much that says, and what would repair it."""
    alone = len(conflict.members) == 1
    title = "this constraint cannot hold" if alone else "these constraints cannot hold together"
    console.print(f"[bold]{title}[/bold]", highlight=False)
    table = tables.table(headings=False)
    for member in conflict.members:
        table.add_row(_place(member), escape(member.name), escape(_which(member)))
    tables.print_table(table, console)
    for diagnostic in conflict.diagnostics:
        console.print(diagnostic.render(), highlight=False, markup=False)
    for line in verdict(conflict):
        console.print(f"  {line}", highlight=False, markup=False)
    if conflict.repair:
        console.print("[bold]what would repair it[/bold]" + (", each by itself" if len(conflict.repair) > 1 else ""))
        for line in conflict.repair:
            console.print(f"  {line}", highlight=False, markup=False)
    if conflict.unfinished:
        console.print("  There may be other repairs: the time was over before all were tried.", highlight=False)


def verdict(conflict: Conflict) -> list[str]:
    """How small the set is, and without which of its members there is a placement."""
    if conflict.never:
        return []
    if not conflict.smallest:
        why = "time limit" if conflict.late else "without some of them it could not be decided"
        return [f"This is a set of conflicting constraints, possibly not the smallest ({why})."]
    own = [m for m in conflict.members if m.span is not None]
    if all(m.cures for m in own):
        return [f"Without {'it' if len(own) == 1 else 'any one of them'} there is a placement."]
    lines = [] if len(own) == 1 else ["Without any one of them the others hold together."]
    other = [m.name for m in own if m.cures is False]
    if other:
        lines.append(f"Without {' or '.join(other)} there is still no placement: another conflict remains.")
    cures = [m.name for m in own if m.cures]
    if cures:
        lines.append(f"Without {' or '.join(cures)} there is a placement.")
    return lines


def _place(member: Member) -> str:
    return "(always)" if member.span is None else f"{member.span.source.name}:{member.span.line}"


def _which(member: Member) -> str:
    """The instances of a member that are in the conflict."""
    if not member.instances:
        return ""
    shown = ", ".join(member.instances[:_SHOWN])
    more = len(member.instances) - _SHOWN
    text = shown + (f" and {more} more" if more > 0 else "")
    return f"{len(member.instances)} of its {member.total} instances: {text}" if member.total > 1 else text
