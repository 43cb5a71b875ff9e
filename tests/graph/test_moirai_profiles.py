"""Profiles of Moirai: times by device, a matrix of transfer times a tensor, and specs for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placedsl import InputError, load, loads
from placedsl.api.spec import Spec
from placedsl.export.workload_spec import spec_of_profile
from placedsl.graph.fusion import fused_graph
from placedsl.graph.readers import read

PROFILE = {
    "description": "two devices",
    "devices": [{"id": 0, "memory": 8}, {"id": 5, "memory": 4}],
    "nodes": [
        {"id": 3, "time": [1, 2], "memory": 3}, {"id": 1, "time": [4, 3], "memory": 2},
        {"id": 7, "time": [1, 1], "memory": 1},
    ],
    "edges": [
        {"source": 3, "target": 1, "transfer": [[0, 10], [20, 0]]},
        {"source": 3, "target": 7, "transfer": [[0, 10], [20, 0]]},
        {"source": 1, "target": 7, "transfer": [[9, 1], [2, 9]]},
    ],
}  # fmt: skip
DEVICES = "device device0: accelerator { memory = 8 B }\ndevice device5: accelerator { memory = 4 B }\n"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(PROFILE), encoding="utf-8")
    return path


def of(profile: Path, devices: str = DEVICES, more: str = "") -> Spec:
    text = f'graph from "profile.json"{more}\n{devices}schedule dataflow\nminimize latency\n'
    return loads(text, profile.parent)


def test_each_edge_is_a_tensor_with_a_matrix(profile: Path) -> None:
    graph = read(profile)
    assert graph.ids == (3, 1, 7)
    assert graph.tensors == 3
    assert graph.tensor_matrix is not None
    assert graph.tensor_matrix[graph.edge_tensor].tolist() == [
        [[0, 10], [20, 0]], [[0, 10], [20, 0]], [[0, 1], [2, 0]],
    ]  # fmt: skip
    assert {name: values.tolist() for name, values in graph.time.items()} == {
        "device0": [1, 4, 1], "device5": [2, 3, 1],
    }  # fmt: skip
    assert graph.memory.tolist() == [3, 2, 1]
    assert graph.deployment == {"device0": 8, "device5": 4}


def test_transfers_take_what_the_profile_says(profile: Path) -> None:
    """3 on device0 sends to 1 on device5 (10), which sends back (2): 1 + 10 + 3 + 2 + 1."""
    found = of(profile).evaluate({"3": "device0", "1": "device5", "7": "device0"})
    assert found.objectives == (17.0,)


def test_its_times_may_be_given_a_unit(profile: Path) -> None:
    found = of(profile, more=" { time_unit = 1 ms }").evaluate({"3": "device5", "1": "device0", "7": "device0"})
    assert found.objectives[0] == pytest.approx(0.002 + 0.020 + 0.004 + 0.001)


def test_its_matrices_follow_fusion(profile: Path) -> None:
    """1 and 7 are one, and the tensor between them is gone."""
    graph = read(profile)
    coarse = fused_graph(graph, np.array([0, 1, 1]), {1: "1+7"}, [], one_kernel=False)
    assert coarse.tensor_matrix is not None
    assert coarse.tensor_matrix.tolist() == [[[0, 10], [20, 0]]] * 2
    assert coarse.edge_target.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("device device5: accelerator\ndevice device0: accelerator\n", "device 'device0' here; the spec has 2"),
        (DEVICES + "device cpu: host\n", "2 devices; the spec has 3, with 'cpu' here"),
        ("device device0: accelerator\n", "2 devices; the spec has 1, with 'device0' here"),
    ],
)
def test_devices_are_those_of_the_file_in_its_order(profile: Path, devices: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        of(profile, devices)
    (found,) = caught.value.diagnostics
    assert message in found.message
    assert found.span is not None
    assert found.hint == "in this order: device0, device5"


def test_a_spec_for_a_profile(profile: Path) -> None:
    text = spec_of_profile(read(profile), profile, profile.parent)
    assert text == (
        "# 3 operators (inference); times are in the workload's own unit.\n"
        'graph from "profile.json"\n\n'
        "device device0: accelerator { memory = 8 B }\n"
        "device device5: accelerator { memory = 4 B }\n\n"
        "schedule dataflow\nminimize latency\nsubject to\n    memory\n    sequential\n    congestion\n"
    )
    assert [r.name for r in loads(text, profile.parent).problem.constraints] == ["memory", "sequential", "congestion"]


@pytest.mark.workloads
@pytest.mark.parametrize(("name", "nodes", "edges"), [
    ("example-1", 14, 19), ("GoogLeNet", 141, 167), ("inceptionv4", 491, 545), ("transformer", 1374, 1820),
])  # fmt: skip
def test_published_profiles(workloads: Path, tmp_path: Path, name: str, nodes: int, edges: int) -> None:
    file = workloads / "moirai" / f"{name}.json"
    root = json.loads(file.read_text(encoding="utf-8"))
    target = tmp_path / "p.place"
    target.write_text(spec_of_profile(read(file), file, tmp_path), encoding="utf-8")
    problem = load(target).problem
    assert (problem.graph.nodes, problem.graph.tensors) == (nodes, edges)
    assert problem.device_to_device is not None
    assert np.array_equal(problem.time, [node["time"] for node in root["nodes"]])
    for k, edge in enumerate(root["edges"][:50]):
        a, b = np.indices((len(root["devices"]),) * 2)
        assert np.array_equal(problem.device_to_device.time(int(problem.graph.edge_tensor[k]), a, b), edge["transfer"])
    # On one device alone nothing is moved, and all runs one after the other.
    alone = load(target).evaluate([0] * nodes)
    assert alone.objectives[0] == pytest.approx(sum(node["time"][0] for node in root["nodes"]))
