"""Orders of a directed graph given by its edges: topological order, components, cycles."""

from __future__ import annotations

import numpy as np

from placedsl.graph.graph import Integers


def topological(nodes: int, source: Integers, target: Integers) -> Integers | None:
    """A topological order (node positions), or None when there is a cycle.  Ties by position."""
    if (source < target).all():
        return np.arange(nodes)  # the order that they have, as in most files; nothing need be imported
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    try:
        return np.array(list(nx.topological_sort(graph)), dtype=np.int64)
    except nx.NetworkXUnfeasible:
        return None


def cycle(nodes: int, source: Integers, target: Integers) -> list[int]:
    """The nodes of one cycle in its order, or nothing.  Loops and edges of -1 must have been removed."""
    if topological(nodes, source, target) is not None:
        return []
    import networkx as nx

    graph = nx.DiGraph(list(zip(source.tolist(), target.tolist(), strict=True)))
    return [u for u, _ in nx.find_cycle(graph)]


def components(nodes: int, source: Integers, target: Integers) -> Integers:
    """The strongly connected component of each node, numbered by first member."""
    if not len(source):
        return np.arange(nodes)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(nodes, nodes)).tocsr()
    _, labels = connected_components(matrix, directed=True, connection="strong")
    return renumbered(labels)


def renumbered(labels: np.ndarray) -> Integers:
    """The same partition with labels 0.. in order of first occurrence."""
    _, first, back = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[back.ravel()]
