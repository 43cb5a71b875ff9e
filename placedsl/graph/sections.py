"""Sections of a graph: groups by an attribute, with what has no value of it in the section that it leads to.

Boundaries of stages between layers only leave these as wholes: embeddings are in the section of the first layer, norm
and head in that of the last, and what stands between two layers is in that of the later one.
"""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Integers
from placedsl.graph.contraction import attribute_groups, joined_over_fusion, unvalued
from placedsl.graph.graph import Graph
from placedsl.graph.order import components, csr, renumbered, topological

#: What the groups of a section are called, before the attribute.
SECTION = "section by "


def groups_by(graph: Graph, name: str) -> Integers:
    """Group labels 0.. of the nodes by an attribute, or by its sections where the name begins with :data:`SECTION`."""
    by = name.removeprefix(SECTION)
    return attribute_groups(graph, name) if by == name else joined_over_fusion(graph, lambda g: sections(g, by))


def sections(graph: Graph, attribute: str) -> Integers:
    """Group labels 0.. of the nodes of a graph without fused operators.

    A node without a value belongs to the first section, in the order of the pipeline, among those of the nodes that
    follow it; where none of them has one, to the last among those of the nodes before it.  A pipeline runs along edges
    of the forward part and against those of the backward part.  What is connected to no node with a value is a group of
    its own.
    """
    label = attribute_groups(graph, attribute)
    known = ~unvalued(graph, attribute)
    section = np.where(known, label, -1)
    source, target = graph.edge_source, graph.edge_target
    same = graph.backward[source] == graph.backward[target]
    turned = graph.backward[source]
    before, after = np.where(turned, target, source), np.where(turned, source, target)
    rank = _ranks(label, before[same], after[same])
    _spread(section, rank, graph.nodes, before[same], after[same])
    _spread(section, rank, graph.nodes, source, target)  # what only the other part of a training step leads to
    return renumbered(np.where(section < 0, len(label) + np.arange(graph.nodes), section))


def _ranks(label: Integers, before: Integers, after: Integers) -> list[int]:
    """The place of each label in the order of the pipeline; labels on a circle have one."""
    labels = int(label.max(initial=-1)) + 1
    first, second = label[before], label[after]
    circle = components(labels, first, second)
    apart = circle[first] != circle[second]
    order = topological(labels, circle[first[apart]], circle[second[apart]])
    assert order is not None, "strongly connected components are on no circle"
    place = np.empty(labels, dtype=np.int64)
    place[order] = np.arange(labels)
    return place[circle].tolist()  # type: ignore[no-any-return]


def _spread(section: Integers, rank: list[int], nodes: int, before: Integers, after: Integers) -> None:
    """Give nodes without a section that of what follows them, then that of what is before them."""
    if (section >= 0).all():
        return
    order = topological(nodes, before, after)
    assert order is not None, "each part of a computation graph has no cycle, in either direction"
    own = section.tolist()
    forward = order.tolist()
    for way, key, value, choose in ((forward[::-1], before, after, min), (forward, after, before, max)):
        start, near = (side.tolist() for side in csr(key, value, nodes))
        for v in way:
            if own[v] < 0:
                found = [own[w] for w in near[start[v] : start[v + 1]] if own[w] >= 0]
                if found:
                    own[v] = choose(found, key=lambda one: (rank[one], one))
    section[:] = own
