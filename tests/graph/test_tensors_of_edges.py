"""Which tensors a graph has: one of each node that its edges share, one of each edge with a size of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.brute_force import time_per_sample

import placedsl
from placedsl import loads
from placedsl.graph.graph import Graph

REST = """
device gpu[2]: accelerator
device cpu: host
link gpu <-> cpu { bandwidth = 1 GB/s, latency = %s }
minimize time_per_sample
subject to
    home:  a on gpu[1]
    apart: forall v in {b, c, d}: v on gpu[2]
"""
DATAFLOW = "schedule dataflow\n"
#: Sizes in GB by node or edge; a -> b and a -> c say nothing.
Own = dict[str, float]


def inline(own: Own, latency: str = "0 s") -> str:
    """``a`` is read by ``b``, ``c`` and ``d``."""
    entry = {name: f", output = {size} GB" for name, size in own.items()}
    nodes = "".join(f"    node {name} {{ time = 1 s{entry.get(name, '')} }}\n" for name in "abcd")
    chain = {name: f" {{ output = {size} GB }}" for name, size in own.items()}
    edges = "".join(f"    a -> {name}{chain.get('a' + name, '')}\n" for name in "bcd")
    return f"graph {{\n{nodes}{edges}}}" + REST % latency


def from_file(own: Own, folder: Path, latency: str = "0 s") -> str:
    """The same as a file."""
    sizes = {name: {"output": size * 1e9} for name, size in own.items()}
    nodes = [{"id": name, "time": 1} | sizes.get(name, {}) for name in "abcd"]
    edges = [{"from": "a", "to": name} | sizes.get("a" + name, {}) for name in "bcd"]
    root = {"format": "placedsl-graph", "time_unit": "s", "nodes": nodes, "edges": edges}
    (folder / "graph.json").write_text(json.dumps(root), encoding="utf-8")
    return 'graph from "graph.json"' + REST % latency


def written(graph: Graph) -> dict[str, tuple[float, str]]:
    """Bytes and readers of each tensor, by name."""
    return {
        name: (
            float(graph.tensor_bytes[t]),
            "".join(graph.names[v] for v in sorted(graph.edge_target[graph.edge_tensor == t])),
        )
        for t, name in enumerate(graph.tensor_names)
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("own", "seconds", "tensors"),
    [
        ({"a": 2, "ad": 1}, 6, {"a for b, c": (2e9, "bc"), "a for d": (1e9, "d")}),
        # An own tensor is never the node's, however large.
        ({"a": 2, "ad": 2}, 7, {"a for b, c": (2e9, "bc"), "a for d": (2e9, "d")}),
        ({"ab": 1, "ac": 1, "ad": 1}, 6, {"a for b": (1e9, "b"), "a for c": (1e9, "c"), "a for d": (1e9, "d")}),
        ({"ab": 1}, 4, {"a for c, d": (0, "cd"), "a for b": (1e9, "b")}),
        ({"a": 2}, 5, {"a": (2e9, "bcd")}),
    ],
)
@pytest.mark.parametrize("method", ["auto", "program"])
def test_edges_share_the_output_of_their_node(
    own: Own, seconds: float, tensors: dict[str, tuple[float, str]], method: str, tmp_path: Path
) -> None:
    """gpu[2] runs three nodes of a second and reads every tensor of ``a`` once."""
    for text in (inline(own), from_file(own, tmp_path)):
        spec = loads(text, tmp_path)
        assert written(spec.problem.graph) == tensors
        answer = spec.solve(method=method)
        assert answer.placement == (0, 1, 1, 1)
        assert answer.value == pytest.approx(seconds)
        assert time_per_sample(spec.problem, np.array([[0, 1, 1, 1]]))[0] == pytest.approx(seconds)


@pytest.mark.parametrize("own", [{}, {"ad": 0}])
def test_a_tensor_without_a_size_moves_for_nothing(own: Own, tmp_path: Path) -> None:
    """Not even for the latency of the link, which a tensor of 0 bytes pays."""
    seconds = 1 if own else 0
    for text in (inline(own, "1 s"), from_file(own, tmp_path, "1 s")):
        problem = loads(text, tmp_path).problem
        assert problem.transfer[:, :2].max() == seconds
        assert loads(text, tmp_path).solve().value == 3 + seconds
        operators = loads(DATAFLOW + text.replace("minimize time_per_sample", "minimize latency"), tmp_path)
        assert operators.solve().value == 2 + 2 * seconds  # two hops


def test_tensors_without_a_size_need_no_link() -> None:
    text = """
graph {
    node a { time = 1 s }
    node b { time = 1 s }
    a -> b
}
device gpu[2]: accelerator
minimize time_per_sample
"""
    assert loads(text).solve().value == 1


def test_networkx_graphs_keep_own_sizes() -> None:
    import networkx

    drawn = networkx.DiGraph()
    for name in "abcd":
        drawn.add_node(name, time="1 s", output="1 GB")
    drawn.add_edges_from([("a", "b"), ("a", "c")])
    drawn.add_edge("a", "d", output="1 GB")
    model = placedsl.Model()
    model.graph(drawn)
    model.device("gpu", "accelerator")
    model.interconnect(bandwidth="1 GB/s")
    model.minimize("time_per_sample")
    graph = model.spec().problem.graph
    assert written(graph) == {"a for b, c": (1e9, "bc"), "a for d": (1e9, "d")}
