"""The project's own format, ``docs/graph-format.md``: the twin of the inline ``graph { … }``."""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build, column, edge_costs
from placedsl.graph.graph import Graph
from placedsl.graph.readers.records import Document, word
from placedsl.units import TIME, Quantity, UnitError, parse_unit

NAME = "placedsl-graph"
_ROOT = ("format", "version", "time_unit", "nodes", "edges")
_NODE = ("id", "name", "time", "memory", "output", "transfer", "backward", "attributes")
_EDGE = ("from", "to", "output", "transfer")


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
    nodes, edges = document.records("nodes"), document.records("edges")
    count = len(nodes)
    time: dict[str, np.ndarray] = {}
    memory, output, transfer = np.zeros(count), np.full(count, np.nan), np.full(count, np.nan)
    backward = np.zeros(count, dtype=bool)
    ids: list[int | str] = []
    names: list[str] = []
    attributes: dict[str, dict[int, Any]] = {}
    for i, node in enumerate(nodes):
        at = ("nodes", i)
        document.known(at, node, _NODE)
        ids.append(document.identifier(at, node, "id"))
        names.append(document.text(at, node, "name", str(ids[-1])))
        memory[i] = document.number(at, node, "memory", 0.0)
        backward[i] = document.truth(at, node, "backward", False)
        if "output" in node:
            output[i] = document.number(at, node, "output")
        if "transfer" in node:
            transfer[i] = unit.times(document.number(at, node, "transfer"))
        given = node.get("time")
        if "time" not in node or given == {}:
            document.error(at, "this node has no 'time'", 'as in "time": {"accelerator": 4, "host": 9}')
        elif isinstance(given, dict):
            for kind in given:
                time.setdefault(kind, np.full(count, np.inf))[i] = unit.times(
                    document.number((*at, "time"), given, kind)
                )
        else:
            everywhere = unit.times(document.number(at, node, "time"))
            for kind in ("accelerator", "host"):
                time.setdefault(kind, np.full(count, np.inf))[i] = everywhere
        extra = node.get("attributes", {})
        if not isinstance(extra, dict):
            document.error((*at, "attributes"), f"'attributes' is an object, this is {word(extra)}")
            continue
        for key, value in extra.items():
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                document.error((*at, "attributes", key), f"an attribute is a number or a text, this is {word(value)}")
            else:
                attributes.setdefault(key, {})[i] = value
    pairs = []
    own: dict[int, tuple[float, float]] = {}
    for i, edge in enumerate(edges):
        at = ("edges", i)
        document.known(at, edge, _EDGE)
        pairs.append((document.identifier(at, edge, "from"), document.identifier(at, edge, "to")))
        if "output" in edge or "transfer" in edge:
            size = document.number(at, edge, "output") if "output" in edge else np.nan
            own[i] = size, unit.times(document.number(at, edge, "transfer")) if "transfer" in edge else np.nan
    document.stop()
    edge_bytes, edge_time = edge_costs(ids, output, transfer, pairs, own)
    fields = {"source": "from", "target": "to", "cost": "output"}

    def locate(place: Place) -> Span:
        path: list[str | int] = [] if place.kind == "graph" else [place.kind + "s"]
        if place.index is not None:
            path.append(place.index)
            path.append(fields.get(place.field or "", place.field or ""))
        return document.span(*path)

    return build(
        source=source, ids=ids, names=names, time=time, memory=memory, backward=backward,
        attributes={k: column(v, count) for k, v in attributes.items()}, edges=pairs,
        edge_time=edge_time, edge_bytes=edge_bytes,
        time_in_seconds="time_unit" in root, locate=locate,
    )  # fmt: skip


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
