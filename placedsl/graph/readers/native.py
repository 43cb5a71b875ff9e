"""The project's own format, ``docs/graph-format.md``: the twin of the inline ``graph { … }``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build, column, edge_costs
from placedsl.graph.graph import Graph
from placedsl.graph.option_columns import OptionColumns
from placedsl.graph.readers.native_options import BYTES_OF_NODES, NodeOptions
from placedsl.graph.readers.records import Document, word
from placedsl.units import TIME, Quantity, UnitError, parse_unit

NAME = "placedsl-graph"
_ROOT = ("format", "version", "time_unit", "nodes", "edges")
_NODE = (
    "id",
    "name",
    "time",
    "memory",
    "output",
    "transfer",
    "backward",
    "flops",
    "bytes",
    "attributes",
    "options",
    "stash",
    "sharded",
)
_EDGE = ("from", "to", "output", "transfer")


#: How such a file begins, as a rule: with what it is.
BEGINNING = re.compile(rf'\s*\{{\s*"format"\s*:\s*"{NAME}"')


def looks_like(root: object) -> bool:
    """Whether a JSON value is of this format."""
    return isinstance(root, dict) and root.get("format") == NAME


def read(source: Source) -> Graph:
    """Read a graph; raises InputError with every defect."""
    document = Document(source)
    root = document.root
    document.known((), root, _ROOT)
    if root.get("format") != NAME:
        document.error(("format",), f"'format' is \"{NAME}\" in this format")
    if root.get("version", 1) != 1:
        document.error(("version",), f"version {root['version']} is not known", "known here: 1")
    unit = _unit(document)
    records, edges = document.records("nodes"), document.records("edges")
    nodes = _Nodes(document, unit, len(records))
    for i, record in enumerate(records):
        nodes.read(i, record)
    pairs, own = _edges(document, unit, edges)
    columns = OptionColumns(pairs, own)
    if any("options" in record for record in records):
        options = NodeOptions(document, unit, columns)
        for i, (own_id, record) in enumerate(zip(nodes.ids, records, strict=True)):
            options.of_node(i, own_id, record)
        nodes.time = columns.least_times(len(records))
    document.stop()
    edge_bytes, edge_time = edge_costs(nodes.ids, nodes.output, nodes.transfer, pairs, own)
    fields = {"source": "from", "target": "to", "cost": "output"}

    def locate(place: Place) -> Span:
        path: list[str | int] = [] if place.kind == "graph" else [place.kind + "s"]
        if place.index is not None:
            path.append(place.index)
            path.append(fields.get(place.field or "", place.field or ""))
        return document.span(*path)

    graph = build(
        source=source, ids=nodes.ids, names=nodes.names, time=nodes.time, memory=nodes.memory, backward=nodes.backward,
        attributes={k: column(v, len(records)) for k, v in nodes.attributes.items()}, edges=pairs,
        edge_time=edge_time, edge_bytes=edge_bytes, own_edges=own,
        # Where nothing is timed times are estimated, which is in seconds.
        time_in_seconds="time_unit" in root or not (nodes.time or np.nan_to_num(edge_time).any()), locate=locate,
    )  # fmt: skip
    return columns.added_to(graph)


class _Nodes:
    """The fields of the nodes, as columns; ``time`` by kind of device, inf where a kind does not support a node."""

    def __init__(self, document: Document, unit: Quantity, count: int) -> None:
        self.document, self.unit, self.count = document, unit, count
        self.ids: list[int | str] = []
        self.names: list[str] = []
        self.time: dict[str, Floats] = {}
        self.memory, self.output, self.transfer = np.zeros(count), np.full(count, np.nan), np.full(count, np.nan)
        self.backward = np.zeros(count, dtype=bool)
        self.attributes: dict[str, dict[int, Any]] = {}

    def read(self, i: int, node: Mapping[str, Any]) -> None:
        """Read node i."""
        document, at = self.document, ("nodes", i)
        document.known(at, node, _NODE)
        self.ids.append(document.identifier(at, node, "id"))
        self.names.append(document.text(at, node, "name", str(self.ids[-1])))
        self.memory[i] = document.number(at, node, "memory", 0.0)
        self.backward[i] = document.truth(at, node, "backward", False)
        if "output" in node:
            self.output[i] = document.number(at, node, "output")
        if "transfer" in node:
            self.transfer[i] = self.unit.times(document.number(at, node, "transfer"))
        self._times(i, node)
        for key in BYTES_OF_NODES:
            if key in node:
                self.attributes.setdefault(key, {})[i] = document.number(at, node, key)
        extra = node.get("attributes", {})
        if not isinstance(extra, dict):
            document.error((*at, "attributes"), f"'attributes' is an object, this is {word(extra)}")
            return
        for key, value in extra.items():
            if key in ("flops", "bytes", *BYTES_OF_NODES):
                document.error((*at, "attributes", key), f"'{key}' stands beside 'time', not among the attributes")
            elif isinstance(value, bool) or not isinstance(value, int | float | str):
                document.error((*at, "attributes", key), f"an attribute is a number or a text, this is {word(value)}")
            else:
                self.attributes.setdefault(key, {})[i] = value

    def _times(self, i: int, node: Mapping[str, Any]) -> None:
        """The running times of node i, or the work that they are estimated from."""
        document, at = self.document, ("nodes", i)
        work = [key for key in ("flops", "bytes") if key in node]
        for key in work:
            self.attributes.setdefault(key, {})[i] = document.number(at, node, key)
        given = node.get("time")
        if "time" not in node and (work or "options" in node):
            return
        if "time" not in node or given == {}:
            hint = 'as in "time": {"accelerator": 4, "host": 9}, or "flops" and "bytes" to estimate it from'
            document.missing(at, "time", "this node has no 'time'", hint)
        elif isinstance(given, dict):
            for kind in given:
                self._on(kind)[i] = self.unit.times(document.number((*at, "time"), given, kind))
        else:
            everywhere = self.unit.times(document.number(at, node, "time"))
            for kind in ("accelerator", "host"):
                self._on(kind)[i] = everywhere

    def _on(self, kind: str) -> Floats:
        """The times on a kind of device."""
        if kind not in self.time:
            self.time[kind] = np.full(self.count, np.inf)
        return self.time[kind]


def _edges(
    document: Document, unit: Quantity, edges: list[Mapping[str, Any]]
) -> tuple[list[tuple[int | str, int | str]], dict[int, tuple[float, float]]]:
    """The ends of the edges, and by edge that states its own tensor, its size and transfer time (nan: not given)."""
    pairs = []
    own: dict[int, tuple[float, float]] = {}
    for i, edge in enumerate(edges):
        at = ("edges", i)
        document.known(at, edge, _EDGE)
        pairs.append((document.identifier(at, edge, "from"), document.identifier(at, edge, "to")))
        if "output" in edge or "transfer" in edge:
            size = document.number(at, edge, "output") if "output" in edge else np.nan
            own[i] = size, unit.times(document.number(at, edge, "transfer")) if "transfer" in edge else np.nan
    return pairs, own


def _unit(document: Document) -> Quantity:
    """What the file's times are in; 1 where it does not say."""
    text = document.root.get("time_unit")
    plain = Quantity(1.0, TIME)
    if text is None:
        return plain
    try:
        unit = parse_unit(text) if isinstance(text, str) else None
    except UnitError as problem:
        document.error(("time_unit",), str(problem))
        return plain
    if unit is None or unit.dimension != TIME:
        document.error(("time_unit",), "'time_unit' is a unit of time", 'as in "time_unit": "ms"')
        return plain
    return unit
