"""What the readers make of well-formed files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placedsl import loads
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read

REST = """
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
link gpu <-> cpu { bandwidth = 1 GiB/s }
minimize time_per_sample
"""
INLINE = """
graph {
    node embed { time = {accelerator: 4 ms, host: 9 ms}, memory = 2 GiB, output = 8 MiB, depth = 1, part = "low" }
    node left  { time = {gpu: 6 ms}, memory = 3 GiB, output = 8 MiB, depth = 2 }
    node right { time = 5 ms, output = 1 MiB }
    node head  { time = {host: 1 ms}, backward = true }
    embed -> left -> head
    embed -> right
    right -> head { output = 4 MiB }
    left -> right { transfer = 2 ms }
}
"""
MEBI = 2**20
JSON = {
    "format": "placedsl-graph", "version": 1, "time_unit": "ms",
    "nodes": [
        {"id": "embed", "time": {"accelerator": 4, "host": 9}, "memory": 2048 * MEBI, "output": 8 * MEBI,
         "attributes": {"depth": 1, "part": "low"}},
        {"id": "left", "time": {"gpu": 6}, "memory": 3072 * MEBI, "output": 8 * MEBI, "attributes": {"depth": 2}},
        {"id": "right", "time": 5, "output": MEBI},
        {"id": "head", "time": {"host": 1}, "backward": True},
    ],
    "edges": [
        {"from": "embed", "to": "left"}, {"from": "left", "to": "head"}, {"from": "embed", "to": "right"},
        {"from": "right", "to": "head", "output": 4 * MEBI}, {"from": "left", "to": "right", "transfer": 2},
    ],
}  # fmt: skip


def comparable(graph: Graph) -> dict[str, object]:
    edges = list(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    tensor = graph.edge_tensor.tolist()
    return {
        "ids": graph.ids,
        "time": {k: v.tolist() for k, v in sorted(graph.time.items())},
        "memory": graph.memory.tolist(),
        "backward": graph.backward.tolist(),
        "depth": np.nan_to_num(graph.attributes["depth"].astype(float), nan=-1).tolist(),
        "part": graph.attributes["part"].tolist(),
        "edges": sorted(
            (
                *e,
                float(np.nan_to_num(graph.tensor_time[t], nan=-1)),
                float(np.nan_to_num(graph.tensor_bytes[t], nan=-1)),
            )
            for e, t in zip(edges, tensor, strict=True)
        ),
        "tensors": graph.tensors,
        "seconds": graph.time_in_seconds,
    }


def test_inline_and_json_are_twins(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(JSON), encoding="utf-8")
    inline = loads(INLINE + REST).problem
    from_file = loads('graph from "graph.json"' + REST, tmp_path).problem
    assert comparable(inline.graph) == comparable(from_file.graph)
    assert inline.time.tolist() == from_file.time.tolist()
    assert inline.transfer.tolist() == from_file.transfer.tolist()


def test_tensors_and_transfers() -> None:
    """One tensor a node, and one for each edge that has its own; bytes over bandwidth, or the time that is given."""
    problem = loads(INLINE + REST).problem
    graph = problem.graph
    by_producer = {name: int((graph.tensor_producer == i).sum()) for i, name in enumerate(graph.names)}
    assert by_producer == {"embed": 1, "left": 2, "right": 1, "head": 0}
    found = {
        (graph.names[u], graph.names[v]): problem.transfer[t, 0]
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
    }
    assert found["embed", "left"] == pytest.approx(8 / 1024)
    assert found["embed", "right"] == pytest.approx(8 / 1024)
    assert found["right", "head"] == pytest.approx(4 / 1024)
    assert found["left", "right"] == pytest.approx(2e-3)
    assert (problem.transfer[:, 2] == 0).all()


def test_time_by_family_kind_and_not_at_all() -> None:
    problem = loads(INLINE + REST).problem
    time = dict(zip(problem.graph.names, problem.time.tolist(), strict=True))
    assert time["embed"] == [4e-3, 4e-3, 9e-3]
    assert time["left"] == [6e-3, 6e-3, np.inf]
    assert time["right"] == [5e-3] * 3
    assert time["head"] == [np.inf, np.inf, 1e-3]


def test_time_unit_of_a_file_without_one(tmp_path: Path) -> None:
    plain = {"format": "placedsl-graph", "nodes": [{"id": 1, "time": 3, "transfer": 2}], "edges": []}
    (tmp_path / "graph.json").write_text(json.dumps(plain), encoding="utf-8")
    without = loads('graph from "graph.json"' + REST, tmp_path).problem
    assert not without.graph.time_in_seconds
    assert without.time[0, 0] == 3
    given = loads('graph from "graph.json" { time_unit = 2 ms }' + REST, tmp_path).problem
    assert given.graph.time_in_seconds
    assert given.time[0, 0] == pytest.approx(6e-3)


PROFILE = """\
node1 -- Input0 -- forward_compute_time=3.0, backward_compute_time=0.0, activation_size=10.0, parameter_size=0.0
node2 -- LSTM(a) -- forward_compute_time=2.0, backward_compute_time=5.0, activation_size=[4; 6], parameter_size=7.0
node3 -- Linear -- forward_compute_time=1.0, backward_compute_time=1.5, activation_size=2.0, parameter_size=1.0
\tnode1 -- node2
\tnode2 -- node3
"""


def test_pipedream_profile(tmp_path: Path) -> None:
    """Layers become a forward and a backward node; milliseconds; gradients run the other way."""
    path = tmp_path / "graph.txt"
    path.write_text(PROFILE, encoding="utf-8")
    graph = read(path)
    assert graph.ids == ("node1", "node2", "node3", "node2.backward", "node3.backward")
    assert graph.time["accelerator"].tolist() == pytest.approx([0, 2e-3, 1e-3, 5e-3, 1.5e-3])
    assert graph.memory.tolist() == [10, 17, 3, 17, 3]
    edges = {(graph.ids[u], graph.ids[v]) for u, v in zip(graph.edge_source, graph.edge_target, strict=True)}
    assert edges == {
        ("node1", "node2"), ("node2", "node3"), ("node3.backward", "node2.backward"), ("node3", "node3.backward"),
    }  # fmt: skip
    assert graph.backward.tolist() == [False] * 3 + [True] * 2
    assert graph.attributes["layer"].tolist() == ["node1", "node2", "node3", "node2", "node3"]


@pytest.mark.workloads
def test_published_workloads_read(workloads: Path) -> None:
    files = sorted((workloads / "dnn-partitioning" / "throughput-inputs").rglob("*.json"))
    assert len(files) >= 12
    for file in files:
        root = json.loads(file.read_text(encoding="utf-8"))
        graph = read(file)
        assert graph.nodes == len(root["nodes"]), file.name
        assert len(graph.edge_source) == len({(e["sourceId"], e["destId"]) for e in root["edges"]}), file.name
        supported = [n["fpgaLatency"] for n in root["nodes"] if n["supportedOnFpga"]]
        finite = graph.time["accelerator"][np.isfinite(graph.time["accelerator"])]
        assert finite.sum() == pytest.approx(sum(supported)), file.name
        assert graph.deployment["accelerators"] == root["maxFPGAs"], file.name
