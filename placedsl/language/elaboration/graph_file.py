"""``graph from "FILE" { … }``: the file, the sizes of its dimensions, the unit of its times, and its profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.graph.graph import Graph
from placedsl.graph.readers import load
from placedsl.graph.readers.sizes import BITS, TYPES, Size, Sizes
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.vocabulary import PLAIN, number
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.problem import expressions as core
from placedsl.units import TIME

#: Reads a graph file of a format (None: as its content shows), with sizes of symbolic dimensions.
Read = Callable[[Path, str | None, Sizes], Graph]

_SETTINGS = STATEMENTS["graph"].entries
_LARGEST = 2**31
T = TypeVar("T")


def read(
    statement: syntax.GraphFile,
    folder: Path,
    checker: Checker,
    read_graph: Read,
    machine: Machine,
    held: Mapping[Path, Source],
) -> Graph:
    """The graph of the statement, with times in seconds where it says so and its profile's.

    ``folder``: what its file names are relative to; ``held``: texts that need not be read.  Raises InputError for what
    the files are, and reports what is wrong with the statement to ``checker``.
    """
    form = _text(statement, "format", checker, "a format in quotes is expected", 'as in format = "native"')
    example = 'as in profile = "measured.json"'
    measured = _text(statement, "profile", checker, "a file name in quotes is expected", example)
    sizes = _sizes(statement, checker)
    graph = _placed(
        statement.path.at, lambda: read_graph(folder / statement.path.text, None if form is None else form.value, sizes)
    )
    for entry in statement.block:
        if entry.name.text == "time_unit":
            out, kind = checker.number(entry.value)
            if kind != number(TIME) or not isinstance(out, core.Constant):
                checker.error(entry.value, "a time is expected here", "as in time_unit = 1 ms")
            elif graph.time_in_seconds:
                checker.error(entry.name, "this graph's times have a unit already")
            else:
                graph = graph.in_seconds(float(out.value))
    if measured is None:
        return graph
    path = folder / measured.value
    names = {key for i in range(len(machine.devices)) for key in machine.aliases(i)} | {"accelerator", "host"}
    source = held.get(path) or _placed(measured.at, lambda: load(path))
    from placedsl.cost_model import profile

    found = profile.read(source, graph, names)
    attributes = dict(graph.attributes)
    if not np.isnan(found.allocated).all():
        attributes["allocated"] = found.allocated
    return replace(graph, measured=found.times, attributes=attributes, notes=(*graph.notes, *found.notes))


def files(statement: syntax.GraphFile) -> list[syntax.Word]:
    """The names of the files that it reads, and where they stand: the graph's first."""
    texts = [e.value for e in statement.block if e.name.text == "profile" and isinstance(e.value, syntax.Text)]
    return [statement.path, *(syntax.Word(text.at, text.value) for text in texts)]


def _text(statement: syntax.GraphFile, name: str, checker: Checker, expected: str, example: str) -> syntax.Text | None:
    """An entry in quotes."""
    found = None
    for entry in statement.block:
        if entry.name.text == name:
            if isinstance(entry.value, syntax.Text):
                found = entry.value
            else:
                checker.error(entry.value, expected, example)
    return found


def _sizes(statement: syntax.GraphFile, checker: Checker) -> Sizes:
    """The entries that are sizes of dimensions: whole numbers under names of the model's own."""
    out: dict[str, Size] = {}
    for entry in statement.block:
        name = entry.name.text
        if name in _SETTINGS and name not in TYPES:
            continue
        if name in TYPES and (said := _type_name(entry.value, checker)) is not None:
            if said in BITS:
                out[name] = Size(BITS[said], checker.span(entry.name))
            else:
                checker.error(entry.value, f"the type '{said}' is not known", nearest(said, BITS))
            continue
        value, kind = (None, None) if isinstance(entry.value, syntax.Text) else checker.number(entry.value)
        if kind is not None and kind.kind == "error":
            continue
        if not isinstance(value, core.Constant) or kind != PLAIN:
            checker.error(entry.name, f"a graph file has no '{name}'", nearest(name, _SETTINGS))
        elif not float(value.value).is_integer() or not 1 <= float(value.value) < _LARGEST:
            checker.error(entry.value, f"the size of the dimension '{name}' is a whole number, 1 or more")
        elif name in out:
            checker.error(entry.name, f"'{name}' is given twice")
        else:
            out[name] = Size(int(float(value.value)), checker.span(entry.name))
    return out


def _type_name(value: syntax.Expression, checker: Checker) -> str | None:
    """The name of a type of numbers: a word, a text, or a parameter that is a text; None for what is no name."""
    if isinstance(value, syntax.Text):
        return value.value
    if not isinstance(value, syntax.Name):
        return None
    given = checker.parameters.get(value.name)
    if given is None:
        return value.name
    return given[0] if isinstance(given[0], str) else None


def _placed(at: syntax.At, read_file: Callable[[], T]) -> T:
    """What reading gives; what it says of a file as a whole is told where the spec names it."""
    try:
        return read_file()
    except InputError as problem:
        found = problem.diagnostics
        raise InputError(Diagnostic(d.message, at.span, d.hint) if d.span is None else d for d in found) from None
