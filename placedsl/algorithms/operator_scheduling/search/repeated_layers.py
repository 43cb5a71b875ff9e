"""Layers that repeat: what is found for one of them is tried for all.

A model's layers are equal but for their times, and stand in its file one after the other: most nodes have the same
reads, relative to themselves, as the nodes one layer earlier.  A schedule that is better in one layer is hardly better
as a whole, and each of a hundred layers would have to be found on its own; here the devices and the relative times of a
layer, or of some in a row, are copied to the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, Times, sequence_of
from placedsl.arrays import Floats, Integers

#: Fewer layers, or layers of fewer nodes, are left to the other searches; so are those that hold less of the graph.
_FEWEST_LAYERS, _FEWEST_NODES, _LEAST_SHARE = 4, 8, 0.1
#: What is read over a longer share of the graph than this, such as a mask or what an encoder has made, is read by each
#: layer at another distance.
_NEAR = 1.0 / 3.0
#: So many lengths of a layer are looked at; so many layers in a row are copied at most.
_LENGTHS, _MOST_IN_ROW = 16, 4
#: Odd numbers to mix bits with.
_MIX = tuple(np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


def repeated_layers(instance: SchedulingInstance) -> list[Integers]:
    """Layers that repeat, those with most nodes first: for each kind, layers x nodes of a layer, the numbers of the
    nodes as they stand in a row.
    """
    if instance.nodes < _FEWEST_LAYERS * _FEWEST_NODES:
        return []
    looks = _looks(instance)
    runs = [(*run, length) for length in _lengths(looks) if length >= _FEWEST_NODES for run in _runs(looks, length)]
    found: list[Integers] = []
    taken = np.zeros(instance.nodes, dtype=np.bool_)
    for begin, end, length in sorted(runs, key=lambda run: (run[0] - run[1], run[2])):
        layers = (end - begin) // length
        nodes = begin + length * np.arange(layers)[:, None] + np.arange(length)[None, :]
        if layers >= _FEWEST_LAYERS and nodes.size >= _LEAST_SHARE * instance.nodes and not taken[nodes].any():
            taken[nodes] = True
            found.append(integers(nodes))
    return found


def _runs(looks: np.ndarray, length: int) -> list[tuple[int, int]]:
    """Where nodes in a row look like those ``length`` further on, the last of these included: first, and end."""
    same = np.concatenate([[False], looks[:-length] == looks[length:], [False]])
    change = np.flatnonzero(same[1:] != same[:-1]).reshape(-1, 2)
    return [(begin, end + length) for begin, end in change.tolist()]


def _looks(instance: SchedulingInstance) -> np.ndarray:
    """n numbers that are equal for nodes with the same reads and readers, relative to themselves, and devices."""
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    source, target = instance.producer[tensor], instance.reader
    last = np.arange(instance.nodes)
    np.maximum.at(last, source, target)
    near = (last[source] - source) <= _NEAR * instance.nodes
    apart = np.where(near, target - source, 0).astype(np.uint64)
    looks = np.isfinite(instance.time) @ (np.uint64(1) << np.arange(instance.devices, dtype=np.uint64) % np.uint64(64))
    looks = looks.astype(np.uint64) * _MIX[0]
    for end, distance, factor in ((source[near], apart[near], _MIX[1]), (target, apart, _MIX[2])):
        mixed = (distance + factor) * factor
        np.add.at(looks, end, (mixed ^ (mixed >> np.uint64(29))) * _MIX[0])
    return np.asarray(looks, dtype=np.uint64)


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
    instance: SchedulingInstance, layers: Integers, sequence: OperatorSequence, times: Times, near: int,
    rng: np.random.Generator,
) -> Iterator[OperatorSequence]:  # fmt: skip
    """Sequences in which one to four layers in a row around layer ``near`` are copied to all others, or to some."""
    count = len(layers)
    middle = np.median(times.begun[layers], axis=1)
    for row in range(1, min(_MOST_IN_ROW, count - 1) + 1):
        for first in range(max(near - 3, 0), min(near + 3, count - row)):
            every = (0, count)
            some = (int(rng.integers(first + 1)), int(rng.integers(first + row, count + 1)))
            for low, high in (every, some):
                yield _copied(instance, layers[low:high], sequence, times, middle[low:high], first - low, row)


def _copied(
    instance: SchedulingInstance, layers: Integers, sequence: OperatorSequence, times: Times, middle: Floats,
    first: int, row: int,
) -> OperatorSequence:  # fmt: skip
    """``row`` layers from ``first`` copied to all of ``layers``; ``middle``: when each layer is run."""
    count = len(layers)
    # The time from a layer to the next, as it is where the copied ones end, or begin if they are the last.
    low, high = (first, first + row) if first + row < count else (max(first - 1, 0), first + row - 1)
    period = (middle[high] - middle[low]) / max(high - low, 1)
    source = first + (np.arange(count) - first) % row
    device, begun = sequence.device.copy(), times.begun.copy()
    device[layers] = sequence.device[layers[source]]
    begun[layers] = times.begun[layers[source]] + ((np.arange(count) - source) * period)[:, None]
    # What is run later than these layers is that much later or earlier.
    number = np.arange(instance.nodes)
    for side, end in ((number < layers[0, 0], 0), (number > layers[-1, -1], count - 1)):
        begun[side] += (end - source[end]) * period - (middle[end] - middle[source[end]])
    return sequence_of(instance, device, _in_order(instance, begun))


@kernel(allocates=True)
def _in_order(instance: SchedulingInstance, begun: Floats) -> Floats:
    """n: the least times that are no earlier than ``begun``, and no earlier than those of the nodes that are read."""
    out = begun.copy()
    for v in instance.topological:
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            out[v] = max(out[v], out[instance.producer[instance.input[i]]])
    return out
