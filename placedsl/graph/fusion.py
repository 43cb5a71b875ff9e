"""Fusion: operators that run as one become one node of a coarser graph (Zhang et al. 2023, Algorithm 1).

A rule is a sequence of operator types.  It is matched along connections whose tensor has one reader (the paper's
direct and multi-input connections); an operator with several readers is fused with none of them.  Such connections
form chains, and a chain that becomes one node makes no cycle: only its last operator is read from outside, and
what it reaches cannot lead back into the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from placedsl.arrays import Booleans, Column, Floats, Integers
from placedsl.graph.graph import Fusion, Graph
from placedsl.graph.order import components, topological
from placedsl.records import dataclass

#: Numbers that add up when operators become one; all others must agree where they are asked for.
SUMMED = ("flops", "bytes", "parameters", "stash", "sharded", "kv_cache", "activations")


@dataclass(frozen=True, eq=False)
class Matches:
    """``unit`` has a number a node, the same for nodes that are fused; ``counts`` how often each rule was used."""

    unit: Integers
    counts: tuple[int, ...]


def matches(graph: Graph, rules: Sequence[Sequence[str]]) -> Matches:
    """Which nodes are fused: longer rules first, those of one length as they are written, each from the first node on.

    No rule fits what is left.  The time is linear in nodes and edges for each rule.
    """
    types = type_codes(graph)
    kind = np.array([types.get(text.casefold(), -1) if text is not None else -1 for text in graph.attributes["type"]])
    reader = _only_reader(graph)
    unit, free = np.arange(graph.nodes), np.ones(graph.nodes, dtype=bool)
    order = topological(graph.nodes, graph.edge_source, graph.edge_target)
    assert order is not None, "a computation graph has no cycle"
    counts = [0] * len(rules)
    for number in sorted(range(len(rules)), key=lambda i: -len(rules[i])):
        wanted = [types.get(name.casefold(), -2) for name in rules[number]]
        path = [order[free[order] & (kind[order] == wanted[0])]]
        for one in wanted[1:]:
            following = reader[path[-1]]
            fits = (following >= 0) & free[following] & (kind[following] == one)
            path = [*(nodes[fits] for nodes in path), following[fits]]
        for chain in np.stack(path, axis=1).tolist():
            # Two chains may meet in one operator, or overlap where a type stands twice in a rule.
            if all(free[v] for v in chain):
                free[chain] = False
                unit[chain] = chain[-1]
                counts[number] += 1
    return Matches(unit, tuple(counts))


def type_codes(graph: Graph) -> dict[str, int]:
    """A number for each operator type of a graph, letter case aside."""
    texts = {text.casefold() for text in graph.attributes["type"] if text is not None}
    return {text: number for number, text in enumerate(sorted(texts))}


def _only_reader(graph: Graph) -> Integers:
    """The one reader of each node, of its own part of the training step; -1 where there are several or none."""
    readers = np.bincount(graph.edge_source, minlength=graph.nodes)
    out = np.full(graph.nodes, -1, dtype=np.int64)
    out[graph.edge_source] = graph.edge_target
    out[readers != 1] = -1
    out[(out >= 0) & (graph.backward != graph.backward[out])] = -1
    return out


def levels(graph: Graph, unit: Integers) -> Integers:
    """n numbers: nodes of one unit and one number may become one node, and all of them together make no cycle.

    Units on no cycle of the graph of units keep one number.  Within a strongly connected component of that graph the
    number is the largest count of steps between units on a way to the node: every edge between two of the parts then
    leads to a larger number.
    """
    source, target = graph.edge_source, graph.edge_target
    apart = unit[source] != unit[target]
    component = components(graph.nodes, unit[source[apart]], unit[target[apart]])[unit]
    within = component[source] == component[target]
    out = np.zeros(graph.nodes, dtype=np.int64)
    order = topological(graph.nodes, source, target)
    assert order is not None, "a computation graph has no cycle"
    rank = np.empty(graph.nodes, dtype=np.int64)
    rank[order] = np.arange(graph.nodes)
    edges = np.flatnonzero(within)
    edges = edges[np.argsort(rank[source[edges]], kind="stable")]
    for u, v, step in zip(source[edges].tolist(), target[edges].tolist(), apart[edges].tolist(), strict=True):
        out[v] = max(out[v], out[u] + step)
    return out


def fused_graph(
    graph: Graph, unit: Integers, ids: Mapping[int, str], made: Sequence[tuple[str, int]], *, one_kernel: bool
) -> Graph:
    """The graph whose nodes are the units of ``graph``; nodes of one unit bear the same number, that of one of them.

    ``ids`` names units of several nodes (by their numbers); ``made`` says what made them, and how many.
    Memory, times and :data:`SUMMED` attributes add up; tensors that nobody outside reads vanish.  ``one_kernel``: the
    units are chains, whose inner tensors are never stored: ``bytes`` loses what writing and reading them takes.  Nodes
    stand where their last member stood, so a graph in topological order stays so when chains become one.
    """
    n = graph.nodes
    last = np.full(n, -1, dtype=np.int64)
    np.maximum.at(last, unit, np.arange(n))
    kept = np.flatnonzero(last >= 0)
    kept = kept[np.argsort(last[kept])]
    position = np.full(n, -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    node_of = position[unit]
    several = np.bincount(node_of, minlength=len(kept)) > 1
    only = last[kept]
    written = [ids.get(u) for u in kept.tolist()]
    own_ids = tuple(graph.ids[v] if text is None else text for v, text in zip(only.tolist(), written, strict=True))
    names = tuple(graph.names[v] if text is None else text for v, text in zip(only.tolist(), written, strict=True))
    source, target = node_of[graph.edge_source], node_of[graph.edge_target]
    outside = source != target
    read = np.unique(np.stack((graph.edge_tensor[outside], target[outside])), axis=1)
    stays = np.unique(read[0])
    tensor_of = np.full(graph.tensors, -1, dtype=np.int64)
    tensor_of[stays] = np.arange(len(stays))
    producer = node_of[graph.tensor_producer[stays]]
    saved = _saved_bytes(graph, node_of) if one_kernel else np.zeros(n)
    attributes: dict[str, Column] = {}
    unclear = {} if graph.fusion is None else dict(graph.fusion.unclear)
    for name, column in graph.attributes.items():
        attributes[name], disagreeing = _attribute(name, column, node_of, several, only, saved)
        if disagreeing.any():
            unclear[name] = own_ids[int(np.flatnonzero(disagreeing)[0])]
    before = graph.fusion
    fusion = Fusion(
        original=graph if before is None else before.original,
        node_of=node_of if before is None else node_of[before.node_of],
        tensor_of=tensor_of if before is None else _composed(before.tensor_of, tensor_of),
        before=graph,
        step=node_of,
        one_kernel=one_kernel,
        made=tuple(made) if before is None else (*before.made, *made),
        unclear=unclear,
    )
    return replace(
        graph, ids=own_ids, names=names, attributes=attributes, fusion=fusion,
        time={kind: _sums(values, node_of) for kind, values in graph.time.items()},
        measured={key: _sums(values, node_of) for key, values in graph.measured.items()},
        memory=_sums(graph.memory, node_of), backward=graph.backward[only],
        edge_source=producer[tensor_of[read[0]]], edge_target=read[1], edge_tensor=tensor_of[read[0]],
        tensor_producer=producer, tensor_time=graph.tensor_time[stays], tensor_bytes=graph.tensor_bytes[stays],
        tensor_matrix=None if graph.tensor_matrix is None else graph.tensor_matrix[stays],
    )  # fmt: skip


def _sums(values: Floats, node_of: Integers) -> Floats:
    return np.bincount(node_of, weights=values, minlength=int(node_of.max(initial=-1)) + 1).astype(float)


def _composed(first: Integers, second: Integers) -> Integers:
    """Where something is after two steps (-1: it is gone)."""
    return np.where(first >= 0, second[first] if len(second) else -1, -1)


def _saved_bytes(graph: Graph, node_of: Integers) -> Floats:
    """Bytes by node that are neither written nor read again, as their tensor stays within one chain."""
    inside = node_of[graph.edge_source] == node_of[graph.edge_target]
    size = np.nan_to_num(graph.tensor_bytes)[graph.edge_tensor[inside]]
    return np.bincount(graph.edge_target[inside], weights=2.0 * size, minlength=graph.nodes).astype(float)


def _attribute(
    name: str, column: Column, node_of: Integers, several: Booleans, only: Integers, saved: Floats
) -> tuple[Column, Booleans]:
    """An attribute of the fused graph, and which of its nodes have members that differ in it."""
    agree = np.zeros(len(several), dtype=bool)
    if column.dtype.kind == "f" and name in SUMMED:
        given = np.bincount(node_of, weights=~np.isnan(column), minlength=len(several)) > 0
        total = _sums(np.nan_to_num(column.astype(float)), node_of)
        if name == "bytes":
            total = np.maximum(total - _sums(saved, node_of), 0.0)
        return np.where(given, total, np.nan), agree
    if name == "type":
        texts = column[only].copy()
        members: dict[int, list[str]] = {}
        for v in np.flatnonzero(several[node_of]).tolist():
            if column[v] is not None:
                members.setdefault(int(node_of[v]), []).append(str(column[v]))
        for unit, words in members.items():
            texts[unit] = "+".join(words) if len(words) <= _MOST_TYPES else words[0] + "+…"
        return texts, agree
    first = column[only]
    same = column == first[node_of]
    if column.dtype.kind == "f":
        same |= np.isnan(column) & np.isnan(first[node_of])
    differs = np.zeros(len(several), dtype=bool)
    differs[node_of[~same.astype(bool)]] = True
    out = first.copy()
    out[differs] = np.nan if column.dtype.kind == "f" else None
    return out, differs


#: So many types are written out in the type of a fused operator.
_MOST_TYPES = 8
