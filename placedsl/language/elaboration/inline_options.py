"""``option split { tensor = 2, … }`` in the block of a node: a further way to run it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import nearest
from placedsl.graph.option_columns import AMOUNTS, MOVED, OptionColumns, Side
from placedsl.graph.options import OperatorOptions
from placedsl.language.elaboration.inline_values import InlineValues
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.units import DATA, NUMBER, show

_KNOWN = STATEMENTS["option"].entries
#: No machine has more.
_MOST_DEVICES = 2.0**31


class InlineOptions:
    """Reads the options of nodes into ``columns``.  ``tensor_bytes``: what flows along each edge (nan: not known)."""

    def __init__(self, values: InlineValues, columns: OptionColumns, tensor_bytes: Floats) -> None:
        self.values, self.columns, self.tensor_bytes = values, columns, tensor_bytes
        self.checker = values.checker

    def of_node(self, i: int, node: syntax.Node, times: Mapping[str, float], amounts: Mapping[str, float]) -> None:
        """Read the options of node i; as it stands it is one of them, on one device, where it has ``times``."""
        if times:
            self.columns.add(i, "", 1, times, amounts)
        elif not node.options:
            hint = "of a graph with options times cannot be estimated"
            self.checker.error(node.name, f"node '{node.name.text}' has neither a 'time' nor an option", hint)
        for option in node.options:
            self._option(i, node, option, times, amounts)

    def _option(
        self,
        i: int,
        node: syntax.Node,
        option: syntax.Option,
        times: Mapping[str, float],
        amounts: Mapping[str, float],
    ) -> None:
        name, given = option.name.text, dict[str, syntax.Entry]()
        for entry in option.block:
            key = entry.name.text
            if key not in _KNOWN:
                self.checker.error(entry.name, f"an option has no '{key}'", nearest(key, _KNOWN))
            elif key in given:
                self.checker.error(entry.name, f"'{key}' is given twice")
            else:
                given[key] = entry
        degree = self._degree(given)
        if (i, name, degree) in self.columns.known:
            message = f"node '{node.name.text}' has two options '{name}' for {degree} device{'s' * (degree > 1)}"
            hint = "tensor = 2 where it is split over two devices; another name for another option"
            self.checker.error(option.name, message if name else "an option has a name", hint)
            return
        if "time" in given:
            times = self.values.times(given["time"].value, _KNOWN)
        elif not times:
            hint = f"as in time = {_KNOWN['time'].example}"
            self.checker.error(option.name, "this option has no 'time', nor has the node", hint)
        own = {k: self.values.value(given[k].value, k, _KNOWN) if k in given else amounts[k] for k in AMOUNTS}
        row = self.columns.add(i, name, degree, times, own)
        for side in MOVED:
            if side in given:
                self._moved(row, side, node, given[side])

    def _degree(self, given: Mapping[str, syntax.Entry]) -> int:
        """How many devices an option is for; 1 where it does not say, and after reporting."""
        if "tensor" not in given:
            return 1
        entry, before = given["tensor"], len(self.checker.found)
        value = self.values.value(entry.value, "tensor", _KNOWN)
        if len(self.checker.found) > before:
            return 1
        if value != round(value) or not 1.0 <= value <= _MOST_DEVICES:
            self.checker.error(entry.value, f"'tensor' is a number of devices, this is {value:g}", "1, 2, 4 …")
            return 1
        return int(value)

    def _moved(self, row: int, side: Side, node: syntax.Node, entry: syntax.Entry) -> None:
        """``gather``, or ``scatter``: for each edge on that side, or by the node at its other end."""
        edges, before = self.columns.edges(side, node.name.text), len(self.checker.found)
        if not isinstance(entry.value, syntax.Braces):
            for edge in edges.values():
                self.columns.move(side, row, edge, self._bytes(side, edge, entry.value))
                if len(self.checker.found) > before:
                    break  # the same of every edge
            if not edges:
                self.values.measured(entry.value, side, (DATA, NUMBER), _KNOWN)
            return
        for key, amount in entry.value.pairs:
            match key:
                case syntax.Name(name=other) | syntax.Text(value=other):
                    pass
                case _:
                    other = ""
            if amount is None or not other:
                self.checker.error(key, "a node and the bytes that are moved are expected", "as in {block2: 64 MiB}")
            elif other not in edges:
                hint = nearest(other, edges) if edges else "there are edges with no node"
                way = "from" if side == "gather" else "to"
                self.checker.error(key, f"no edge leads {way} '{other}' here", hint)
            elif not self.columns.move(side, row, edges[other], self._bytes(side, edges[other], amount)):
                hint = "an edge with an 'output' has a tensor of its own"
                self.checker.error(key, f"'{other}' reads the same tensor as another node here", hint)

    def _bytes(self, side: Side, edge: int, given: syntax.Expression) -> float:
        """Bytes, or so often the tensor of an edge itself."""
        amount, dimension = self.values.measured(given, side, (DATA, NUMBER), _KNOWN)
        if dimension != NUMBER or amount == 0.0:
            return amount
        size = float(self.tensor_bytes[edge])
        if np.isnan(size):
            message = "the size of the tensor is not known"
            self.checker.error(given, message, f"{side} in bytes, as in {side} = {show(8 * 2**20, DATA)}")
            return 0.0
        return amount * size


def stand_in(nodes: Mapping[str, syntax.Node]) -> OperatorOptions | None:
    """Names and degrees of the options, as far as they can be read, of a graph that is wrong; None: without any."""
    if not any(node.options for node in nodes.values()):
        return None
    rows = [
        row for i, node in enumerate(nodes.values())
        for row in ((i, "", 1), *((i, option.name.text, _degree_of(option)) for option in node.options))
    ]  # fmt: skip
    node, name, degree = zip(*rows, strict=True)
    none = np.zeros(len(rows))
    time = {"accelerator": none, "host": none}
    positions, degrees = (np.array(column, dtype=np.int64) for column in (node, degree))
    return OperatorOptions(positions, tuple(name), degrees, time, none, none, none, none)


def _degree_of(option: syntax.Option) -> int:
    given = [entry.value for entry in option.block if entry.name.text == "tensor"]
    return int(given[0].value) if given and isinstance(given[0], syntax.Number) and given[0].value >= 1 else 1
