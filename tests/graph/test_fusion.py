"""Which operators are fused, and what the graph of fused operators is."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from placedsl.diagnostics import Source
from placedsl.graph.fusion import fused_graph, matches
from placedsl.graph.graph import Graph
from placedsl.graph.order import topological
from placedsl.graph.readers import read

#: Table I of the Moirai paper.
TABLE = [["conv", "bn"], ["conv", "bn", "relu"], ["conv", "bn", "add", "relu"]]


def graph_of(types: dict[str, str], edges: list[tuple[str, str]], **more: dict[str, object]) -> Graph:
    """A graph of operators by id and type; ``more`` has further fields of single nodes."""
    nodes = [
        {"id": i, "time": 1, "output": 8, "attributes": {"type": kind}} | more.get(i, {}) for i, kind in types.items()
    ]
    root = {
        "format": "placedsl-graph", "time_unit": "s", "nodes": nodes,
        "edges": [{"from": u, "to": v} for u, v in edges],
    }  # fmt: skip
    return read(Source("<graph>", json.dumps(root)))


def chained(*chains: str) -> list[tuple[str, str]]:
    """The edges of ``a b c``."""
    return [edge for chain in chains for edge in zip(chain.split(), chain.split()[1:], strict=False)]


def groups(graph: Graph, rules: list[list[str]]) -> set[tuple[str, ...]]:
    """The ids of what is fused."""
    unit = matches(graph, rules).unit
    members = [tuple(str(graph.ids[v]) for v in np.flatnonzero(unit == u)) for u in np.unique(unit)]
    return {one for one in members if len(one) > 1}


#: Figure 7 of the paper: add, relu, add, relu above, conv, bn, conv, bn below; both end in add, relu.
FIGURE = graph_of(
    {
        "add": "add", "relu": "relu", "add2": "add", "relu2": "relu", "conv1": "conv", "bn1": "bn", "conv2": "conv",
        "bn2": "bn", "add3": "add", "relu3": "relu",
    },
    chained("add relu add2 relu2 add3 relu3", "add conv1 bn1 conv2 bn2 add3"),
)  # fmt: skip


def test_the_example_of_the_paper() -> None:
    """The first add has two readers, the second add and relu match only a part of a rule: neither is fused."""
    assert groups(FIGURE, TABLE) == {("conv1", "bn1"), ("conv2", "bn2", "add3", "relu3")}
    assert matches(FIGURE, TABLE).counts == (1, 0, 1)


def test_case_of_types_does_not_matter() -> None:
    graph = graph_of({"a": "Conv", "b": "BN"}, chained("a b"))
    assert groups(graph, [["conv", "Bn"]]) == {("a", "b")}


def test_the_longest_rule_wins_however_they_are_written() -> None:
    graph = graph_of({"a": "conv", "b": "bn", "c": "relu"}, chained("a b c"))
    assert groups(graph, TABLE) == groups(graph, TABLE[::-1]) == {("a", "b", "c")}
    # 'a' begins a shorter match, yet the longer one is taken.
    four = graph_of({"a": "x", "b": "y", "c": "z", "d": "w"}, chained("a b c d"))
    assert groups(four, [["x", "y"], ["y", "z", "w"]]) == {("b", "c", "d")}


def test_an_operator_with_several_readers_is_fused_with_none() -> None:
    graph = graph_of({"a": "conv", "b": "bn", "c": "bn"}, chained("a b", "a c"))
    assert groups(graph, TABLE) == set()


def test_a_reader_with_several_inputs_is_fused_with_the_first() -> None:
    """Both branches of a residual block could take the add; the first one does, the other keeps the shorter rule."""
    types = {"c1": "conv", "b1": "bn", "c2": "conv", "b2": "bn", "add": "add", "relu": "relu"}
    graph = graph_of(types, chained("c1 b1 add relu", "c2 b2 add"))
    assert groups(graph, TABLE) == {("c1", "b1", "add", "relu"), ("c2", "b2")}


def test_a_type_that_stands_twice_in_a_rule() -> None:
    graph = graph_of(dict.fromkeys("abcde", "relu"), chained("a b c d e"))
    assert groups(graph, [["relu", "relu"]]) == {("a", "b"), ("c", "d")}


def test_forward_and_backward_operators_are_not_fused() -> None:
    graph = graph_of({"a": "conv", "b": "bn"}, chained("a b"), b={"backward": True})
    assert groups(graph, TABLE) == set()


def fused(graph: Graph, rules: list[list[str]]) -> Graph:
    """The graph of what the rules fuse."""
    found = matches(graph, rules)
    ids = {int(u): "+".join(str(graph.ids[v]) for v in np.flatnonzero(found.unit == u)) for u in np.unique(found.unit)}
    return fused_graph(graph, found.unit, ids, [("rules", sum(found.counts))], one_kernel=True)


def test_what_a_fused_operator_costs() -> None:
    graph = graph_of(
        {"in": "input", "a": "conv", "b": "bn", "out": "output"}, chained("in a b out"),
        a={"memory": 5, "time": {"accelerator": 3, "host": 9}, "flops": 70, "bytes": 30,
           "attributes": {"type": "conv", "layer": 1}},
        b={"memory": 2, "time": {"accelerator": 1}, "output": 4, "flops": 8, "bytes": 40,
           "attributes": {"type": "bn", "layer": 2}},
    )  # fmt: skip
    coarse = fused(graph, TABLE)
    assert coarse.ids == ("in", "a+b", "out")
    assert coarse.memory.tolist() == [0, 7, 0]
    assert coarse.time["accelerator"].tolist() == [1, 4, 1]
    assert coarse.time["host"].tolist() == [1, np.inf, 1]
    assert coarse.attributes["type"].tolist() == ["input", "conv+bn", "output"]
    assert coarse.attributes["flops"][1] == 78
    # The 8 bytes between them are neither written nor read.
    assert coarse.attributes["bytes"][1] == 70 - 2 * 8
    assert coarse.tensor_bytes.tolist() == [8, 4]
    assert coarse.edge_source.tolist() == [0, 1]
    assert coarse.edge_target.tolist() == [1, 2]
    assert coarse.fusion is not None
    assert dict(coarse.fusion.unclear) == {"layer": "a+b"}
    assert coarse.fusion.tensor_of.tolist() == [0, -1, 1]
    assert coarse.members([1]) == [1, 2]
    assert coarse.spread("xyz") == ["x", "y", "y", "z"]


def test_a_tensor_that_two_members_read_is_read_once() -> None:
    graph = graph_of(
        {"in": "input", "a": "conv", "b": "bn", "out": "relu"}, chained("in a b out", "in b", "in out")
    )  # fmt: skip
    coarse = fused(graph, [["conv", "bn"]])
    assert sorted(zip(coarse.edge_source.tolist(), coarse.edge_target.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    """Fused operators are chains that a rule describes, nothing more can be fused, and no cycle comes about."""
    draw = random.Random(seed)
    size = draw.randint(5, 40)
    names = [f"v{i}" for i in range(size)]
    draw.shuffle(names)
    types = {name: draw.choice("pqr") for name in sorted(names)}
    edges = [
        (names[i], names[j]) for i in range(size) for j in range(i + 1, size)
        if j == i + 1 or draw.random() < 0.5 / size
    ]  # fmt: skip
    edges = [edge for edge in edges if draw.random() < 0.8]
    rules = [[draw.choice("pqr") for _ in range(draw.randint(2, 4))] for _ in range(4)]
    graph = graph_of(types, edges)
    unit = matches(graph, rules).unit
    readers = {name: [v for u, v in edges if u == name] for name in names}
    alone = set(names)
    for u in np.unique(unit):
        members = [str(graph.ids[v]) for v in np.flatnonzero(unit == u)]
        if len(members) == 1:
            continue
        alone -= set(members)
        chain = [next(m for m in members if not any(m in readers[w] for w in members))]
        while len(chain) < len(members):
            (only,) = readers[chain[-1]]
            chain.append(only)
        assert set(chain) == set(members)
        assert [types[name] for name in chain] in rules
    for name in alone:
        chain = [name]
        while len(readers[chain[-1]]) == 1 and readers[chain[-1]][0] in alone:
            chain.append(readers[chain[-1]][0])
            assert [types[one] for one in chain] not in rules
    coarse = fused(graph, rules)
    assert topological(coarse.nodes, coarse.edge_source, coarse.edge_target) is not None
    assert coarse.time["host"].sum() == size
    assert coarse.fusion is not None
    for k, (u, v) in enumerate(zip(graph.edge_source, graph.edge_target, strict=True)):
        ends = coarse.fusion.node_of[u], coarse.fusion.node_of[v]
        tensor = coarse.fusion.tensor_of[graph.edge_tensor[k]]
        assert ends[0] == ends[1] or ((coarse.edge_tensor == tensor) & (coarse.edge_target == ends[1])).sum() == 1
        assert ends[0] == ends[1] or coarse.tensor_producer[tensor] == ends[0]
