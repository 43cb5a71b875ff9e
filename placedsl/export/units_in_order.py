"""Stages as slices of the units of a model in their order: the form of DeepSpeed, torch, torchtitan and PipeDream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from placedsl.diagnostics import Source
from placedsl.export.layout import Layout, some
from placedsl.export.servers import visible
from placedsl.graph.readers.json_text import parsed
from placedsl.problem.json_entries import Document, Entry


def runs_of_units_against(layout: Layout) -> Iterator[str]:
    """Stages that are no runs of units in the order in which the model runs them."""
    if not layout.units.units:
        yield (
            "no node says which layer or module it is part of, and none has weights: give the graph's nodes an "
            "attribute 'layer' or 'module'"
        )
    stage_of = {unit: stages[0] for unit, stages in layout.stages_of.items() if len(stages) == 1}
    order = [(unit, stage_of[unit]) for unit in layout.units.units if unit in stage_of]
    for (unit, stage), (later, next_stage) in pairwise(order):
        if next_stage < stage:
            yield (
                f"{later.name} comes after {unit.name} in the model, and is in stage "
                f"{layout.stages[next_stage].number}, before stage {layout.stages[stage].number}: stages are runs of "
                "the model in its order; add 'contiguous', and 'together(...)' for branches"
            )
            return


def unit_bounds(layout: Layout) -> list[int]:
    """Where each stage begins in the list of units, and the number of units."""
    bounds = [0]
    for held in layout.held:
        bounds.append(bounds[-1] + len(held))
    return bounds


def readme(layout: Layout, rules: str, launch: Sequence[str], devices: Sequence[str] | None = None) -> str:
    """What files without comments were made of, how they are used, and which devices the ranks are on (``devices``: in
    these words)."""
    where = ", ".join("+".join(stage.devices) for stage in layout.stages)
    lines = [
        f"Made by placedsl from {layout.plan.spec}: {some(unit.name for unit in layout.units.units)} on {where}.",
        f"After the rules of {rules}.",
        "",
        *launch,
        "",
        *(line.removeprefix("# ") for line in (visible(layout) if devices is None else devices)),
    ]
    return "\n".join([*lines, ""])


def document(source: Source, name: str) -> Entry:
    """The JSON value of a file, to be asked for its entries."""
    return Entry(parsed(source), (), source, Document(name, (), "docs/exporting.md describes the form"))


def numbers(entry: Entry) -> list[int]:
    """A list of whole numbers."""
    return [one.whole() for one in entry.each()]
