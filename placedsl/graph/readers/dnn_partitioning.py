"""The workloads of Tarnawski et al. 2020 (msr-fiddle/dnn-partitioning): one JSON object.

Times are in a unit of the workload's own.  ``fpga`` stands for accelerator there.  ``colorClass`` becomes a
node attribute; a node without one is a class of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build
from placedsl.graph.graph import Graph
from placedsl.graph.readers.records import Document

_NODE = (
    "id",
    "supportedOnFpga",
    "cpuLatency",
    "fpgaLatency",
    "isBackwardNode",
    "colorClass",
    "size",
    "name",
    "layerId",
)
_FIELDS = {
    "id": "id",
    "time": "fpgaLatency",
    "memory": "size",
    "source": "sourceId",
    "target": "destId",
    "cost": "cost",
}


def looks_like(root: object) -> bool:
    """Whether a JSON value is of this format."""
    return isinstance(root, dict) and "nodes" in root and ("maxFPGAs" in root or "maxSizePerFPGA" in root)


def read(source: Source) -> Graph:
    """Read a workload; raises InputError with every defect."""
    document = Document(source)
    nodes, edges = document.records("nodes"), document.records("edges")
    accelerator, host, memory = [], [], []
    ids, names, backward = [], [], []
    colors: list[Any] = []
    layers: list[Any] = []
    for i, node in enumerate(nodes):
        at = ("nodes", i)
        ids.append(document.identifier(at, node, "id"))
        supported = document.truth(at, node, "supportedOnFpga", True)
        latency = document.number(at, node, "fpgaLatency", None if supported else 0.0)
        accelerator.append(latency if supported else np.inf)
        host.append(document.number(at, node, "cpuLatency"))
        memory.append(document.number(at, node, "size"))
        backward.append(document.truth(at, node, "isBackwardNode", False))
        names.append(document.text(at, node, "name", str(ids[-1])))
        colors.append(_label(node.get("colorClass")))
        layers.append(_label(node.get("layerId")))
    for i, values in enumerate(nodes):
        if len(values) > len(_NODE) or not values.keys() <= set(_NODE):
            document.known(("nodes", i), values, _NODE)
    pairs = [
        (document.identifier(("edges", i), e, "sourceId"), document.identifier(("edges", i), e, "destId"))
        for i, e in enumerate(edges)
    ]
    costs = np.array([document.number(("edges", i), e, "cost") for i, e in enumerate(edges)], dtype=float)
    root = document.root
    deployment = {
        name: document.number((), root, key)
        for name, key in (("accelerators", "maxFPGAs"), ("hosts", "maxCPUs"), ("memory", "maxSizePerFPGA"))
        if key in root
    }
    for name, key in (("accelerators", "maxFPGAs"), ("hosts", "maxCPUs"), ("memory", "maxSizePerFPGA")):
        value = deployment.get(name, 0.0)
        if name != "memory" and value != int(value):
            document.error((key,), f"'{key}' is {value:g}", "a whole number, 0 or more, is expected")
    document.stop()

    def locate(place: Place) -> Span:
        path: list[str | int] = [] if place.kind == "graph" else [place.kind + "s"]
        if place.index is not None:
            path.append(place.index)
            if place.field in _FIELDS:
                path.append(_FIELDS[place.field])
        return document.span(*path)

    attributes: dict[str, Any] = {"colorClass": _column(colors)}
    if any(x is not None for x in layers):
        attributes["layerId"] = _column(layers)
    return build(
        source=source,
        ids=ids,
        names=names,
        time={"accelerator": np.array(accelerator, dtype=float), "host": np.array(host, dtype=float)},
        memory=np.array(memory, dtype=float),
        backward=np.array(backward, dtype=bool),
        attributes=attributes,
        edges=pairs,
        edge_time=costs,
        edge_bytes=None,
        time_in_seconds=False,
        locate=locate,
        deployment=deployment,
    )


def _label(value: object) -> float | str | None:
    if isinstance(value, bool) or value is None:
        return None
    return float(value) if isinstance(value, int | float) else str(value)


def _column(values: list[Any]) -> Any:
    """A column of numbers (nan: absent), or of texts (None: absent) where some value is a text."""
    if any(isinstance(v, str) for v in values):
        return np.array([v if isinstance(v, str) else None if v is None else f"{v:g}" for v in values], dtype=object)
    return np.array([np.nan if v is None else v for v in values], dtype=float)
