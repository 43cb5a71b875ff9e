"""Appendix B of Tarnawski et al. 2020: what must share a device becomes one unit, and nothing is lost."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from placedsl.graph.contraction import backward_orientation, contract, contraction_units
from placedsl.graph.graph import tensors_of_edges, uneven_edges


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, edges of a random acyclic graph (along node numbers), and colours (-1: none)."""
    n = draw(st.integers(1, 9))
    pairs = [p for p in itertools.combinations(range(n), 2) if draw(st.booleans())]
    colours = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    # A colour of -1 is a class of its own, as the problem's labels have it.
    labels = np.array([c if c >= 0 else 10 + i for i, c in enumerate(colours)], dtype=np.int64)
    return n, ends[:, 0], ends[:, 1], labels


def expected_units(n: int, source: np.ndarray, target: np.ndarray, labels: np.ndarray) -> set[frozenset[int]]:
    """Strong components of the edges together with edges both ways within a colour."""
    graph = nx.DiGraph(zip(source.tolist(), target.tolist(), strict=True))
    graph.add_nodes_from(range(n))
    for u, v in itertools.permutations(range(n), 2):
        if labels[u] == labels[v]:
            graph.add_edge(u, v)
    return {frozenset(c) for c in nx.strongly_connected_components(graph)}


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_units(graph: tuple[int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    n, source, target, labels = graph
    unit = contraction_units(n, [labels], source, target)
    found = {frozenset(np.flatnonzero(unit == k).tolist()) for k in range(unit.max() + 1)}
    assert found == expected_units(n, source, target, labels)


@given(graphs(), st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_quotient_keeps_every_cost(graph: tuple[int, np.ndarray, np.ndarray, np.ndarray], seed: int) -> None:
    """The load of any placement of the units, read off the quotient, is that of the nodes on the original graph."""
    n, source, target, labels = graph
    rng = np.random.default_rng(seed)
    cost = rng.integers(1, 3, len(source)).astype(float)
    tensor, producer, first = tensors_of_edges(source, uneven_edges(source, cost, n), n)
    transfer, work, memory = cost[first][None, :], rng.integers(1, 9, (1, n)).astype(float), rng.random(n)
    quotient = contract(
        memory=memory, work=work, groups=[labels], before=source, after=target, tensor_producer=producer,
        read_tensor=tensor, read_node=target, transfer=transfer,
    )  # fmt: skip
    assert nx.is_directed_acyclic_graph(nx.DiGraph(zip(quotient.before.tolist(), quotient.after.tolist(), strict=True)))
    assert quotient.units == quotient.unit_of_node.max() + 1
    inside_unit = rng.random(quotient.units) < 0.5
    inside = inside_unit[quotient.unit_of_node]
    assert np.isclose(quotient.memory[inside_unit].sum(), memory[inside].sum())
    assert np.isclose(quotient.work[0][inside_unit].sum(), work[0][inside].sum())
    # Section 3: a tensor is paid once by a device that makes or reads it and does not hold all who touch it.
    paid = 0.0
    for t in range(len(producer)):
        touching = {int(producer[t]), *target[tensor == t].tolist()}
        sides = {bool(inside[v]) for v in touching}
        paid += transfer[0, t] if len(sides) == 2 else 0.0
    found, seen = 0.0, set()
    for t in range(len(quotient.tensor_producer)):
        pins = quotient.pin_unit[quotient.pin_start[t] : quotient.pin_start[t + 1]]
        assert pins[0] == quotient.tensor_producer[t]
        assert tuple(pins.tolist()) not in seen, "tensors with the same ends are one"
        seen.add(tuple(pins.tolist()))
        found += quotient.transfer[0, t] if len(set(inside_unit[pins].tolist())) == 2 else 0.0
    assert np.isclose(found, paid)


def test_unequal_edges_are_tensors_of_their_own() -> None:
    source, cost = np.array([0, 0, 1, 1]), np.array([2.0, 2.0, 2.0, 3.0])
    tensor, producer, first = tensors_of_edges(source, uneven_edges(source, cost, 3), 3)
    assert tensor[0] == tensor[1]
    assert tensor[2] != tensor[3]
    assert producer[tensor].tolist() == source.tolist()
    assert cost[first[tensor]].tolist() == cost.tolist()


def test_orphaned_backward_nodes_and_orientation() -> None:
    """Forward 0 -> 1 -> 2, backward 5 -> 4 -> 3 with 4 an orphan: the backward edges are turned round, no cycle."""
    backward = np.array([False] * 3 + [True] * 3)
    source, target = np.array([0, 1, 2, 5, 4]), np.array([1, 2, 5, 4, 3])
    colours = np.array([0, 1, 2, 0, 7, 2])
    before, after, way = backward_orientation(
        backward=backward, edge_source=source, edge_target=target, groups=[colours]
    )
    assert way == "against"
    assert set(zip(before.tolist(), after.tolist(), strict=True)) == {(0, 1), (1, 2), (4, 5), (3, 4)}
    unit = contraction_units(6, [colours], before, after)
    assert unit.max() + 1 == 4
    assert unit[0] == unit[3]
    assert unit[2] == unit[5]
    assert len({int(unit[v]) for v in (0, 1, 2, 4)}) == 4
