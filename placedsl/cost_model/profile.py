"""Measured running times of operators, from a file of their own: JSON or CSV.  docs/reading-models.md describes it."""

from __future__ import annotations

import csv
import fnmatch
import io
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.graph.graph import Graph
from placedsl.graph.readers.records import Document, word
from placedsl.units import DATA, NUMBER, TIME, Quantity, UnitError, parse_quantity, parse_unit

NAME = "placedsl-profile"
_ROOT = ("format", "version", "time_unit", "times")
_ENTRY = ("node", "type", "time")
_COLUMNS = ("node", "type", "device", "time")
#: What ``placedsl profile`` writes besides: quartiles of the time, and memory.
_MEASURED_COLUMNS = ("low", "high", "allocated")
_MOST = 100
#: So many names that no node has are told one by one.
_MOST_UNKNOWN = 4
#: So many comments at the top of a table are notes of an answer.
_MOST_REMARKS = 4
_TYPE, _PATTERN, _NODE = range(3)


@dataclass(frozen=True)
class _Measured:
    """One time: which nodes (by ``node`` or ``type``), on what, how long, and where each of these stands."""

    by: str
    pattern: str
    device: str
    seconds: float
    place: Callable[[str], Span]
    allocated: float = np.nan


@dataclass(frozen=True, eq=False)
class Profile:
    """What a profile says of the n nodes of a graph.

    ``times``      by device kind, family or device name: n each (nan: not measured), in seconds, or in the graph's own
                   unit where it has one
    ``allocated``  n bytes that a node had allocated at most while it ran, on any device (nan: not measured)
    ``notes``      what is worth knowing, in sentences
    """

    times: Mapping[str, Floats]
    allocated: Floats
    notes: tuple[str, ...]


def read(source: Source, graph: Graph, devices: Collection[str]) -> Profile:
    """Read a profile; ``devices`` are the names that there are.

    A node by name goes before a pattern of names, that before a type; of two patterns the later.  InputError with
    every defect.
    """
    found: list[Diagnostic] = []
    remarks: list[str] = []
    is_table = PurePath(source.name).suffix.lower() == ".csv"
    rows = _table(source, graph, found, remarks) if is_table else _document(source, graph)
    names = _Names(graph)
    out: dict[str, Floats] = {}
    allocated = np.full(graph.nodes, np.nan)
    rank: dict[str, np.ndarray] = {}
    folded: dict[tuple[str, str], None] = {}
    unknown: dict[tuple[str, str], Diagnostic] = {}
    for row in rows:
        level, nodes = names.of(row)
        if not len(nodes) and names.is_folded(row):
            folded[row.by, row.pattern] = None
        elif not len(nodes):
            known = names.types if row.by == "type" else names.positions
            what = "is of the type" if row.by == "type" else "is called"
            told = Diagnostic(f"no node {what} '{row.pattern}'", row.place(row.by), nearest(row.pattern, known))
            unknown.setdefault((row.by, row.pattern), told)
        if row.device not in devices:
            hint = nearest(row.device, devices)
            found.append(Diagnostic(f"there is no device or kind '{row.device}'", row.place("device"), hint))
            continue
        times = out.setdefault(row.device, np.full(graph.nodes, np.nan))
        levels = rank.setdefault(row.device, np.full(graph.nodes, -1))
        if level == _NODE and (levels[nodes] == _NODE).any():
            message = f"the time of '{row.pattern}' on '{row.device}' is given twice"
            found.append(Diagnostic(message, row.place(row.by), "one is enough"))
        nodes = nodes[levels[nodes] <= level]
        times[nodes], levels[nodes] = row.seconds, level
        allocated[nodes] = np.fmax(allocated[nodes], row.allocated)
        if len(found) >= _MOST:
            break
    found += _few(list(unknown.values()), graph.nodes)
    if found:
        raise InputError(found)
    notes = [f"the profile '{PurePath(source.name).name}': {remark}" for remark in remarks[:_MOST_REMARKS]]
    return Profile(out, allocated, (*notes, *_told(list(folded))))


