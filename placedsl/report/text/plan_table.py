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
#: A name that ends with a number, as it is written.
_ENDS = re.compile(r"(|.*[^\d])(0|[1-9]\d{0,17})$")
#: Names from one to that many further are listed.
_SHORT = 2


def print_stages(problem: Problem, evaluation: Evaluation, console: Console) -> None:
    """One row a stage, the input's first, and below them which nodes take which option."""
    time = TIME if problem.graph.time_in_seconds else NUMBER
    table = tables.table()
    stages = Plan.of(problem, evaluation).stages
    across = any(stage.across for stage in stages)
    chunks = any(stage.chunk for stage in stages)
    shown = [
        "stage",
        *(["chunk"] if chunks else []),
        "devices",
        *(["across"] if across else []),
        "copies",
        "in flight",
        "load",
        "memory",
        "nodes",
    ]
    for heading in shown:
        left = heading in ("devices", "across")
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    limits = {device.name: device.memory for device in problem.machine.devices}
    for stage in stages:
        memory = show(stage.memory or 0.0, DATA)
        limit = limits[stage.devices[0]]
        degree = stage.parallelism["tensor"]
        first = [str(stage.number), *([str(stage.chunk)] if chunks else []), ", ".join(ranges(stage.devices))]
        cells = (
            *first, *([_across(stage)] if across else []),
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


def _across(stage: Stage) -> str:
    """In how many clusters of each level the same runs, the outermost first."""
    return " x ".join(f"{number} {family}" for family, number in reversed(list((stage.across or {}).items())))


def _amount(value: float, dimension: Dimension) -> str:
    return f"{value:.6g}" if dimension == NUMBER else show(value, dimension)


def _nodes(stage: Stage) -> str:
    """The nodes of each option, numbers in ranges."""
    by_option: dict[str, list[str]] = {}
    for node in stage.nodes:
        by_option.setdefault(node.option or "", []).append(str(node.id))
    return "; ".join(f"{name} {', '.join(_runs(ids))}".strip() for name, ids in by_option.items())


def _runs(ids: Sequence[str]) -> list[str]:
    """Names that differ in a number only, and follow one another, as ``3..7`` or ``block3..block7``."""
    out: list[tuple[str, int, int]] = []
    words: list[str] = []
    for prefix, numbers in _numbered(ids, words).items():
        for number in sorted(numbers):
            if out and out[-1][0] == prefix and out[-1][2] + 1 == number:
                out[-1] = prefix, out[-1][1], number
            else:
                out.append((prefix, number, number))
    runs = words
    for prefix, low, high in out:
        if high - low >= (_SHORT if prefix else 1):
            runs.append(f"{prefix}{low}..{prefix}{high}")
        else:
            runs += [f"{prefix}{number}" for number in range(low, high + 1)]
    places = {own: place for place, own in enumerate(ids)}
    return sorted(runs, key=lambda run: places[run.partition("..")[0]] if run not in places else places[run])


def _numbered(ids: Sequence[str], words: list[str]) -> dict[str, list[int]]:
    """The numbers that names end with, by what stands before; names without one are added to ``words``."""
    out: dict[str, list[int]] = {}
    for own in ids:
        found = _ENDS.match(own)
        if found is None:
            words.append(own)
        else:
            out.setdefault(found[1], []).append(int(found[2]))
    return out


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
