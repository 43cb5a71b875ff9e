"""Profiles of Zhang et al. 2023 (moirai-placement/moirai, as JSON): times by device, and a matrix of times a tensor.

The devices of the file are called ``device0``, ``device1`` … after their ids; a spec declares devices by these names,
in this order.  Each edge is a tensor of its own, as in the paper, where each has a transfer of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build
from placedsl.graph.graph import Graph
from placedsl.graph.readers.records import Document, word

_DEVICE = ("id", "memory")
_NODE = ("id", "time", "memory")
_EDGE = ("source", "target", "transfer")


def looks_like(root: object) -> bool:
    """Whether a JSON value is of this format."""
    return isinstance(root, dict) and "format" not in root and {"devices", "nodes", "edges"} <= root.keys()


def read(source: Source) -> Graph:
    """Read a profile; raises InputError with every defect."""
    document = Document(source)
    document.known((), document.root, ("description", "devices", "nodes", "edges"))
    devices, nodes, edges = document.records("devices"), document.records("nodes"), document.records("edges")
    deployment: dict[str, float] = {}
    for i, device in enumerate(devices):
        document.known(("devices", i), device, _DEVICE)
        name = f"device{document.identifier(('devices', i), device, 'id')}"
        if name in deployment:
            document.error(("devices", i), f"device '{device.get('id')}' is there twice", "every id is needed once")
        deployment[name] = document.number(("devices", i), device, "memory")
    if not devices:
        document.error(("devices",), "there are no devices", "times are by device here")
    document.stop()
    count = len(devices)
    times = np.zeros((len(nodes), count))
    memory, ids = np.zeros(len(nodes)), []
    for i, node in enumerate(nodes):
        document.known(("nodes", i), node, _NODE)
        ids.append(document.identifier(("nodes", i), node, "id"))
        memory[i] = document.number(("nodes", i), node, "memory")
        times[i] = _row(document, ("nodes", i, "time"), node.get("time"), count)
    pairs = []
    matrix = np.zeros((len(edges), count, count))
    for i, edge in enumerate(edges):
        at = ("edges", i)
        document.known(at, edge, _EDGE)
        pairs.append((document.identifier(at, edge, "source"), document.identifier(at, edge, "target")))
        matrix[i] = _matrix(document, (*at, "transfer"), edge.get("transfer"), count)
    document.stop()
    # A device keeps what it has made: a time to itself means nothing.
    matrix[:, range(count), range(count)] = 0.0
    fields = {"source": "source", "target": "target", "cost": "transfer"}

    def locate(place: Place) -> Span:
        path: list[str | int] = [] if place.kind == "graph" else [place.kind + "s"]
        if place.index is not None:
            path.append(place.index)
            path.append(fields.get(place.field or "", place.field or ""))
        return document.span(*path)

    return build(
        source=source, ids=ids, names=[str(i) for i in ids],
        time={name: times[:, k].copy() for k, name in enumerate(deployment)}, memory=memory,
        backward=np.zeros(len(nodes), dtype=bool), attributes={}, edges=pairs,
        # Schedules that know RAM only: half of the longest time out, half of it in.
        edge_time=matrix.max(axis=(1, 2), initial=0.0) / 2, edge_bytes=None, edge_matrix=matrix,
        time_in_seconds=False, locate=locate, deployment=deployment,
    )  # fmt: skip


def _matrix(document: Document, path: tuple[str | int, ...], given: Any, count: int) -> list[list[float]]:
    """``transfer``: a row a device that sends, a number a device that receives."""
    rows = _entries(document, path, given, count)
    return [_row(document, (*path, k), row, count) for k, row in enumerate(rows)] or [[0.0] * count] * count


def _row(document: Document, path: tuple[str | int, ...], given: Any, count: int) -> list[float]:
    """As many numbers as there are devices; zeros for what was reported."""
    values = _entries(document, path, given, count)
    name = next(str(step) for step in reversed(path) if isinstance(step, str))
    return [document.amount((*path, k), value, name) for k, value in enumerate(values)] or [0.0] * count


def _entries(document: Document, path: tuple[str | int, ...], given: Any, count: int) -> list[Any]:
    """A list of one value a device; empty after reporting."""
    name = next(str(step) for step in reversed(path) if isinstance(step, str))
    if not isinstance(given, list):
        what = "is missing" if given is None else f"holds {word(given)}"
        document.error(path, f"'{name}' {what}: a list is expected", f"one value for each of the {count} devices")
        return []
    if len(given) != count:
        document.error(path, f"'{name}' has {len(given)} values for {count} devices", "one a device is expected")
        return []
    return given
