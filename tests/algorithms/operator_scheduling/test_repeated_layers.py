"""Layers that repeat: they are found, and what is better in one of them is tried in all."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from support.operator_schedules import Sample, sample

from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of, sequence_of
from placedsl.algorithms.operator_scheduling.search.initial_orders import is_feasible
from placedsl.algorithms.operator_scheduling.search.repeated_layers import copies, repeated_layers

#: A layer: who reads whom in it, by places in the layer; the last is read by the next layer's first, and, as a bias, by
#: its sixth.
WITHIN = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 6), (5, 6), (6, 7), (7, 8), (8, 9)]
LENGTH = 10


def layers(number: int, seed: int, head: int = 3, tail: int = 2) -> Sample:
    """A chain of layers between a few other nodes, on two devices, with times that are all unlike."""
    nodes = head + number * LENGTH + tail
    case = sample(seed, nodes=nodes, devices=2, congestion={"port"}, sequential=True)
    edges = list(itertools.pairwise(range(head)))
    for k in range(number):
        first = head + k * LENGTH
        edges += [(first + u, first + v) for u, v in WITHIN] + [(first - 1, first), (first - 1, first + 5)]
    edges += [(v - 1, v) for v in range(nodes - tail, nodes)]
    rng = np.random.default_rng(seed)
    case.time = rng.uniform(9.0, 11.0, (nodes, 2))
    case.memory, case.room, case.groups = np.zeros(nodes), np.full(2, np.inf), []
    case.producer = sorted({u for u, _ in edges})
    case.reads = sorted((case.producer.index(u), v) for u, v in edges)
    given = np.full((len(case.producer), 2, 2), 0.5) * (1.0 - np.eye(2))
    case.moves = dataclasses.replace(case.moves, size=np.ones(len(case.producer)), explicit=given)
    return case


@pytest.mark.parametrize("head", [0, 1, 7])
def test_layers_are_found(head: int) -> None:
    (kind,) = repeated_layers(layers(9, 1, head).instance)
    found = kind.nodes
    assert found.shape[1] == LENGTH
    assert len(found) >= 7  # the first and the last ones have other neighbours
    assert (np.diff(found, axis=0) == LENGTH).all()
    assert (np.diff(found, axis=1) == 1).all()


def test_two_kinds_of_layers_and_what_all_of_them_read() -> None:
    """An encoder's layers, and those of a decoder that has three nodes more a layer and reads the encoder's end."""
    case, longer = layers(7, 1, tail=0), LENGTH + 3
    encoder = len(case.time)
    edges = [(case.producer[t], v) for t, v in case.reads]
    for k in range(7):
        first = encoder + k * longer
        edges += [(first + u, first + v) for u, v in [*WITHIN, (9, 10), (10, 11), (11, 12)]]
        edges += [(first - 1, first), (encoder - 1, first + 10)]
    case.time = np.ones((encoder + 7 * longer, 2))
    case.memory = np.zeros(len(case.time))
    case.producer = sorted({u for u, _ in edges})
    case.reads = sorted({(case.producer.index(u), v) for u, v in edges})
    case.moves = dataclasses.replace(case.moves, size=np.ones(len(case.producer)), explicit=np.zeros((0, 2, 2)))
    decoder, first = (kind.nodes for kind in repeated_layers(case.instance))
    assert decoder.shape[1] == longer
    assert first.shape[1] == LENGTH
    assert len(decoder) >= 5
    assert len(first) >= 5
    assert decoder.min() >= encoder > first.min()


@pytest.mark.parametrize("seed", range(6))
def test_a_graph_without_layers_has_none(seed: int) -> None:
    assert not repeated_layers(sample(seed, nodes=60, devices=2).instance)
    assert not repeated_layers(sample(seed, nodes=3, devices=2).instance)
    instance = layers(8, seed).instance
    able = instance.time.copy()
    able[np.random.default_rng(seed).random(len(able)) < 0.4, 1] = np.inf
    assert not repeated_layers(instance._replace(time=able))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_better_in_one_layer_is_better_in_all(seed: int) -> None:
    instance = layers(9, seed).instance
    (kind,) = repeated_layers(instance)
    found = kind.nodes
    device = np.zeros(instance.nodes, dtype=np.int64)
    begun = np.argsort(instance.topological).astype(float)
    serial, _ = schedule_of(instance, sequence_of(instance, device, begun))
    aside = [k for k in range(LENGTH) if (found[3, k] - 3) % LENGTH in (2, 3)]
    device[found[3, aside]] = 1
    one = sequence_of(instance, device, begun)
    latency, times = schedule_of(instance, one)
    gain = serial - latency
    assert gain > 5.0
    tried = list(copies(instance, kind, one, times, 3, np.random.default_rng(seed)))
    values = [schedule_of(instance, sequence)[0] for sequence in tried]
    assert min(values) < serial - 0.8 * len(found) * gain
    best = tried[int(np.argmin(values))]
    assert (best.device[found[:, aside]] == 1).all()


def test_copies_keep_when_tensors_leave() -> None:
    """In each layer two nodes are on the other device, and what the second one reads leaves first, though the first one
    has to wait for the others then; copies of layers take as long.
    """
    case = layers(9, 1)
    case.time[:] = 10.0
    case.moves = dataclasses.replace(case.moves, explicit=64.0 * case.moves.explicit)
    instance = case.instance
    (kind,) = repeated_layers(instance)
    inside = (np.arange(instance.nodes) - 3) % LENGTH
    device, begun = np.isin(inside, [4, 5]).astype(np.int64), np.argsort(instance.topological).astype(float)
    alone, _ = schedule_of(instance, sequence_of(instance, device, begun))
    sent = np.full((len(instance.producer), 2), np.inf)
    first = inside[instance.producer] == 3
    sent[first, 1] = begun[instance.producer[first]]
    sequence = sequence_of(instance, device, begun, sent)
    latency, times = schedule_of(instance, sequence)
    assert latency > 1.05 * alone
    tried = list(copies(instance, kind, sequence, times, 4, np.random.default_rng(0)))
    assert tried
    assert [schedule_of(instance, copy)[0] for copy in tried] == pytest.approx([latency] * len(tried))


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_schedules(seed: int) -> None:
    """Whatever is copied, each node comes after those that it reads, and memory is enough."""
    case, rng = layers(6, seed), np.random.default_rng(seed)
    device = rng.integers(2, size=len(case.time))
    case.memory[:], case.room = 1.0, np.bincount(device, minlength=2) + 3.0
    instance = case.instance
    sequence = sequence_of(instance, device, np.argsort(instance.topological).astype(float))
    _, times = schedule_of(instance, sequence)
    (found,) = repeated_layers(instance)
    for near in range(len(found.nodes)):
        for copy in copies(instance, found, sequence, times, near, rng):
            place = np.argsort(copy.order)
            tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
            assert (place[instance.reader] > place[instance.producer[tensor]]).all()
            assert is_feasible(instance, copy.device)
            assert np.isfinite(schedule_of(instance, copy)[0])


@pytest.mark.parametrize("seed", range(8))
def test_layers_are_found_whatever_the_order_of_the_file(seed: int) -> None:
    """The same graph with its nodes in random order has the same layers, but for nodes that may change places."""
    case = layers(9, seed)
    rng = np.random.default_rng(seed)
    new = rng.permutation(len(case.time))
    edges = [(int(new[case.producer[t]]), int(new[v])) for t, v in case.reads]
    case.time = case.time[np.argsort(new)]
    case.producer = sorted({u for u, _ in edges})
    case.reads = sorted((case.producer.index(u), v) for u, v in edges)
    (kind,) = repeated_layers(case.instance)
    old = np.argsort(new)[kind.nodes]
    assert kind.nodes.shape[1] == LENGTH
    assert len(kind.nodes) >= 7
    assert (np.diff(np.sort(old, axis=1), axis=0) == LENGTH).all()
    assert (np.sort(old, axis=1) == old.min(axis=1)[:, None] + np.arange(LENGTH)).all()
    assert (np.diff(kind.place[kind.nodes].ravel()) == 1).all()
