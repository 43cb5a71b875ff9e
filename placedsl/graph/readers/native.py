"""The project's own format, ``docs/graph-format.md``: the twin of the inline ``graph { … }``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build, column, edge_costs
from placedsl.graph.graph import Floats, Graph
from placedsl.graph.readers.records import Document, word
from placedsl.units import TIME, Quantity, UnitError, parse_unit

NAME = "placedsl-graph"
_ROOT = ("format", "version", "time_unit", "nodes", "edges")
_NODE = ("id", "name", "time", "memory", "output", "transfer", "backward", "flops", "bytes", "attributes")
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
    nodes, edges = document.records("nodes"), document.records("edges")
    count = len(nodes)
    time: dict[str, Floats] = {}
    memory, output, transfer = np.zeros(count), np.full(count, np.nan), np.full(count, np.nan)
    backward = np.zeros(count, dtype=bool)
    ids: list[int | str] = []
    names: list[str] = []
    attributes: dict[str, dict[int, Any]] = {}

    def column_of(kind: str) -> Floats:
        """The times on a kind, which begin as "not supported" everywhere."""
        if kind not in time:
            time[kind] = np.full(count, np.inf)
        return time[kind]

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
        work = [key for key in ("flops", "bytes") if key in node]
        for key in work:
            attributes.setdefault(key, {})[i] = document.number(at, node, key)
        given = node.get("time")
        if work and "time" not in node:
            pass  # it is estimated
        elif "time" not in node or given == {}:
            hint = 'as in "time": {"accelerator": 4, "host": 9}, or "flops" and "bytes" to estimate it from'
            document.missing(at, "time", "this node has no 'time'", hint)
        elif isinstance(given, dict):
            for kind in given:
                column_of(kind)[i] = unit.times(document.number((*at, "time"), given, kind))
        else:
            everywhere = unit.times(document.number(at, node, "time"))
            for kind in ("accelerator", "host"):
                column_of(kind)[i] = everywhere
        extra = node.get("attributes", {})
        if not isinstance(extra, dict):
            document.error((*at, "attributes"), f"'attributes' is an object, this is {word(extra)}")
            continue
        for key, value in extra.items():
            if key in ("flops", "bytes"):
                document.error((*at, "attributes", key), f"'{key}' stands beside 'time', not among the attributes")
            elif isinstance(value, bool) or not isinstance(value, int | float | str):
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
        # Where nothing is timed times are estimated, which is in seconds.
        time_in_seconds="time_unit" in root or not (time or np.isfinite(edge_time).any()), locate=locate,
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
