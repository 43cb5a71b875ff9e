"""``options`` of nodes in the project's own format: further ways to run a node, for one device or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.graph.graph import Graph
from placedsl.graph.options import Moved, OperatorOptions
from placedsl.graph.readers.records import Document, word
from placedsl.units import Quantity

_OPTION = ("name", "tensor", "time", "parameters", "stash", "memory", "sharded", "gather", "scatter")
_AMOUNTS = ("parameters", "stash", "memory", "sharded")
#: Bytes that only plans count; formulas read them.
BYTES_OF_NODES = ("stash", "sharded")
#: The kinds that a time without a kind is for.
_EVERYWHERE = ("accelerator", "host")
_Path = tuple[str | int, ...]


class NodeOptions:
    """The columns of the options, node by node; what is moved is told by edge in place of tensor."""

    def __init__(self, document: Document, unit: Quantity, edges: Sequence[tuple[int | str, int | str]]) -> None:
        self.document, self.unit = document, unit
        self.rows: list[tuple[int, str, int, dict[str, float], float, float, float, float]] = []
        self.gathered: list[tuple[int, int, float]] = []
        self.scattered: list[tuple[int, int, float]] = []
        self.into: dict[int | str, dict[str, int]] = {}
        self.out_of: dict[int | str, dict[str, int]] = {}
        for edge, (u, v) in enumerate(edges):
            self.into.setdefault(v, {})[str(u)] = edge
            self.out_of.setdefault(u, {})[str(v)] = edge

    def of_node(self, i: int, own: int | str, node: Mapping[str, Any]) -> None:
        """Read the options of node i; the node as it stands is one of them, on one device, where it has a time."""
        document, at = self.document, ("nodes", i)
        given, before = node.get("options", []), (len(self.rows), len(document.found))
        plain = {key: document.number(at, node, key, 0.0) for key in ("stash", "memory", "sharded")}
        attributes = node.get("attributes")
        weights = attributes.get("parameters", 0.0) if isinstance(attributes, dict) else 0.0
        plain["parameters"] = float(weights) if isinstance(weights, int | float) else 0.0
        known: set[tuple[str, int]] = set()
        times = self._times(at, node) if "time" in node else {}
        if times:
            self._add(i, "", 1, times, plain)
            known.add(("", 1))
        if not isinstance(given, list):
            document.error((*at, "options"), f"'options' is a list, this is {word(given)}")
            return
        for k, option in enumerate(given):
            path = (*at, "options", k)
            if not isinstance(option, dict):
                document.error(path, f"an option is an object, this is {word(option)}")
                continue
            document.known(path, option, _OPTION)
            name, degree = document.text(path, option, "name", ""), option.get("tensor", 1)
            if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
                document.error((*path, "tensor"), "'tensor' is a number of devices, 1 or more")
                continue
            if (name, degree) in known:
                message = f"there is an option '{name}' for {degree} devices already"
                document.error(path, message if name else "an option has a name", 'as in "name": "recomputed"')
                continue
            known.add((name, degree))
            if "time" not in option and not times:
                document.missing(path, "time", "this option has no 'time', nor has the node")
            amounts = {key: document.number(path, option, key, plain[key]) for key in _AMOUNTS}
            row = self._add(i, name, degree, self._times(path, option) if "time" in option else times, amounts)
            for key, edges, moved in (
                ("gather", self.into, self.gathered), ("scatter", self.out_of, self.scattered)
            ):  # fmt: skip
                moved.extend(self._moved((*path, key), row, option.get(key, 0), edges.get(own, {})))
        if before == (len(self.rows), len(document.found)):
            hint = "of a graph with options times cannot be estimated"
            document.error(at, f"node '{own}' has neither a 'time' nor an option", hint)

    def _add(self, i: int, name: str, degree: int, times: dict[str, float], amounts: Mapping[str, float]) -> int:
        self.rows.append((i, name, degree, times, *(amounts[key] for key in _AMOUNTS)))  # type: ignore[arg-type]
        return len(self.rows) - 1

    def _times(self, at: _Path, record: Mapping[str, Any]) -> dict[str, float]:
        given = record["time"]
        if not isinstance(given, dict):
            return dict.fromkeys(_EVERYWHERE, self.unit.times(self.document.number(at, record, "time")))
        return {kind: self.unit.times(self.document.number((*at, "time"), given, kind)) for kind in given}

    def _moved(self, at: _Path, row: int, given: object, edges: Mapping[str, int]) -> list[tuple[int, int, float]]:
        """``gather``, or ``scatter``: bytes for each edge on that side, or by the node at its other end."""
        if not isinstance(given, dict):
            amount = self.document.amount(at, given, str(at[-1]))
            return [(row, edge, amount) for edge in edges.values()]
        out = []
        for other in given:
            if other not in edges:
                hint = "there are edges with " + (", ".join(edges) or "no node")
                self.document.error((*at, other), f"no edge leads to or from '{other}' on this side", hint)
            else:
                out.append((row, edges[other], self.document.number(at, given, other)))
        return out

    def least_times(self, count: int) -> dict[str, Floats]:
        """By kind of device, the least time of each node over its options; inf: none runs there."""
        out: dict[str, Floats] = {}
        for i, _, _, times, *_ in self.rows:
            for kind, time in times.items():
                column = out.setdefault(kind, np.full(count, np.inf))
                column[i] = min(column[i], time)
        return out

    def added_to(self, graph: Graph) -> Graph:
        """The graph with the options, where its file speaks of any."""
        if not self.rows:
            return graph
        node, name, degree, times, parameters, stash, memory, sharded = (list(c) for c in zip(*self.rows, strict=True))
        kinds = dict.fromkeys(kind for row in times for kind in row)
        edge_tensor = graph.edge_tensor.tolist()
        moved = [
            Moved.of([(row, edge_tensor[edge], amount) for row, edge, amount in rows])
            for rows in (self.gathered, self.scattered)
        ]
        options = OperatorOptions(
            np.array(node, dtype=np.int64), tuple(name), np.array(degree, dtype=np.int64),
            {kind: np.array([row.get(kind, np.inf) for row in times]) for kind in kinds}, np.array(parameters, float),
            np.array(stash, float), np.array(memory, float), np.array(sharded, float), *moved,
        )  # fmt: skip
        return replace(graph, options=options)