def _few(unknown: list[Diagnostic], nodes: int) -> list[Diagnostic]:
    """The first names that no node has; a profile of another model has hundreds."""
    if len(unknown) <= _MOST_UNKNOWN:
        return unknown
    shown, rest = unknown[: _MOST_UNKNOWN - 1], unknown[_MOST_UNKNOWN - 1 :]
    hint = f"'placedsl check SPEC --nodes' lists the {nodes} nodes; leave out the rows of others, or give their types"
    return [*shown, Diagnostic(f"{len(rest)} more names of this profile are of no node", rest[0].span, hint)]


def _told(folded: list[tuple[str, str]]) -> list[str]:
    if not folded:
        return []
    of = f"'{folded[0][1]}'" if len(folded) == 1 else f"{len(folded)} operators, such as '{folded[0][1]}',"
    return [f"the profile's times of {of} are not used: inputs, and what depends on none, are no nodes"]


class _Names:
    """The nodes of a graph by id, name and type."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.positions: dict[str, list[int]] = {}
        for i, name in enumerate(graph.names):
            self.positions.setdefault(name, []).append(i)
        self.positions |= {str(own): [i] for i, own in enumerate(graph.ids)}  # an id goes before a name
        column = graph.attributes.get("type")
        self.types: dict[str, list[int]] = {}
        for i, kind in enumerate([] if column is None or column.dtype.kind == "f" else column):
            if kind is not None:
                self.types.setdefault(kind, []).append(i)

    def is_folded(self, row: _Measured) -> bool:
        """Whether a row names what reading the model left out."""
        known = self.graph.folded.types if row.by == "type" else self.graph.folded.names
        return row.pattern in known or (_is_pattern(row.pattern) and any(map(_matcher(row.pattern), known)))

    def of(self, row: _Measured) -> tuple[int, Integers]:
        """How particular a row is, and the nodes that it names."""
        known = self.types if row.by == "type" else self.positions
        if row.pattern in known:
            nodes = known[row.pattern]
            return _TYPE if row.by == "type" else _NODE, np.array(nodes, dtype=np.int64)
        nodes = []
        if _is_pattern(row.pattern):
            matches = _matcher(row.pattern)
            nodes = [i for name, members in known.items() if matches(name) for i in members]
        return _TYPE if row.by == "type" else _PATTERN, np.unique(np.array(nodes, dtype=np.int64))


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def _matcher(pattern: str) -> Callable[[str], object]:
    """What matches names; only ``*`` and ``?`` have a meaning of their own."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match


def _document(source: Source, graph: Graph) -> list[_Measured]:
    document = Document(source)
    root = document.root
    document.known((), root, _ROOT)
    if root.get("format") != NAME:
        document.error(("format",), f"'format' is \"{NAME}\" in a profile")
    if root.get("version", 1) != 1:
        document.error(("version",), f"version {root['version']} is not known", "known here: 1")
    unit = _unit(document, graph)
    rows = []
    for i, entry in enumerate(document.records("times")):
        at: tuple[str | int, ...] = ("times", i)
        document.known(at, entry, _ENTRY)
        by = "type" if "type" in entry else "node"
        if ("type" in entry) == ("node" in entry):
            document.error(at, "a node or a type is expected, one of the two", 'as in "node": "conv1"')
            continue
        pattern = document.identifier(at, entry, by)
        given = entry.get("time")
        if not isinstance(given, Mapping) or not given:
            what = "is missing" if "time" not in entry else f"is {word(given)}"
            document.error((*at, "time"), f"'time' {what}: times by device are expected", 'as in {"gpu": 0.12}')
            continue
        for device in given:
            seconds = unit.times(document.number((*at, "time"), given, device))
            rows.append(_Measured(by, str(pattern), device, seconds, _place(document, at, by, device)))
    document.stop()
    return rows


def _place(document: Document, at: tuple[str | int, ...], by: str, device: str) -> Callable[[str], Span]:
    return lambda part: document.span(*at, by) if part == by else document.span(*at, "time", device)


def _unit(document: Document, graph: Graph) -> Quantity:
    """What the times are in: a unit where the graph's times have one."""
    text: Any = document.root.get("time_unit")
    plain = Quantity(1.0, TIME)
    if text is None and not graph.time_in_seconds:
        return plain
    hint = 'as in "time_unit": "ms"'
    if text is None:
        document.error((), "'time_unit' is missing: the graph's times are seconds", hint)
        return plain
    if not graph.time_in_seconds:
        hint = 'say it of the graph too, as in graph from "…" { time_unit = 1 ms }'
        document.error(("time_unit",), "the graph's times have no unit, these do", hint)
        return plain
    try:
        unit = parse_unit(text) if isinstance(text, str) else plain
    except UnitError as problem:
        document.error(("time_unit",), str(problem), hint)
        return plain
    if not isinstance(text, str) or unit.dimension != TIME:
        document.error(("time_unit",), "'time_unit' is a unit of time", hint)
        return plain
    return unit


