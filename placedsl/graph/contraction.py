"""Contracting what must share a device, and what direction a backward pass runs in.

Tarnawski et al. 2020, Appendix B: nodes of one colour class, and nodes on a cycle of the precedence
pairs, always share a device.  Backward nodes without a forward sibling ("orphans") need no artificial
forward node here: their pairs take part in the precedence like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, distinct
from placedsl.graph.graph import Graph
from placedsl.graph.order import components, joined_partitions, renumbered, topological
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Quotient:
    """A graph in which nodes that must share a device are one *unit*.  u units, t tensors.

    ``unit_of_node``     n unit positions
    ``before``, ``after``   pairs of different units along which a contiguous placement goes forward
    ``memory``           u sizes
    ``work``             device types x u times (inf: some member is not supported)
    ``tensor_producer``  t units; ``pin_start``, ``pin_unit``: the units that touch tensor i are
                         ``pin_unit[pin_start[i]:pin_start[i+1]]``, the producer first, readers after it
    ``transfer``         device types x t times
    ``tensor_of``        per tensor of the graph its tensor here (-1: it never leaves one unit)
    """

    unit_of_node: Integers
    units: int
    before: Integers
    after: Integers
    memory: Floats
    work: Floats
    tensor_producer: Integers
    pin_start: Integers
    pin_unit: Integers
    transfer: Floats
    tensor_of: Integers


def attribute_groups(graph: Graph, attribute: str) -> Integers:
    """Group labels 0.. of the nodes by an attribute; a node without it is a group of its own.

    Fused operators whose members are of several groups make one group of these.
    """
    if graph.fusion is not None:
        return joined_over_fusion(graph, lambda written: attribute_groups(written, attribute))
    known: dict[object, int] = {}
    keys = [("own", i) if value is None else ("value", value) for i, value in enumerate(_values(graph, attribute))]
    return np.array([known.setdefault(k, len(known)) for k in keys], dtype=np.int64).reshape(graph.nodes)


def joined_over_fusion(graph: Graph, groups: Callable[[Graph], Integers]) -> Integers:
    """Groups of the nodes from those of the graph as written; groups with a common fused operator are one."""
    labels = groups(graph.written)
    if graph.fusion is None:
        return labels
    parts = joined_partitions(graph.written.nodes, [labels, graph.fusion.node_of])
    out = np.empty(graph.nodes, dtype=np.int64)
    out[graph.fusion.node_of] = parts
    return renumbered(out)


def unvalued(graph: Graph, attribute: str) -> Booleans:
    """Which nodes of a graph without fused operators have no value of an attribute."""
    return np.array([value is None for value in _values(graph, attribute)], dtype=bool)


def _values(graph: Graph, attribute: str) -> list[object]:
    """The value of each node; None where it has none."""
    if attribute in ("name", "id"):
        return list(graph.names if attribute == "name" else graph.ids)
    if attribute == "backward":
        return list(graph.backward)
    if attribute == "memory":
        return list(graph.memory)
    column = graph.attributes[attribute]
    return [None if np.isnan(x) else x for x in column] if column.dtype.kind == "f" else list(column)


def precedence(graph: Graph, groups: Sequence[Integers]) -> tuple[Integers, Integers, str]:
    """The node pairs along which a pipeline runs, and how the backward part runs through it ("": there is none).

    ``groups``: labels of nodes that share a device, one array per partition.
    """
    before, after, orientation = backward_orientation(
        backward=graph.backward, edge_source=graph.edge_source, edge_target=graph.edge_target, groups=groups
    )
    return before, after, orientation if graph.backward.any() else ""


def contraction_units(nodes: int, groups: Sequence[Integers], before: Integers, after: Integers) -> Integers:
    """A unit number a node: nodes of one group, in any of the partitions, and nodes on a cycle are one."""
    if not groups and (before < after).all():
        return np.arange(nodes)  # no cycle: what most small graphs are, without a library for it
    unit = joined_partitions(nodes, groups)
    first, second = unit[before], unit[after]
    apart = first != second
    if topological(int(unit.max(initial=-1)) + 1, first[apart], second[apart]) is not None:
        return unit
    return renumbered(components(nodes, first[apart], second[apart])[unit])


def backward_orientation(
    *, backward: Booleans, edge_source: Integers, edge_target: Integers, groups: Sequence[Integers]
) -> tuple[Integers, Integers, str]:
    """The precedence pairs of a pipeline: forward edges as they are, backward edges turned round or not.

    A backward pass runs through the pipeline from its last device to its first ("against"); a few
    published training graphs have it the other way ("along").  Chosen is what leaves more units after
    contraction, "against" when both leave the same.  Edges between the parts give no pair.
    """
    ahead = ~backward[edge_source] & ~backward[edge_target]
    behind = backward[edge_source] & backward[edge_target]
    forward = edge_source[ahead], edge_target[ahead]
    back = edge_source[behind], edge_target[behind]
    against = (np.concatenate((forward[0], back[1])), np.concatenate((forward[1], back[0])))
    if not len(back[0]):
        return *against, "against"
    along = (np.concatenate((forward[0], back[0])), np.concatenate((forward[1], back[1])))
    count = [int(contraction_units(len(backward), groups, *pairs).max(initial=-1)) for pairs in (against, along)]
    return (*against, "against") if count[0] >= count[1] else (*along, "along")


def contract(
    *,
    memory: Floats,
    work: Floats,
    groups: Sequence[Integers],
    before: Integers | None,
    after: Integers | None,
    tensor_producer: Integers,
    read_tensor: Integers,
    read_node: Integers,
    transfer: Floats,
    merge: bool = True,
) -> Quotient:
    """The quotient of a graph.  ``work`` is types x nodes, ``transfer`` types x tensors; the pairs ``before``,
    ``after`` are None where contiguity is not asked for.  ``read_tensor``/``read_node`` have one entry a read.
    Without ``merge`` tensors with the same ends stay apart.
    """
    nodes, tensors = len(memory), len(tensor_producer)
    none = np.zeros(0, dtype=np.int64)
    pairs = (none, none) if before is None or after is None else (before, after)
    unit = contraction_units(nodes, groups, *pairs)
    units = int(unit.max(initial=-1)) + 1
    first, second = unit[pairs[0]], unit[pairs[1]]
    apart = first != second
    known = np.stack(np.divmod(distinct(first[apart] * max(1, units) + second[apart]), max(1, units)))
    if units == nodes:  # each unit is one node, of the same number
        unit_work, unit_memory = work.copy(), memory.copy()
    else:
        unit_work, unit_memory = np.zeros((len(work), units)), np.zeros(units)
        np.add.at(unit_work.T, unit, work.T)
        np.add.at(unit_memory, unit, memory)

    # Pins: one a (tensor, unit) that touches it, the producer's first.
    producer = unit[tensor_producer]
    pin_tensor = np.concatenate((np.arange(tensors), read_tensor))
    pin_unit = np.concatenate((producer, unit[read_node]))
    key = distinct(pin_tensor * max(1, units) + pin_unit)
    pin_tensor, pin_unit = key // max(1, units), key % max(1, units)
    counts = np.bincount(pin_tensor, minlength=tensors)
    crossing = counts > 1
    # Tensors with one producer and the same readers are one: their transfers add up.
    order = np.lexsort((pin_unit, pin_unit != producer[pin_tensor], pin_tensor))
    pin_tensor, pin_unit = pin_tensor[order], pin_unit[order]
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    first_alike = _first_alike(pin_unit, start, np.flatnonzero(crossing)) if merge else np.flatnonzero(crossing)
    kept, number = np.unique(first_alike, return_inverse=True)
    tensor_of = np.full(tensors, -1, dtype=np.int64)
    tensor_of[crossing] = number
    merged = np.zeros((len(transfer), len(kept)))
    some = np.flatnonzero(tensor_of >= 0)
    np.add.at(merged.T, tensor_of[some], transfer.T[some])
    lengths = counts[kept]
    pin_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
    entry = np.repeat(start[kept] - pin_start[:-1], lengths) + np.arange(pin_start[-1])
    return Quotient(
        unit_of_node=unit, units=units, before=known[0], after=known[1], memory=unit_memory, work=unit_work,
        tensor_producer=producer[kept], pin_start=pin_start, pin_unit=pin_unit[entry],
        transfer=merged, tensor_of=tensor_of,
    )  # fmt: skip


def _first_alike(pin_unit: Integers, start: Integers, which: Integers) -> Integers:
    """For each of these tensors the first of them with the same pins in the same order."""
    # Equal pins have equal sums; those few that share theirs with others are compared.
    place = np.arange(len(pin_unit)) - np.repeat(start[:-1], np.diff(start))
    mixed = (pin_unit + 1) * np.int64(0x9E3779B1) ^ (place * np.int64(0x85EBCA77))
    total = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(mixed * mixed)))
    _, key, alike = np.unique((total[start[1:]] - total[start[:-1]])[which], return_inverse=True, return_counts=True)
    out = which.copy()
    seen: dict[bytes, int] = {}
    for i in np.flatnonzero(alike[key] > 1).tolist():
        tensor = int(which[i])
        out[i] = seen.setdefault(pin_unit[start[tensor] : start[tensor + 1]].tobytes(), tensor)
    return out


__all__ = [
    "Quotient",
    "attribute_groups",
    "backward_orientation",
    "contract",
    "contraction_units",
    "joined_over_fusion",
    "precedence",
    "renumbered",
    "unvalued",
]
