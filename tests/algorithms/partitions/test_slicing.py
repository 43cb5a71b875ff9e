"""Segments of orders and their best division, against costs by definition and the plain dynamic program."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
from support.brute_force import best
from support.like_pipelines import like_pipeline

import placedsl
from placedsl.algorithms.baselines.orders import genetic
from placedsl.algorithms.partitions.instance import partition_units, state_of
from placedsl.algorithms.partitions.load_kernel import PartitionInstance
from placedsl.algorithms.partitions.slicing import Slicer
from placedsl.algorithms.partitions.slicing_kernel import Room, best_segments, order_by_priority
from placedsl.arrays import Integers
from placedsl.graph.order import csr

METHODS = ("slicegraph", "random", "brkga", "mla", "mla-weighted")


def costs(instance: PartitionInstance, order: Integers, room: Room) -> dict[tuple[int, int], float]:
    """What each segment of an order costs: by the loads of the partition into the segment and the rest."""
    two = instance._replace(work=instance.work[:2], capacity=instance.capacity[:2], transfer=instance.transfer[:2])
    out = {}
    for first in range(len(order)):
        for last in range(first, len(order)):
            device = np.ones(len(order), dtype=np.int64)
            device[order[first : last + 1]] = 0
            beyond = float(instance.memory[order[first : last + 1]].sum()) + room.reserved - room.capacity
            streamed = beyond * room.per_byte if beyond > 0.0 else 0.0
            out[first, last] = float(state_of(two, device).load[0]) + streamed
    return out


def divided(costs: dict[tuple[int, int], float], units: int, most: int) -> float:
    """The least largest cost of at most so many segments."""
    least = [[np.inf] * (most + 1) for _ in range(units + 1)]
    least[0] = [0.0] * (most + 1)
    for end in range(1, units + 1):
        for k in range(1, most + 1):
            least[end][k] = min(max(least[begin][k - 1], costs[begin, end - 1]) for begin in range(end))
    return least[units][most]


def drawn(seed: int) -> tuple[PartitionInstance, Integers, Room, int]:
    """Units, an order of them, a device's memory, and the most segments."""
    rng = random.Random(f"slicing {seed}")
    units = partition_units(placedsl.loads(like_pipeline(seed)).problem, contiguous=True)
    instance, count = units.instance, len(units.instance.memory)
    earlier, later = csr(units.after, units.before, count), csr(units.before, units.after, count)
    priority = np.array([rng.random() for _ in range(count)])
    order = order_by_priority(*later, earlier[0], priority, rng.random() < 0.5)
    place = np.argsort(order)
    assert (place[units.before] < place[units.after]).all()
    whole = float(instance.memory.sum())
    room = rng.choice([Room(np.inf, 0.0, np.inf), Room(0.6 * whole, 0.0, np.inf), Room(0.5 * whole, 0.1 * whole, 1e-9)])
    return instance, order, room, rng.randint(1, 4)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(1000))
def test_divisions_are_those_of_the_plain_program(seed: int) -> None:
    instance, order, room, most = drawn(seed)
    slicer, units = Slicer(instance, 0, most), len(order)
    every = costs(instance, order, room)
    space = np.empty(units + 1, dtype=np.int64), np.empty(units, dtype=np.int64), np.empty(units, dtype=np.int64)
    segments = slicer.segments(order)
    value, count = best_segments(segments, room, most, slicer.lowest, np.inf, 0.0, *space)
    exact = divided(every, units, most)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-15)
    if np.isfinite(exact):
        ends = sorted(space[2][:count].tolist())
        assert len(ends) <= most
        assert ends[-1] == units - 1
        begins = [0, *(end + 1 for end in ends[:-1])]
        assert max(every[b, e] for b, e in zip(begins, ends, strict=True)) == pytest.approx(value, rel=1e-9, abs=1e-15)
        none, _ = best_segments(segments, room, most, slicer.lowest, exact * (1 - 1e-9), 0.0, *space)
        assert none == np.inf or exact == 0.0


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(200))
def test_the_best_division_of_all_orders_is_the_optimum(seed: int) -> None:
    """As Theorem 3.4 of the paper has it."""
    problem = placedsl.loads(like_pipeline(seed, 2)).problem
    units = partition_units(problem, contiguous=True)
    count = len(units.instance.memory)
    if count > 7:
        pytest.skip("too many orders")
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(zip(units.before.tolist(), units.after.tolist(), strict=True))
    slicer = Slicer(units.instance, 0, 2)
    values = [slicer.slice(np.array(order)) for order in nx.all_topological_sorts(graph)]
    found, exact = min((v.value for v in values if v is not None), default=np.inf), best(problem)
    assert found == pytest.approx(np.inf if exact is None else exact[0], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_never_below_the_optimum(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And on small graphs most of them reach it."""
    from placedsl.algorithms.baselines.orders import brkga, mla, random_orders

    monkeypatch.setattr(random_orders, "ORDERS", 200)
    monkeypatch.setattr(brkga, "GENERATIONS", 5)
    monkeypatch.setattr(mla, "GENERATIONS", 5)
    reached, asked = 0, 0
    for seed in range(40):
        spec = placedsl.loads(like_pipeline(seed))
        exact = best(spec.problem)
        try:
            found = spec.solve(method=method, seed=seed)
        except placedsl.LimitError:
            continue
        assert exact is not None or found.placement is None
        if exact is not None and found.placement is not None:
            asked += 1
            assert found.value >= exact[0] * (1 - 1e-9)
            reached += found.value <= exact[0] * (1 + 1e-9)
    assert asked >= 25
    assert reached >= 0.6 * asked


def test_worst_orders_of_the_paper() -> None:
    """Lemma 3.5: heavy and light operators in turn, and a heavy tensor from the first to the last of an order."""
    k, heavy = 3, 10
    work = [heavy if v % 2 == 0 else 1 for v in range(2 * k)]
    nodes = "\n".join(
        f"    node v{v} {{ time = {{accelerator: {w} s}}, output = {100 if v == 0 else 0} B }}"
        for v, w in enumerate(work)
    )
    spec = placedsl.loads(
        f"graph {{\n{nodes}\n    v0 -> v{2 * k - 1}\n}}\ndevice tpu[{k}]: accelerator\n"
        "interconnect { bandwidth = 1 B/s }\nminimize time_per_sample\nsubject to\n    contiguous\n"
    )
    units = partition_units(spec.problem, contiguous=True)
    sliced = Slicer(units.instance, 0, k).slice(np.arange(2 * k))
    assert sliced is not None
    assert sliced.value == pytest.approx(33.0)
    assert spec.solve().value == pytest.approx(11.0)
    assert spec.solve(method="random").value == pytest.approx(11.0)


def test_the_genetic_algorithm_improves() -> None:
    """Keys whose order is to be that of their places."""
    rng = np.random.default_rng(0)
    asked = []

    def unsorted(keys: np.ndarray) -> np.ndarray:
        asked.append(len(keys))
        return (np.diff(keys, axis=1) < 0.0).sum(axis=1).astype(float)

    best_keys = genetic.evolve(unsorted, 12, 60, 60, rng, lambda: False)
    assert asked[0] == 60
    assert set(asked[1:]) == {48}
    assert (np.diff(best_keys) < 0.0).sum() <= 2


def test_memory_that_nothing_fits_has_no_division() -> None:
    instance, order, _, _ = drawn(1)
    slicer = Slicer(instance, 0, 2)
    slicer.room = slicer.room._replace(capacity=-1.0)
    assert slicer.slice(order) is None
