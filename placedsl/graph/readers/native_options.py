"""``options`` of nodes in the project's own format: further ways to run a node, for one device or several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placedsl.graph.option_columns import AMOUNTS, MOVED, OptionColumns, Side
from placedsl.graph.readers.records import Document, word
from placedsl.units import Quantity

_OPTION = ("name", "tensor", "time", *AMOUNTS, *MOVED)
#: Bytes that only plans count; formulas read them.
BYTES_OF_NODES = ("stash", "sharded")
#: The kinds that a time without a kind is for.
_EVERYWHERE = ("accelerator", "host")
_Path = tuple[str | int, ...]


class NodeOptions:
    """Reads the options of nodes, one node after the other, into ``columns``."""

    def __init__(self, document: Document, unit: Quantity, columns: OptionColumns) -> None:
        self.document, self.unit, self.columns = document, unit, columns

    def of_node(self, i: int, own: int | str, node: Mapping[str, Any]) -> None:
        """Read the options of node i; the node as it stands is one of them, on one device, where it has a time."""
        document, at = self.document, ("nodes", i)
        given, before = node.get("options", []), (len(self.columns), len(document.found))
        plain = {key: document.number(at, node, key, 0.0) for key in ("stash", "memory", "sharded")}
        attributes = node.get("attributes")
        weights = attributes.get("parameters", 0.0) if isinstance(attributes, dict) else 0.0
        plain["parameters"] = float(weights) if isinstance(weights, int | float) else 0.0
        times = self._times(at, node) if "time" in node else {}
        if times:
            self.columns.add(i, "", 1, times, plain)
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
            if (i, name, degree) in self.columns.known:
                message = f"there is an option '{name}' for {degree} devices already"
                document.error(path, message if name else "an option has a name", 'as in "name": "recomputed"')
                continue
            if "time" not in option and not times:
                document.missing(path, "time", "this option has no 'time', nor has the node")
            amounts = {key: document.number(path, option, key, plain[key]) for key in AMOUNTS}
            row = self.columns.add(i, name, degree, self._times(path, option) if "time" in option else times, amounts)
            for side in MOVED:
                self._moved((*path, side), row, side, own, option.get(side, 0))
        if before == (len(self.columns), len(document.found)):
            hint = "of a graph with options times cannot be estimated"
            document.error(at, f"node '{own}' has neither a 'time' nor an option", hint)

    def _times(self, at: _Path, record: Mapping[str, Any]) -> dict[str, float]:
        given = record["time"]
        if not isinstance(given, dict):
            return dict.fromkeys(_EVERYWHERE, self.unit.times(self.document.number(at, record, "time")))
        return {kind: self.unit.times(self.document.number((*at, "time"), given, kind)) for kind in given}

    def _moved(self, at: _Path, row: int, side: Side, own: int | str, given: object) -> None:
        """``gather``, or ``scatter``: bytes for each edge on that side, or by the node at its other end."""
        edges = self.columns.edges(side, own)
        if not isinstance(given, dict):
            amount = self.document.amount(at, given, side)
            for edge in edges.values():
                self.columns.move(side, row, edge, amount)
            return
        for other in given:
            if other not in edges:
                hint = "there are edges with " + (", ".join(edges) or "no node")
                self.document.error((*at, other), f"no edge leads to or from '{other}' on this side", hint)
            elif not self.columns.move(side, row, edges[other], self.document.number(at, given, other)):
                hint = "an edge with an 'output' has a tensor of its own"
                self.document.error((*at, other), f"'{other}' reads the same tensor as another node here", hint)
