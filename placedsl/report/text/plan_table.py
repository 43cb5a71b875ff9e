"""The stages of a plan as a table: their devices, copies, samples in flight, load, memory and options."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from placedsl.evaluation.evaluate import Evaluation
from placedsl.problem.plan import Plan, Stage
from placedsl.problem.problem import Problem
from placedsl.report.text import tables
from placedsl.units import DATA, NUMBER, TIME, Dimension, show

_NUMBERED = re.compile(r"(.*)\[(\d+)\]$")


def print_stages(problem: Problem, evaluation: Evaluation, console: Console) -> None:
    """One row a stage, the input's first, and below them which nodes take which option."""
    time = TIME if problem.graph.time_in_seconds else NUMBER
    table = tables.table()
    for heading in ("stage", "devices", "copies", "in flight", "load", "memory", "nodes"):
        left = heading == "devices"
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    limits = {device.name: device.memory for device in problem.machine.devices}
    stages = Plan.of(problem, evaluation).stages
    for stage in stages:
        memory = show(stage.memory or 0.0, DATA)
        limit = limits[stage.devices[0]]
        degree = stage.parallelism["tensor"]
        cells = (
            str(stage.number), ", ".join(ranges(stage.devices)),
            str(stage.parallelism["data"]) + (f" x {degree}" if degree > 1 else ""), str(stage.in_flight),
            _amount(stage.load or 0.0, time), memory + ("" if math.isinf(limit) else f" of {show(limit, DATA)}"),
            str(len(stage.nodes)),
        )  # fmt: skip
        table.add_row(*map(escape, cells))
    tables.print_table(table, console)
    for stage in stages:
        listed = textwrap.wrap(
            f"{stage.number}: {_nodes(stage)}", tables.WIDTH, initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        console.print("\n".join(listed), highlight=False, markup=False, soft_wrap=True)


def _amount(value: float, dimension: Dimension) -> str:
    return f"{value:.6g}" if dimension == NUMBER else show(value, dimension)


def _nodes(stage: Stage) -> str:
    """The nodes of each option, numbers in ranges."""
    by_option: dict[str, list[str]] = {}
    for node in stage.nodes:
        by_option.setdefault(node.option or "", []).append(str(node.id))
    return "; ".join(f"{name} {', '.join(_runs(ids))}".strip() for name, ids in by_option.items())


def _runs(ids: Sequence[str]) -> list[str]:
    """Numbers that follow one another as ``3..7``."""
    numbers = sorted(int(own) for own in ids if own.isdecimal())
    out: list[tuple[int, int]] = []
    for number in numbers:
        if out and out[-1][1] + 1 == number:
            out[-1] = out[-1][0], number
        else:
            out.append((number, number))
    runs = [str(low) if low == high else f"{low}..{high}" for low, high in out]
    return runs + [own for own in ids if not own.isdecimal()]


def ranges(names: Sequence[str]) -> list[str]:
    """``gpu[1..16]`` for devices of a family that follow one another."""
    out: list[tuple[str, int, int]] = []
    words: list[str] = []
    for name in names:
        found = _NUMBERED.match(name)
        if found is None:
            words.append(name)
            continue
        family, number = found[1], int(found[2])
        if out and out[-1][0] == family and out[-1][2] + 1 == number:
            out[-1] = family, out[-1][1], number
        else:
            out.append((family, number, number))
    return words + [f"{family}[{low}]" if low == high else f"{family}[{low}..{high}]" for family, low, high in out]
