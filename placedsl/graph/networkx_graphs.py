"""Graphs of networkx: to the project's own format, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, nearest
from placedsl.graph.graph import Graph
from placedsl.units import DATA, NUMBER, OPERATIONS, TIME, Dimension, UnitError, parse_quantity, parse_unit

_MOST = 20


def native_text(graph: Any, time_unit: str | None = None, attributes: Collection[str] | None = None) -> str:
    """A ``networkx.DiGraph`` as a text in the project's own format, one line a node and an edge.

    Node attributes: ``time`` (a number, a text like "4 ms", or a mapping from device kinds to these), ``memory`` and
    ``output`` (bytes, or texts), ``transfer``, ``backward``, ``name``; edge attributes: ``output``, ``transfer``.
    Numbers of time are in ``time_unit``; texts are times whatever it is (seconds when it is None).  ``attributes``
    names the further attributes of nodes to take; None takes all.  Raises InputError with what is wrong, by node.
    """
    return _Writer(graph, time_unit, attributes).text()


class _Writer:
    def __init__(self, graph: Any, time_unit: str | None, attributes: Collection[str] | None) -> None:
        self.graph, self.time_unit, self.attributes = graph, time_unit, attributes
        self.found: list[Diagnostic] = []
        self.second = 1.0
        self.bare = self.dimensioned = ""

    def text(self) -> str:
        graph = self.graph
        for method, example in (("is_directed", True), ("is_multigraph", False)):
            if not hasattr(graph, method) or getattr(graph, method)() is not example:
                raise InputError([Diagnostic(f"a networkx.DiGraph is expected, this is {type(graph).__name__}")])
        if self.time_unit is not None:
            self.second = self._unit(self.time_unit)
        nodes = [self._node(node, data) for node, data in graph.nodes(data=True)]
        edges = [self._edge(u, v, data) for u, v, data in graph.edges(data=True)]
        if self.time_unit is None and self.bare and self.dimensioned:
            message = f"{self.bare} has a plain number, {self.dimensioned} a time with a unit"
            self.error(message, 'say what the numbers are in: time_unit="ms"')
        if self.found:
            raise InputError(self.found)
        unit = "s" if self.dimensioned and self.time_unit is None else self.time_unit
        head = {"format": "placedsl-graph", "version": 1} | ({} if unit is None else {"time_unit": unit})
        opening = json.dumps(head)[:-1]
        return f'{opening},\n"nodes": [\n{_lines(nodes)}\n],\n"edges": [\n{_lines(edges)}\n]}}\n'

    def error(self, message: str, hint: str = "") -> None:
        """Something is wrong; raises when there is too much."""
        self.found.append(Diagnostic(message, None, hint))
        if len(self.found) >= _MOST:
            raise InputError(self.found)

    def _unit(self, text: str) -> float:
        try:
            unit = parse_unit(text)
        except UnitError as problem:
            raise InputError([Diagnostic(f"time_unit: {problem}")]) from None
        if unit.dimension != TIME:
            raise InputError([Diagnostic(f"time_unit is a unit of time, '{text}' is {unit.dimension}")])
        return unit.value

    def _identifier(self, node: object) -> int | str:
        if isinstance(node, Integral) and not isinstance(node, bool):
            return int(node)
        if not isinstance(node, str):
            self.error(
                f"node {node!r} is neither a text nor a whole number", "networkx.relabel_nodes gives other names"
            )
        return str(node)

    def _node(self, node: object, data: Mapping[str, Any]) -> dict[str, Any]:
        who = f"node {node!r}"
        record: dict[str, Any] = {"id": self._identifier(node)}
        if "time" not in data and "flops" not in data and "bytes" not in data:
            self.error(f"{who} has no 'time'", nearest("time", data) or 'as in graph.add_node("a", time=4)')
        further = {}
        for name, value in data.items():
            if name == "time" and isinstance(value, Mapping):
                record[name] = {str(k): self._time(f"{who}, time on '{k}',", v) for k, v in value.items()}
            elif name in ("time", "transfer"):
                record[name] = self._time(f"{who}, '{name}',", value)
            elif name == "flops":
                record[name] = self._number(f"{who}, 'flops',", value, OPERATIONS, "a number, or a text like '2 GFLOP'")
            elif name in ("memory", "output", "bytes"):
                record[name] = self._number(
                    f"{who}, '{name}',", value, DATA, "a number of bytes, or a text like '2 GiB'"
                )
            elif name == "backward":
                record[name] = bool(value)
            elif name == "name":
                record[name] = str(value)
            elif self.attributes is None or name in self.attributes:
                further[str(name)] = self._attribute(f"{who}, '{name}',", value)
        if further:
            record["attributes"] = {k: v for k, v in further.items() if v is not None}
        return record

    def _edge(self, source: object, target: object, data: Mapping[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {"from": self._identifier(source), "to": self._identifier(target)}
        for name, value in data.items():
            who = f"the edge from {source!r} to {target!r}, '{name}',"
            if name == "output":
                record[name] = self._number(who, value, DATA, "a number of bytes, or a text like '8 MiB'")
            elif name == "transfer":
                record[name] = self._time(who, value)
            elif self.attributes is None:
                self.error(f"{who} means nothing", "edges have output and transfer; attributes=[…] leaves others out")
        return record

    def _time(self, who: str, value: object) -> float:
        if isinstance(value, str):
            self.dimensioned = self.dimensioned or who
            return self._number(who, value, TIME, "a time like '4 ms'") / self.second
        self.bare = self.bare or who
        return self._number(who, value, NUMBER, "a number, or a time like '4 ms'")

    def _number(self, who: str, value: object, dimension: Dimension, expected: str) -> float:
        if isinstance(value, str):
            try:
                quantity = parse_quantity(value)
            except UnitError as problem:
                self.error(f"{who} is {expected}: {problem}")
                return 0.0
            if quantity.dimension != dimension:
                self.error(f"{who} is {expected}; '{value}' is {quantity.dimension}")
            return quantity.value
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
            self.error(f"{who} is {expected}, 0 or more; this is {value!r}")
            return 0.0
        return float(value)

    def _attribute(self, who: str, value: object) -> float | str | None:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | np.bool_):
            return int(value)
        if not isinstance(value, Real) or not math.isfinite(value):
            self.error(f"{who} is a number or a text; this is {value!r}", "attributes=[…] names those to take")
            return None
        return int(value) if isinstance(value, Integral) else float(value)


def _lines(records: list[dict[str, Any]]) -> str:
    return ",\n".join(json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records)


def digraph(graph: Graph, time_of_edge: Callable[[int], float | None]) -> Any:
    """A ``networkx.DiGraph`` with the ids as nodes, in the order of the graph.

    Nodes have ``name``, ``memory``, ``backward`` and the attributes of the graph; edges ``bytes`` (None where the graph
    gives no sizes) and ``time``, what ``time_of_edge`` says of the edge at a position.
    """
    import networkx

    out = networkx.DiGraph()
    further = {name: values.tolist() for name, values in graph.attributes.items()}
    for i, node in enumerate(graph.ids):
        data = {name: values[i] for name, values in further.items() if values[i] is not None and values[i] == values[i]}
        data |= {"name": graph.names[i], "memory": float(graph.memory[i]), "backward": bool(graph.backward[i])}
        out.add_node(node, **data)
    sizes = graph.tensor_bytes[graph.edge_tensor].tolist()
    for k, (u, v) in enumerate(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)):
        size = sizes[k] if math.isfinite(sizes[k]) else None
        out.add_edge(graph.ids[u], graph.ids[v], bytes=size, time=time_of_edge(k))
    return out
