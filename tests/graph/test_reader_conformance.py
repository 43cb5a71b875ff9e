"""Every registered reader against one suite.  A new reader is given its sample in SAMPLES.

All samples say the same as far as their formats can: three nodes in a chain.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.brute_force import best_by_evaluation

import placedsl
from placedsl.diagnostics import InputError
from placedsl.graph.readers import MODELS, READERS, load_graph, read, recognised
from placedsl.graph.readers.sizes import Size

CHAIN = ((0, 1), (1, 2))


def native() -> bytes:
    nodes = [{"id": i, "time": i + 1, "memory": 4, "output": 8} for i in range(3)]
    root = {"format": "placedsl-graph", "version": 1, "time_unit": "ms", "nodes": nodes}
    return json.dumps(root | {"edges": [{"from": u, "to": v} for u, v in CHAIN]}).encode()


def dnn_partitioning() -> bytes:
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": i + 1.0, "isBackwardNode": 0, "size": 4.0}
        for i in range(3)
    ]
    edges = [{"sourceId": u, "destId": v, "cost": 1.0} for u, v in CHAIN]
    root = {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}
    return json.dumps(root).encode()


def moirai() -> bytes:
    nodes = [{"id": i, "time": [i + 1, i + 2], "memory": 4} for i in range(3)]
    edges = [{"source": u, "target": v, "transfer": [[0, 1], [2, 0]]} for u, v in CHAIN]
    return json.dumps({"devices": [{"id": d, "memory": 100} for d in (0, 1)], "nodes": nodes, "edges": edges}).encode()


def pipedream() -> bytes:
    layer = "node{0} -- Linear({0}) -- forward_compute_time={0}.0, backward_compute_time=0.0, "
    layer += "activation_size=8.0, parameter_size=4.0\n"
    lines = [layer.format(i + 1) for i in range(3)] + [f"\tnode{u + 1} -- node{v + 1}\n" for u, v in CHAIN]
    return "".join(lines).encode()


def piper() -> bytes:
    option = {"id": "plain", "parameterSize": 4, "memoryUsageA": 1, "memoryUsageB": 4}
    ids = range(3)
    nodes = [
        {"id": i, "name": f"layer{i}", "TMPCs": {"1": [{
            **option, "timePerSample": i + 1.0, "syncTimeFw": {str(u): 0 for u, v in CHAIN if v == i},
            "syncTimeBw": {str(v): 0 for u, v in CHAIN if u == i},
        }]}}
        for i in ids
    ]  # fmt: skip
    edges = [{"sourceId": u, "destId": v, "communicationCost": 8} for u, v in CHAIN]
    return json.dumps({"maxDevices": 2, "nodes": nodes, "edges": edges}).encode()


def onnx() -> bytes:
    helper = pytest.importorskip("onnx.helper", reason="the package onnx is not installed")
    tensor = [helper.make_tensor_value_info(name, 1, [64, 64]) for name in ("x", "y")]
    names = ("x", "a", "b", "y")
    nodes = [helper.make_node("Relu", [u], [v], name=v) for u, v in itertools.pairwise(names)]
    graph = helper.make_graph(nodes, "chain", tensor[:1], tensor[1:])
    made: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return made


def hugging_face() -> bytes:
    """An embedding, one layer, a norm and a head."""
    root = {"model_type": "llama", "vocab_size": 64, "hidden_size": 8, "intermediate_size": 8, "torch_dtype": "float32"}
    return json.dumps(root | {"num_hidden_layers": 1, "num_attention_heads": 1}).encode()


def torch_export() -> bytes:
    tensor = {"dtype": 7, "sizes": [{"as_int": 64}, {"as_int": 64}]}
    names = ("x", "a", "b", "y")
    nodes = [
        {"target": "torch.ops.aten.relu.default", "name": v, "metadata": {},
         "inputs": [{"name": "self", "arg": {"as_tensor": {"name": u}}, "kind": 1}],
         "outputs": [{"as_tensor": {"name": v}}]}
        for u, v in itertools.pairwise(names)
    ]  # fmt: skip
    graph = {"inputs": [], "outputs": [], "nodes": nodes, "tensor_values": dict.fromkeys(names, tensor)}
    signature = {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": []}
    root = {"graph_module": {"graph": graph | {"sym_int_values": {}}, "signature": signature}}
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("model/models/model.json", json.dumps(root))
    return held.getvalue()


def aceso() -> bytes:
    headings = "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations\n"
    rows = [f"{name},{i + 1}.0,0.0,1.0,0.5,2.0,1.0\n" for i, name in enumerate(("conv1", "bn1", "fc"))]
    return "".join([headings, *rows]).encode()


#: What a file of each format holds.
SAMPLES: dict[str, Callable[[], bytes]] = {
    "aceso": aceso, "dnn-partitioning": dnn_partitioning, "hugging-face": hugging_face, "moirai": moirai,
    "native": native, "onnx": onnx, "pipedream": pipedream, "piper": piper, "torch-export": torch_export,
}  # fmt: skip
#: Formats whose times are per device, so that a spec names these devices.
DEVICES = {"moirai": "device device0: accelerator { memory = 100 B }\ndevice device1: accelerator { memory = 100 B }\n"}
MACHINE = "device gpu[2]: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 1 GB/s }\n"

#: Formats that need sizes from the spec, and those that have a node more.
SIZES = {"hugging-face": {"batch": Size(2), "length": Size(8)}}
LONGER = {"hugging-face": ((0, 1), (1, 2), (2, 3))}

#: Formats whose operators have options: stages are asked for.
OPTIONS = {"piper": "parallelism { data = 1 }\nsubject to contiguous\n"}

every_reader = pytest.mark.parametrize("name", READERS)


@pytest.fixture
def sample(name: str, tmp_path: Path) -> Path:
    """The sample as a file, whose name says nothing of its format."""
    path = tmp_path / "graph"
    path.write_bytes(SAMPLES[name]())
    return path


def test_every_reader_has_a_sample() -> None:
    assert set(SAMPLES) == set(READERS)


@every_reader
def test_the_format_is_recognised_by_its_content(name: str, sample: Path) -> None:
    assert recognised(load_graph(sample)) == name


@every_reader
def test_the_graph_is_the_chain(name: str, sample: Path) -> None:
    """Its forward part is, where the format adds a backward pass to each layer."""
    graph = read(sample, None, SIZES.get(name))
    assert graph.nodes == len(graph.ids) == len(graph.names)
    forward = np.flatnonzero(~graph.backward).tolist()
    edges = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    assert sorted((u, v) for u, v in edges if {u, v} <= {*forward}) == [
        (forward[u], forward[v]) for u, v in LONGER.get(name, CHAIN)
    ]
    assert (graph.tensor_producer[graph.edge_tensor] == graph.edge_source).all()
    for values in (graph.memory, graph.backward, *graph.time.values(), *graph.attributes.values()):
        assert len(values) == graph.nodes
    assert (graph.memory >= 0).all()
    assert graph.backward.any() == (name in ("aceso", "pipedream"))
    assert read(sample, name, SIZES.get(name)).ids == graph.ids, "named as recognised"


@pytest.mark.sampled(1)
@every_reader
def test_a_spec_over_the_graph_is_solved(name: str, sample: Path) -> None:
    unit = " { time_unit = 1 s }" if name in OPTIONS else ""
    if name in SIZES:
        unit = " { " + ", ".join(f"{word} = {size.value}" for word, size in SIZES[name].items()) + " }"
    text = f'graph from "graph"{unit}\n{DEVICES.get(name, MACHINE)}interconnect {{ bandwidth = 1 GB/s }}\n'
    goal = "schedule dataflow\nminimize latency\n" if name in DEVICES else "minimize time_per_sample\n"
    spec = placedsl.loads(text + goal + OPTIONS.get(name, ""), sample.parent)
    answer = spec.solve(workers=1)
    assert answer.termination == "optimal", answer.message
    assert np.isfinite(answer.value)
    assert answer.value > 0
    if name not in {*DEVICES, *OPTIONS}:
        least = best_by_evaluation(spec.problem)
        assert least is not None
        assert answer.value == pytest.approx(least[0], rel=1e-6)


@every_reader
def test_part_of_a_file_is_refused_or_is_a_graph(name: str, sample: Path) -> None:
    """Cut anywhere: errors with messages and, in texts, places; nothing else is raised."""
    whole = sample.read_bytes()
    errors = []
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        sample.write_bytes(whole[:length])
        try:
            read(sample, name, SIZES.get(name))
        except InputError as error:
            errors.append(error)
    assert len(errors) >= 2
    found = [diagnostic for error in errors for diagnostic in error.diagnostics]
    assert all(diagnostic.message for diagnostic in found)
    assert name in MODELS or all(diagnostic.span is not None for diagnostic in found)


@every_reader
def test_files_of_other_formats_are_refused(name: str, tmp_path: Path) -> None:
    for other in set(READERS) - {name}:
        path = tmp_path / other
        path.write_bytes(SAMPLES[other]())
        with pytest.raises(InputError):
            read(path, name, SIZES.get(name))
