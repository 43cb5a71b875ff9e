"""``graph { … }``: a computation graph written in the spec itself."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import InputError, Span, nearest
from placedsl.graph.build import Place, build, column, edge_costs
from placedsl.graph.graph import Graph
from placedsl.graph.option_columns import AMOUNTS, OptionColumns
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.vocabulary import TEXT, TRUTH
from placedsl.language.elaboration.inline_options import InlineOptions
from placedsl.language.elaboration.inline_options import stand_in as option_stand_in
from placedsl.language.elaboration.inline_values import InlineValues
from placedsl.language.elaboration.statement_entries import NODE_DIMENSIONS, STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expressions as core
from placedsl.units import NUMBER

_KNOWN = STATEMENTS["node"].entries
_EDGE = STATEMENTS["edge"].entries


class _Reader:
    """Collects the nodes and edges of one inline graph."""

    def __init__(self, checker: Checker, families: list[str]) -> None:
        self.checker = checker
        self.values = InlineValues(checker, families)
        self.nodes: list[syntax.Node] = []
        #: Of each node, by kind, family or device.
        self.times: list[dict[str, float]] = []
        self.memory: list[float] = []
        self.output: list[float] = []
        self.transfer: list[float] = []
        self.backward: list[bool] = []
        self.names: list[str] = []
        self.attributes: dict[str, dict[int, float | str]] = {}

    def node(self, node: syntax.Node) -> None:
        """Read one ``node`` statement."""
        position = len(self.nodes)
        self.nodes.append(node)
        memory, output, transfer = 0.0, np.nan, np.nan
        backward, name = False, node.name.text
        times: dict[str, float] = {}
        seen: set[str] = set()
        for entry in node.block:
            key, value = entry.name.text, entry.value
            if key in seen:
                self.checker.error(entry.name, f"'{key}' is given twice")
                continue
            seen.add(key)
            if key == "time":
                times = self.values.times(value)
            elif key == "memory":
                memory = self.values.value(value, key)
            elif key == "output":
                output = self.values.value(value, key)
            elif key == "transfer":
                transfer = self.values.value(value, key)
            elif key in NODE_DIMENSIONS:
                self.attributes.setdefault(key, {})[position] = self.values.value(value, key)
            elif key in ("backward", "name"):
                out, kind = self.checker.check(value)
                wanted = TRUTH if key == "backward" else TEXT
                if kind.kind != "error" and kind != wanted:
                    self.checker.error(value, f"'{key}' is {wanted}, this is {kind}")
                elif isinstance(out, core.Constant) and key == "backward":
                    backward = bool(out.value)
                elif isinstance(out, core.Constant):
                    name = str(out.value)
            else:
                self.attribute(position, entry)
        if seen.isdisjoint(("time", "flops", "bytes")) and not node.options:
            hint = "as in { time = 4 ms }, or flops and bytes to estimate it from"
            self.checker.error(node.name, f"node '{node.name.text}' has no time", hint)
        self.times.append(times)
        self.memory.append(memory)
        self.output.append(output)
        self.transfer.append(transfer)
        self.backward.append(backward)
        self.names.append(name)

    def edge(self, chain: syntax.Chain) -> tuple[float, float] | None:
        """The bytes and the transfer time that a chain gives its edges (nan: not given), or None."""
        output = transfer = np.nan
        for entry in chain.block:
            if entry.name.text == "output":
                output = self.values.value(entry.value, "output")
            elif entry.name.text == "transfer":
                transfer = self.values.value(entry.value, "transfer")
            else:
                hint = nearest(entry.name.text, _EDGE)
                self.checker.error(entry.name, f"an edge has no '{entry.name.text}'", hint)
        return (output, transfer) if chain.block else None

    def amounts(self, position: int) -> dict[str, float]:
        """The bytes that a node has as it stands, which its options have where they do not say."""
        own = {key: self.attributes.get(key, {}).get(position, 0.0) for key in AMOUNTS}
        return {key: float(amount) for key, amount in own.items()} | {"memory": self.memory[position]}

    def attribute(self, position: int, entry: syntax.Entry) -> None:
        """A further attribute: a plain number or a text."""
        key = entry.name.text
        out, kind = self.checker.check(entry.value)
        if kind.kind == "error":
            return
        plain = kind.kind == "text" or (kind.kind == "number" and kind.dimension == NUMBER)
        if not plain or not isinstance(out, core.Constant):
            hint = nearest(key, _KNOWN)
            hint = hint if "did you mean" in hint else "attributes of one's own are plain numbers or texts"
            self.checker.error(entry.name, f"a node has no '{key}' that is {kind}", hint)
            return
        value = out.value if isinstance(out.value, str) else float(out.value)
        self.attributes.setdefault(key, {})[position] = value


def read_inline(statement: syntax.GraphInline, checker: Checker, families: list[str]) -> Graph:
    """The graph of a ``graph { … }`` statement; raises InputError with every error in it."""
    reader = _Reader(checker, families)
    before = len(checker.found)
    edges: list[tuple[int | str, int | str]] = []
    edge_words: list[syntax.Word] = []
    own: dict[int, tuple[float, float]] = {}
    for item in statement.items:
        if isinstance(item, syntax.Node):
            reader.node(item)
            continue
        costs = reader.edge(item)
        for a, b in itertools.pairwise(item.names):
            if costs is not None:
                own[len(edges)] = costs
            edges.append((a.text, b.text))
            edge_words.append(b if edges and len(edges) > 1 and edges[-2][1] == a.text else a)
    count, ids = len(reader.nodes), [n.name.text for n in reader.nodes]
    edge_bytes, edge_time = edge_costs(ids, reader.output, reader.transfer, edges, own)
    columns = OptionColumns(edges, own)
    if any(node.options for node in reader.nodes):
        options = InlineOptions(reader.values, columns, edge_bytes)
        for i, node in enumerate(reader.nodes):
            options.of_node(i, node, reader.times[i], reader.amounts(i))
    if len(checker.found) > before:
        named = set(ids)
        for word in (w for item in statement.items if isinstance(item, syntax.Chain) for w in item.names):
            if word.text not in named:
                checker.error(word, f"there is no node '{word.text}'", nearest(word.text, named))
        found = list(checker.found)
        checker.found.clear()
        raise InputError(found)
    time = columns.least_times(count) if len(columns) else _by_kind(reader.times)
    attributes = {key: column(by_node, count) for key, by_node in reader.attributes.items()}

    def locate(place: Place) -> Span:
        if place.kind == "node" and place.index is not None and place.index < count:
            node = reader.nodes[place.index]
            entry = next((e for e in node.block if e.name.text == place.field), None)
            return checker.span(entry.value if entry else node.name)
        if place.kind == "edge" and place.index is not None and place.index < len(edges):
            return checker.span(_edge_word(statement, place.index, place.field))
        return statement.at.span

    graph = build(
        source=statement.at.source, ids=ids, names=reader.names, time=time, memory=np.array(reader.memory),
        backward=np.array(reader.backward, dtype=bool), attributes=attributes, edges=edges,
        edge_time=edge_time, edge_bytes=edge_bytes, own_edges=own, time_in_seconds=True, locate=locate,
    )  # fmt: skip
    return columns.added_to(graph)


def _by_kind(times: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    """By kind, family or device, the time of each node; inf: not given."""
    out = {kind: np.full(len(times), np.inf) for kind in dict.fromkeys(kind for given in times for kind in given)}
    for i, given in enumerate(times):
        for kind, time in given.items():
            out[kind][i] = time
    return out


def stand_in(statement: syntax.GraphInline) -> Graph:
    """A graph with the names of one that could not be read, so that the rest of the spec can be checked."""
    nodes = {item.name.text: item for item in statement.items if isinstance(item, syntax.Node)}
    count = len(nodes)
    attributes: dict[str, np.ndarray] = {}
    for node in nodes.values():
        for entry in node.block:
            if entry.name.text not in _KNOWN:
                blank = np.full(count, None, dtype=object) if isinstance(entry.value, syntax.Text) else np.zeros(count)
                attributes.setdefault(entry.name.text, blank)
    ids, zero, none = tuple(nodes), np.zeros(count), np.zeros(0, dtype=np.int64)
    return Graph(
        ids=ids, names=ids, time={}, memory=zero, backward=zero > 0, attributes=attributes, edge_source=none,
        edge_target=none, edge_tensor=none, tensor_producer=none, tensor_time=zero[:0], tensor_bytes=zero[:0],
        time_in_seconds=True, source=statement.at.source, options=option_stand_in(nodes),
    )  # fmt: skip


def _edge_word(statement: syntax.GraphInline, index: int, field: str | None) -> syntax.Word:
    """The word of a chain that edge number ``index`` comes from."""
    seen = 0
    for item in statement.items:
        if isinstance(item, syntax.Chain):
            if index < seen + len(item.names) - 1:
                return item.names[index - seen + (0 if field == "source" else 1)]
            seen += len(item.names) - 1
    return syntax.Word(statement.at, "")
