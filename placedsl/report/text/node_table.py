"""The nodes of a graph as CSV, ``placedsl check SPEC --nodes``: what profiles and constraints may name."""

from __future__ import annotations

import csv
import io
from math import isnan

from placedsl.arrays import Column
from placedsl.graph.graph import Graph

_ATTRIBUTES = ("type", "module", "layer")


def node_table(graph: Graph) -> str:
    """A line of headings, and one line per node: its id, its name where some node has another, and attributes."""
    columns: dict[str, list[object]] = {"node": list(graph.ids)}
    if any(name != str(own) for name, own in zip(graph.names, graph.ids, strict=True)):
        columns["name"] = list(graph.names)
    columns |= {name: _texts(graph.attributes[name]) for name in _ATTRIBUTES if name in graph.attributes}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _texts(column: Column) -> list[object]:
    """Values as text, empty where there is none."""
    if column.dtype.kind == "f":
        return ["" if isnan(value) else f"{value:g}" for value in column.tolist()]
    return [value or "" for value in column.tolist()]