def _table(source: Source, graph: Graph, found: list[Diagnostic], remarks: list[str]) -> list[_Measured]:
    """The rows of a CSV file with a line of headings; comments before these, lines with ``#``, are ``remarks``."""
    starts = [0]
    for written in source.text.split("\n"):
        starts.append(starts[-1] + len(written) + 1)

    def place(line: int, text: str) -> Span:
        begin = starts[line - 1]
        at = source.text.find(text, begin, starts[line]) if text else begin
        return source.span(max(at, begin), max(at, begin) + max(1, len(text)))

    reader = csv.reader(io.StringIO(source.text))
    rows: list[_Measured] = []
    headings: list[str] | None = None
    try:
        for cells in reader:
            line = reader.line_num
            texts = [cell.strip() for cell in cells]
            if not any(texts):
                continue
            if headings is None and texts[0].startswith("#"):
                remarks.append(",".join(cells).strip().removeprefix("#").strip())
                continue
            if headings is None:
                headings = texts
                unknown = [name for name in headings if name not in (*_COLUMNS, *_MEASURED_COLUMNS)]
                for name in unknown if len(unknown) < len(headings) else ():
                    hint = nearest(name, _COLUMNS)
                    found.append(Diagnostic(f"a profile has no column '{name}'", place(line, name), hint))
                if not found and (not {"device", "time"} < set(headings) or len(set(headings)) < len(headings)):
                    hint = "as in node,device,time or type,device,time"
                    message = "a line of headings is expected: node or type, device, time"
                    found.append(Diagnostic(message, place(line, texts[0]), hint))
                if found:
                    return []
                continue
            row = dict(zip(headings, texts, strict=False))
            if len(texts) != len(headings):
                message = f"this line has {len(texts)} cells, the headings are {len(headings)}"
                found.append(Diagnostic(message, place(line, texts[0])))
                continue
            by = "node" if row.get("node") else "type"
            if bool(row.get("node")) == bool(row.get("type")):
                found.append(Diagnostic("a node or a type is expected, one of the two", place(line, texts[0])))
                continue
            seconds = _seconds(row["time"], graph)
            if isinstance(seconds, str):
                found.append(Diagnostic(seconds, place(line, row["time"]), "as in 0.12 ms"))
                continue
            allocated = _bytes(row.get("allocated", ""))
            if isinstance(allocated, str):
                found.append(Diagnostic(allocated, place(line, row["allocated"]), "as in 4 MiB"))
                continue
            spans = {part: place(line, row[part]) for part in (by, "device")}
            rows.append(_Measured(by, row[by], row["device"], seconds, spans.__getitem__, allocated))
    except csv.Error as problem:
        raise InputError([Diagnostic(f"this is no CSV: {problem}", place(max(1, reader.line_num), ""))]) from None
    if headings is None:
        raise InputError([Diagnostic("the file is empty", source.whole(), "as in node,device,time")])
    return rows


def _bytes(text: str) -> float | str:
    """A size in a cell (nan: none), or what is wrong with it."""
    if not text:
        return np.nan
    try:
        quantity = parse_quantity(text)
    except UnitError as problem:
        return str(problem)
    if quantity.dimension != DATA:
        return f"a size is expected, this is {quantity.dimension}"
    return quantity.value if 0 <= quantity.value < np.inf else "a finite size, 0 or more, is expected"


def _seconds(text: str, graph: Graph) -> float | str:
    """A time in a cell, or what is wrong with it."""
    try:
        quantity = parse_quantity(text)
    except UnitError as problem:
        return str(problem)
    if quantity.dimension != (TIME if graph.time_in_seconds else NUMBER):
        wanted = "a time is expected" if graph.time_in_seconds else "the graph's times have no unit"
        return f"{wanted}, this is {quantity.dimension}"
    if not 0 <= quantity.value < np.inf:
        return "a finite time, 0 or more, is expected"
    return quantity.value
