"""Layers that repeat: what is found for one of them is tried for all.

A model's layers are equal but for their times.  Where its nodes stand in a row, as in most files, or as depth-first
search comes upon them, most nodes have the same reads, relative to themselves, as the nodes one layer earlier.  A
schedule that is better in one layer is hardly better as a whole, and each of a hundred layers would have to be found on
its own; here the devices and the relative times of a layer, or of some in a row, are copied to the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, Times, sequence_of
from placedsl.algorithms.operator_scheduling.search.initial_orders import is_feasible
from placedsl.arrays import Floats, Integers

#: Fewer layers, or layers of fewer nodes, are left to the other searches; so are those that hold less of the graph.
_FEWEST_LAYERS, _FEWEST_NODES, _LEAST_SHARE = 4, 8, 0.1
#: What is read over a longer share of the graph than this, such as a mask or what an encoder has made, is read by each
#: layer at another distance.
_NEAR = 1.0 / 3.0
#: So many lengths of a layer are looked at; so many layers in a row are copied at most.
_LENGTHS, _MOST_IN_ROW = 16, 4
#: So far around a node it counts how that looks, for the order in which it is visited.
_ROUNDS = 4
#: Odd numbers to mix bits with.
_MIX = tuple(np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


@dataclass(frozen=True, eq=False)
class Layers:
    """Layers of one kind, in nodes that stand in a row: ``nodes``, layers x nodes of a layer; ``tensors``, layers x
    those that these make, of nodes that make as many in each layer; and ``place``, n, where each node of the graph
    stands.
    """

    nodes: Integers
    tensors: Integers
    place: Integers


def layers_of(instance: SchedulingInstance, nodes: Integers, place: Integers) -> Layers:
    """The layers of these nodes (layers x nodes of a layer)."""
    count = np.diff(instance.output_start)[nodes]
    same = (count == count[0]).all(axis=0)
    many = count[0, same]
    within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    first = np.repeat(instance.output_start[nodes[:, same]], many, axis=1)
    return Layers(integers(nodes), integers(instance.output[first + within]), integers(place))


def repeated_layers(instance: SchedulingInstance) -> list[Layers]:
    """Layers that repeat, for each kind, those with most nodes first.

    The nodes stand in the order of the file; where nothing repeats in that, in the order of depth-first search.
    """
    if instance.nodes < _FEWEST_LAYERS * _FEWEST_NODES:
        return []
    return _layers_in(instance, np.arange(instance.nodes)) or _layers_in(instance, _depth_first(instance))


def _layers_in(instance: SchedulingInstance, row: Integers) -> list[Layers]:
    """The layers where the nodes stand in this ``row``."""
    place = np.empty_like(row)
    place[row] = np.arange(instance.nodes)
    looks = _looks(instance, place)[row]
    runs = [(*run, length) for length in _lengths(looks) if length >= _FEWEST_NODES for run in _runs(looks, length)]
    found: list[Layers] = []
    taken = np.zeros(instance.nodes, dtype=np.bool_)
    for begin, end, length in sorted(runs, key=lambda run: (run[0] - run[1], run[2])):
        layers = (end - begin) // length
        places = begin + length * np.arange(layers)[:, None] + np.arange(length)[None, :]
        if layers >= _FEWEST_LAYERS and places.size >= _LEAST_SHARE * instance.nodes and not taken[places].any():
            taken[places] = True
            found.append(layers_of(instance, row[places], place))
    return found


def _reads(instance: SchedulingInstance) -> tuple[Integers, Integers]:
    """Who is read, and by whom."""
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    return instance.producer[tensor], instance.reader


def _depth_first(instance: SchedulingInstance) -> Integers:
    """All nodes, each after what it reads, and as near to that as depth-first search from the last node puts it.

    What a node reads is visited in an order that is the same for nodes that look alike together with what is around
    them, wherever they stand in the file.
    """
    source, target = _reads(instance)
    looks = _looks(instance, None)
    for _ in range(_ROUNDS):
        around = looks.copy()
        for end, other, factor in ((source, target, _MIX[1]), (target, source, _MIX[2])):
            np.add.at(around, end, _mixed(looks[other], factor))
        looks = around
    depth = np.zeros(instance.nodes, dtype=np.int64)
    order = np.lexsort((looks[source], target))
    start, read = np.searchsorted(target[order], np.arange(instance.nodes + 1)).tolist(), source[order].tolist()
    for v in instance.topological.tolist():
        depth[v] = 1 + max((int(depth[u]) for u in read[start[v] : start[v + 1]]), default=-1)
    unread = np.ones(instance.nodes, dtype=bool)
    unread[source] = False
    ends = np.flatnonzero(unread)
    out, met = list[int](), [False] * instance.nodes
    waiting = ends[np.argsort(depth[ends], kind="stable")].tolist()
    while waiting:
        v = waiting[-1]
        if v < 0:
            out.append(~v)
            waiting.pop()
        elif met[v]:
            waiting.pop()
        else:
            met[v], waiting[-1] = True, ~v
            waiting += [u for u in read[start[v] : start[v + 1]][::-1] if not met[u]]
    return np.array(out, dtype=np.int64)


def _runs(looks: np.ndarray, length: int) -> list[tuple[int, int]]:
    """Where nodes in a row look like those ``length`` further on, the last of these included: first, and end."""
    same = np.concatenate([[False], looks[:-length] == looks[length:], [False]])
    change = np.flatnonzero(same[1:] != same[:-1]).reshape(-1, 2)
    return [(begin, end + length) for begin, end in change.tolist()]


def _looks(instance: SchedulingInstance, place: Integers | None) -> np.ndarray:
    """n numbers that are equal for nodes with the same devices, and the same reads and readers, relative to where they
    stand (``place`` None: as many reads and readers).
    """
    source, target = _reads(instance)
    if place is None:
        near, apart = np.ones(len(source), dtype=bool), np.zeros(len(source), dtype=np.uint64)
    else:
        last = place.copy()
        np.maximum.at(last, source, place[target])
        near = (last - place)[source] <= _NEAR * instance.nodes
        apart = np.where(near, place[target] - place[source], 0).astype(np.uint64)
    looks = np.isfinite(instance.time) @ (np.uint64(1) << np.arange(instance.devices, dtype=np.uint64) % np.uint64(64))
    looks = looks.astype(np.uint64) * _MIX[0]
    for end, distance, factor in ((source[near], apart[near], _MIX[1]), (target, apart, _MIX[2])):
        np.add.at(looks, end, _mixed(distance, factor))
    return np.asarray(looks, dtype=np.uint64)


def _mixed(values: np.ndarray, factor: np.uint64) -> np.ndarray:
    mixed = (values + factor) * factor
    return np.asarray((mixed ^ (mixed >> np.uint64(29))) * _MIX[0])


def _lengths(looks: np.ndarray) -> list[int]:
    """Lengths that a layer may have: the commonest distances between nodes that look alike and are next to each other
    among those, each kind of node counted by its own commonest.
    """
    order = np.argsort(looks, kind="stable")
    same = looks[order][1:] == looks[order][:-1]
    kind = np.cumsum(np.concatenate([[0], ~same]))[1:][same]
    distance = np.diff(order)[same]
    if not len(distance):
        return []
    kinds, counts = np.unique(np.stack([kind, distance]), axis=1, return_counts=True)
    commonest = np.lexsort((-counts, kinds[0]))
    first = commonest[np.unique(kinds[0][commonest], return_index=True)[1]]
    lengths, place = np.unique(kinds[1][first], return_inverse=True)
    total = np.bincount(place.ravel(), weights=counts[first])
    return [int(length) for length in lengths[np.argsort(-total, kind="stable")[:_LENGTHS]]]


def copies(
    instance: SchedulingInstance, layers: Layers, sequence: OperatorSequence, times: Times, near: int,
    rng: np.random.Generator,
) -> Iterator[OperatorSequence]:  # fmt: skip
    """Sequences in which one to four layers in a row around layer ``near`` are copied to all others, or to some, where
    these are within the memory limits.
    """
    count = len(layers.nodes)
    middle = np.median(times.begun[layers.nodes], axis=1)
    for row in range(1, min(_MOST_IN_ROW, count - 1) + 1):
        for first in range(max(near - 3, 0), min(near + 3, count - row)):
            every = (0, count)
            some = (int(rng.integers(first + 1)), int(rng.integers(first + row, count + 1)))
            for low, high in (every, some):
                part = replace(layers, nodes=layers.nodes[low:high], tensors=layers.tensors[low:high])
                source = first - low + (np.arange(high - low) - (first - low)) % row
                # The time from a layer to the next, as it is where the copied ones end, or begin if they are the last.
                one, other = (first, first + row) if first + row < high else (max(first - 1, low), first + row - 1)
                period = (middle[other] - middle[one]) / max(other - one, 1)
                shift = (np.arange(high - low) - source) * period
                # What is run before and after these layers is that much later or earlier.
                around = shift[[0, -1]] - (middle[[low, high - 1]] - middle[low + source[[0, -1]]])
                copy = _copied(instance, part, sequence, times, source, shift, around)
                if copy is not None:
                    yield copy


def _copied(
    instance: SchedulingInstance, layers: Layers, sequence: OperatorSequence, times: Times, source: Integers,
    shift: Floats, around: Floats,
) -> OperatorSequence | None:  # fmt: skip
    """The sequence with other layers copied to each of ``layers``, None if that is not within the memory limits.

    ``source``, ``shift``: which one is copied, and so many seconds later;  ``around``: so many seconds later is what
    stands before the first of them, and what stands after the last
    """
    nodes, tensors, place = layers.nodes, layers.tensors, layers.place
    device = sequence.device.copy()
    device[nodes] = sequence.device[nodes[source]]
    if not is_feasible(instance, device):
        return None
    # Those that leave for their first reader, and no earlier, do so in copies.
    triggered = np.where(sequence.transfer_trigger >= 0, times.sent, np.inf)
    begun, sent = times.begun.copy(), triggered.copy()
    sides = place < place[nodes[0, 0]], place > place[nodes[-1, -1]]
    for side, later in zip(sides, around.tolist(), strict=True):
        begun[side] += later
        sent[side[instance.producer]] += later
    begun[nodes] = times.begun[nodes[source]] + shift[:, None]
    sent[tensors] = triggered[tensors[source]] + shift[:, None, None]
    return sequence_of(instance, device, in_order(instance, begun), sent)


@kernel(allocates=True)
def in_order(instance: SchedulingInstance, begun: Floats) -> Floats:
    """n: the least times that are no earlier than ``begun``, and no earlier than those of the nodes that are read."""
    out = begun.copy()
    for v in instance.topological:
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            out[v] = max(out[v], out[instance.producer[instance.input[i]]])
    return out
