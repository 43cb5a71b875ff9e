"""The one way to make a :class:`Graph`: raw columns in, every defect reported at its place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial

import numpy as np

from placedsl.arrays import Booleans, Column, Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError, Source, Span
from placedsl.graph.graph import Folded, Graph, known_work, tensors_of_edges, uneven_edges, untimed
from placedsl.graph.order import cycle
from placedsl.records import dataclass

#: So many defects of one sort are shown one by one; the rest are counted.
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Place:
    """Which datum a diagnostic is about: entry ``index`` of the nodes or edges, and its ``field``.

    ``kind`` is node, edge or graph; fields are id, time, memory, source, target, cost.
    """

    kind: str
    index: int | None = None
    field: str | None = None


Id = int | str
Locate = Callable[[Place], Span | None]


def build(
    *,
    source: Source,
    ids: Sequence[Id],
    names: Sequence[str],
    time: Mapping[str, Floats],
    memory: Floats,
    backward: Booleans,
    attributes: Mapping[str, Column],
    edges: Sequence[tuple[Id, Id]],
    edge_time: Floats | None,
    edge_bytes: Floats | None,
    time_in_seconds: bool,
    locate: Locate,
    deployment: Mapping[str, float] | None = None,
    edge_matrix: Floats | None = None,
    edge_value: Sequence[Hashable] | None = None,
    own_edges: Collection[int] | None = None,
    notes: tuple[str, ...] = (),
    folded: Folded | None = None,
) -> Graph:
    """Check the columns of a graph and put them together.

    Arrays have one entry a node or edge; an edge carries a transfer time, bytes, or both (nan where
    not given).  ``edge_matrix`` says how long each edge takes from device to device; each then is a tensor of its own.
    ``edge_value`` names what flows along each edge, where nodes have several outputs: edges of one node with one value
    are one tensor.  ``own_edges``: the positions of edges with a tensor of their own, where the format says so; all
    other edges of a node read its one output.  Without it, a node whose edges differ in cost has one tensor an edge.
    Raises InputError with every defect: no nodes, repeated ids, edges to nowhere, loops, repeated edges, cycles,
    costs that are negative or not finite, nodes that run nowhere.
    """
    found: list[Diagnostic] = []
    if not len(ids):
        raise InputError([Diagnostic("the graph has no nodes", locate(Place("graph")), "a graph needs one at least")])
    position = _positions(ids, locate, found)
    for kind, values in time.items():
        _report(found, ~(values >= 0), partial(_cost, f"the time on '{kind}'", values), locate, "node", "time")
    if time:
        nowhere = untimed(len(ids), time) & ~known_work(len(ids), attributes)
        _report(found, nowhere, lambda i: (f"node '{names[i]}' has no time on any device", "it could run nowhere"),
                locate, "node", "time")  # fmt: skip
    _report(found, ~(memory >= 0) | np.isinf(memory), partial(_cost, "the memory", memory), locate, "node", "memory")
    ends = _ends(edges, position, locate, found)
    given = np.zeros(len(edges), dtype=bool)
    for what, costs in (("the transfer time", edge_time), ("the size", edge_bytes)):
        if costs is not None and len(edges):
            given |= ~np.isnan(costs)
            _report(found, (costs < 0) | np.isinf(costs), partial(_cost, what, costs), locate, "edge", "cost")
    if len(edges):
        _report(found, ~given, lambda _: ("this edge has no cost", "a finite number, 0 or more, is expected"),
                locate, "edge", "cost")  # fmt: skip
    if found:
        raise InputError(found)
    edge_source, edge_target = ends
    loop = cycle(len(ids), edge_source, edge_target)
    if loop:
        shown = " -> ".join(f"'{names[i]}'" for i in [*loop[:8], *(loop[:1] if len(loop) <= 8 else [])])
        more = "" if len(loop) <= 8 else f" -> … ({len(loop)} nodes)"
        at = int(np.flatnonzero((edge_source == loop[0]) & (edge_target == loop[1 % len(loop)]))[0])
        message = f"the graph has a cycle: {shown}{more}"
        raise InputError([Diagnostic(message, locate(Place("edge", at, "source")), "a computation graph has none")])
    unknown = np.full(len(edges), np.nan)
    times = unknown if edge_time is None else edge_time
    sizes = unknown if edge_bytes is None else edge_bytes
    if edge_value is None:
        apart = _with_own_tensor(edge_source, times, sizes, edge_matrix is not None, own_edges, len(ids))
        edge_tensor, producer, first = tensors_of_edges(edge_source, apart, len(ids))
    else:
        edge_tensor, producer, first = _tensors_of_values(edge_source, edge_value)
    return Graph(
        ids=tuple(ids), names=tuple(names), time=dict(time), memory=memory.astype(float), backward=backward,
        attributes=dict(attributes), edge_source=edge_source, edge_target=edge_target, edge_tensor=edge_tensor,
        tensor_producer=producer, tensor_time=times[first], tensor_bytes=sizes[first],
        time_in_seconds=time_in_seconds, source=source, deployment=dict(deployment or {}),
        tensor_matrix=None if edge_matrix is None else edge_matrix[first],
        notes=notes, folded=folded or Folded(),
    )  # fmt: skip


def _with_own_tensor(
    source: Integers, times: Floats, sizes: Floats, each: bool, own: Collection[int] | None, nodes: int
) -> Booleans:
    """Which edges have a tensor of their own: ``each``, those that the format names, or those that differ in cost."""
    if each or own is not None:
        apart = np.full(len(source), each)
        apart[list(own or ())] = True
        return apart
    costs = np.stack((np.nan_to_num(times, nan=-1.0), np.nan_to_num(sizes, nan=-1.0)), axis=1)
    ranked = np.unique(costs, axis=0, return_inverse=True)[1].ravel()
    return uneven_edges(source, ranked.astype(float), nodes)


def _tensors_of_values(source: Integers, values: Sequence[Hashable]) -> tuple[Integers, Integers, Integers]:
    """As :func:`tensors_of_edges`, with one tensor for each value of a node."""
    known: dict[tuple[int, Hashable], int] = {}
    tensor = [known.setdefault(key, len(known)) for key in zip(source.tolist(), values, strict=True)]
    edge_tensor = np.array(tensor, dtype=np.int64)
    first = np.unique(edge_tensor, return_index=True)[1].astype(np.int64)
    return edge_tensor, source[first], first


def edge_costs(
    ids: Sequence[Id],
    output: Sequence[float] | Floats,
    transfer: Sequence[float] | Floats,
    edges: Sequence[tuple[Id, Id]],
    own: Mapping[int, tuple[float, float]],
) -> tuple[Floats, Floats]:
    """Bytes and transfer time of each edge (nan: not given): its own, else its source's.

    A tensor without either moves for nothing: it has 0 bytes and takes no time, not even the latency of a link.
    """
    given = dict(zip(ids, zip(output, transfer, strict=True), strict=True))
    none = (np.nan, np.nan)
    costs = np.array([own.get(i) or given.get(u, none) for i, (u, _) in enumerate(edges)], dtype=float).reshape(-1, 2)
    costs[np.isnan(costs).all(axis=1)] = 0.0
    return costs[:, 0], costs[:, 1]


def column(values: Mapping[int, float | str], count: int) -> Column:
    """An attribute's values as a column; texts where one of them is a text."""
    if any(isinstance(v, str) for v in values.values()):
        texts = np.full(count, None, dtype=object)
        for i, value in values.items():
            texts[i] = value if isinstance(value, str) else f"{value:g}"
        return texts
    numbers = np.full(count, np.nan)
    numbers[list(values)] = [float(v) for v in values.values()]
    return numbers


