"""The project's own format, ``docs/graph-format.md``: the twin of the inline ``graph { … }``."""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build
from placedsl.graph.graph import Graph
from placedsl.graph.readers.records import Document, word
from placedsl.units import TIME, UnitError, parse_unit

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
            transfer[i] = document.number(at, node, "transfer") * unit
        given = node.get("time")
        kinds = given if isinstance(given, dict) else {"accelerator": given, "host": given}
        if "time" not in node or not kinds:
            document.error(at, "this node has no 'time'", 'as in "time": {"accelerator": 4, "host": 9}')
            continue
        for kind in kinds:
            path = (*at, "time") if isinstance(given, dict) else at
            value = document.number(
                path, kinds if isinstance(given, dict) else node, kind if isinstance(given, dict) else "time"
            )
            time.setdefault(kind, np.full(count, np.inf))[i] = value * unit
        extra = node.get("attributes", {})
        if not isinstance(extra, dict):
            document.error((*at, "attributes"), f"'attributes' is an object, this is {word(extra)}")
            continue
        for key, value in extra.items():
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                document.error((*at, "attributes", key), f"an attribute is a number or a text, this is {word(value)}")
            else:
                attributes.setdefault(key, {})[i] = value
    index = {own: i for i, own in enumerate(ids)}
    pairs = []
    edge_bytes, edge_time = np.full(len(edges), np.nan), np.full(len(edges), np.nan)
    for i, edge in enumerate(edges):
        at = ("edges", i)
        document.known(at, edge, _EDGE)
        pairs.append((document.identifier(at, edge, "from"), document.identifier(at, edge, "to")))
        producer = index.get(pairs[-1][0])
        own = producer is not None and not ("output" in edge or "transfer" in edge)
        if own and producer is not None:
            edge_bytes[i], edge_time[i] = output[producer], transfer[producer]
            if np.isnan(edge_bytes[i]) and np.isnan(edge_time[i]):
                edge_bytes[i] = 0.0
        if "output" in edge:
            edge_bytes[i] = document.number(at, edge, "output")
        if "transfer" in edge:
            edge_time[i] = document.number(at, edge, "transfer") * unit
    document.stop()
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
        edge_time=None if np.isnan(edge_time).all() else edge_time, edge_bytes=edge_bytes,
        time_in_seconds="time_unit" in root, locate=locate,
    )  # fmt: skip


def _unit(document: Document) -> float:
    text = document.root.get("time_unit")
    if text is None:
        return 1.0
    try:
        unit = parse_unit(text) if isinstance(text, str) else None
    except UnitError as problem:
        document.error(("time_unit",), str(problem))
        return 1.0
    if unit is None or unit.dimension != TIME:
        document.error(("time_unit",), "'time_unit' is a unit of time", 'as in "time_unit": "ms"')
        return 1.0
    return unit.value


def column(values: dict[int, Any], count: int) -> Any:
    """An attribute's values as a column; texts where one of them is a text."""
    if any(isinstance(v, str) for v in values.values()):
        texts = np.full(count, None, dtype=object)
        for i, value in values.items():
            texts[i] = value if isinstance(value, str) else f"{value:g}"
        return texts
    numbers = np.full(count, np.nan)
    numbers[list(values)] = [float(v) for v in values.values()]
    return numbers