def _unknown_node(edges: Sequence[tuple[Id, Id]], side: int, i: int) -> tuple[str, str]:
    return f"there is no node '{edges[i][side]}'", "edges join nodes of the graph"


def _cost(what: str, values: Floats, i: int) -> tuple[str, str]:
    value = values[i]
    kind = "missing or not a number" if np.isnan(value) else "negative" if value < 0 else "infinite"
    return f"{what} is {kind}", "a finite number, 0 or more, is expected"


def _report(
    found: list[Diagnostic],
    bad: Booleans,
    say: Callable[[int], tuple[str, str]],
    locate: Locate,
    kind: str,
    field: str,
) -> None:
    rows = np.flatnonzero(bad)
    for i in rows[:_MOST_SHOWN]:
        message, hint = say(int(i))
        found.append(Diagnostic(message, locate(Place(kind, int(i), field)), hint))
    if len(rows) > _MOST_SHOWN:
        i = int(rows[_MOST_SHOWN])
        message = f"and {len(rows) - _MOST_SHOWN} more like these: {say(i)[0]}"
        found.append(Diagnostic(message, locate(Place(kind, i, field))))


def _positions(ids: Sequence[Id], locate: Locate, found: list[Diagnostic]) -> dict[Id, int]:
    position: dict[Id, int] = {}
    texts: dict[str, int] = {}
    repeated = np.zeros(len(ids), dtype=bool)
    for i, own in enumerate(ids):
        position.setdefault(own, i)
        repeated[i] = texts.setdefault(str(own), i) != i
    _report(found, repeated, lambda i: (f"node '{ids[i]}' is there twice", "every id is needed once"),
            locate, "node", "id")  # fmt: skip
    return position


def _ends(
    edges: Sequence[tuple[Id, Id]], position: Mapping[Id, int], locate: Locate, found: list[Diagnostic]
) -> tuple[Integers, Integers]:
    ends = np.full((2, len(edges)), -1, dtype=np.int64)
    for i, pair in enumerate(edges):
        for side in (0, 1):
            ends[side, i] = position.get(pair[side], -1)
    for side, field in ((0, "source"), (1, "target")):
        _report(found, ends[side] < 0, partial(_unknown_node, edges, side), locate, "edge", field)
    known = (ends >= 0).all(axis=0)
    loop = known & (ends[0] == ends[1])
    _report(found, loop, lambda i: (f"node '{edges[i][0]}' has an edge to itself", "a computation graph has no cycles"),
            locate, "edge", "target")  # fmt: skip
    key = np.where(known, ends[0] * max(1, len(position)) + ends[1], -1 - np.arange(len(edges)))
    _, first = np.unique(key, return_index=True)
    twice = np.ones(len(edges), dtype=bool)
    twice[first] = False

    def repeated(i: int) -> tuple[str, str]:
        return f"the edge from '{edges[i][0]}' to '{edges[i][1]}' is there twice", "one is enough"

    _report(found, twice, repeated, locate, "edge", "source")
    return ends[0], ends[1]
