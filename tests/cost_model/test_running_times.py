"""Times that are estimated from operations and bytes, and profiles that go before them."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.onnx_models import model

from placedsl import InputError, loads
from placedsl.api.spec import Spec
from placedsl.cli.main import main

INLINE = """graph {
    node a { flops = 3 GFLOP, bytes = 20 MB, output = 1 MB }
    node b { flops = 1 GFLOP, bytes = 200 MB, output = 1 MB }
    node c { time = {accelerator: 4 ms}, flops = 9 GFLOP }
    node d { bytes = 50 MB }
    node e { flops = 2 GFLOP }
    node f { flops = 0 FLOP, bytes = 0 B }
    a -> b -> c -> d -> e -> f
}
"""
MACHINE = """device gpu: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 100 GB/s, launch_overhead = 10 us }
device cpu: host { compute = 100 GFLOP/s, memory_bandwidth = 20 GB/s }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
"""


def test_roofline_by_hand() -> None:
    problem = loads(INLINE + MACHINE).problem
    gpu = [3e-3, 2e-3, 4e-3, 0.5e-3, 2e-3, 0]
    overhead = [1e-5, 1e-5, 0, 1e-5, 1e-5, 0]  # neither what is given nor what does nothing is launched
    assert problem.time[:, 0].tolist() == pytest.approx(np.add(gpu, overhead))
    assert problem.time[:, 1].tolist() == pytest.approx([30e-3, 10e-3, np.inf, 2.5e-3, 20e-3, 0])
    assert problem.measured[:, 0].tolist() == [False, False, True, False, False, False]
    assert "1 of 11 times are given, the rest are estimated from operations and bytes" in problem.notes


def test_expressions_may_ask_for_all_of_it() -> None:
    text = (
        INLINE
        + MACHINE
        + """subject to
    work:  forall d in devices: sum(v in nodes where v.flops >= 1 GFLOP: v.flops * (v on d)) <= 16 GFLOP
    moved: sum(v in {b}, d in devices: v.bytes * (v on d)) <= 300 MB
    sure:  forall v in nodes where v == c: v.measured[gpu] => v on gpu
    rest:  count(v in nodes: v.measured[gpu] and v on gpu) <= 1
""".replace("where v.flops >= 1 GFLOP", "where v in {a, b, e}").replace("where v == c", "where v in {c}")
    )
    answer = loads(text).solve()
    assert answer.evaluation is not None
    assert not answer.evaluation.violations


@pytest.mark.parametrize(
    ("cpu", "message"),
    [
        ("host", "'cpu' has no 'compute' and 'memory_bandwidth'"),
        ("host { compute = 1 TFLOP/s }", "'cpu' has no 'memory_bandwidth'"),
        ("host { compute = 0 TFLOP/s, memory_bandwidth = 1 GB/s }", "'cpu' has no 'compute'"),
    ],
)
def test_a_device_without_rates(cpu: str, message: str) -> None:
    text = INLINE + MACHINE.replace("host { compute = 100 GFLOP/s, memory_bandwidth = 20 GB/s }", cpu)
    with pytest.raises(InputError) as caught:
        loads(text)
    (only,) = caught.value.diagnostics
    assert only.message.startswith(message + ":")
    assert only.span is not None
    assert (only.span.line, only.span.column) == (11, 8)


def test_a_graph_of_operations_alone_needs_no_memory_bandwidth() -> None:
    machine = "device gpu: accelerator { compute = 1 TFLOP/s }\nminimize time_per_sample\n"
    text = "graph {\n    node a { flops = 3 GFLOP }\n}\n" + machine
    assert loads(text).problem.time.tolist() == [[3e-3]]


def test_what_is_fused_is_estimated_as_one_where_nothing_is_measured(tmp_path: Path) -> None:
    """A chain loses what writing and reading its inner tensors takes; groups by attribute run one after the other."""
    nodes = """graph {
    node a { flops = 3 GFLOP, bytes = 20 MB, output = 4 MB, type = "conv", layer = 1 }
    node b { flops = 1 GFLOP, bytes = 200 MB, output = 4 MB, type = "relu", layer = 1 }
    node c { time = {gpu: 5 ms}, flops = 1 GFLOP, output = 4 MB, type = "conv", layer = 2 }
    node d { flops = 1 GFLOP, bytes = 10 MB, type = "relu", layer = 2 }
    a -> b -> c -> d
}
"""
    gpu = "device gpu: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 100 GB/s, launch_overhead = 10 us }\n"
    rest = gpu + "interconnect { bandwidth = 16 GB/s }\nminimize time_per_sample\n"
    apart = [3.01e-3, 2.01e-3, 5e-3, 1.01e-3]
    assert loads(nodes + rest).problem.time[:, 0].tolist() == pytest.approx(apart)
    kernels = loads(nodes + "fuse conv + relu\n" + rest).problem
    assert kernels.time[:, 0].tolist() == pytest.approx([max(4e-3, 212e-5) + 1e-5, apart[2] + apart[3]])
    layers = loads(nodes + "fuse by layer\n" + rest).problem
    assert layers.time[:, 0].tolist() == pytest.approx([apart[0] + apart[1], apart[2] + apart[3]])
    assert not kernels.measured.any()
    assert "1 of 4 times are given, the rest are estimated from operations and bytes" in kernels.notes


def document(nodes: object, **more: object) -> str:
    return json.dumps({"format": "placedsl-graph", "nodes": nodes, "edges": [], **more})


def test_the_projects_own_files(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(document([{"id": 1, "flops": 3e9, "bytes": 1e6}]), encoding="utf-8")
    assert loads('graph from "g.json"\n' + MACHINE, tmp_path).problem.time[0].tolist() == pytest.approx(
        [3.01e-3, 30e-3]
    )
    mixed = [{"id": 1, "flops": 3e9, "bytes": 1e6}, {"id": 2, "time": 3}]
    (tmp_path / "g.json").write_text(document(mixed), encoding="utf-8")
    with pytest.raises(InputError, match="times without a unit, and others are estimated in seconds"):
        loads('graph from "g.json"\n' + MACHINE, tmp_path)
    loaded = loads('graph from "g.json" { time_unit = 1 ms }\n' + MACHINE, tmp_path)
    assert loaded.problem.time[:, 0].tolist() == pytest.approx([3.01e-3, 3e-3])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"id": 1, "flops": -1}, "'flops' is negative"),
        ({"id": 1, "bytes": "many"}, "'bytes' is a number"),
        ({"id": 1, "time": 1, "attributes": {"flops": 3}}, "'flops' stands beside 'time'"),
        ({"id": 1}, "this node has no 'time'"),
    ],
)
def test_malformed_work(node: object, message: str, tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(document([node]), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        loads('graph from "g.json"\n' + MACHINE, tmp_path)


NODES = [
    {"id": "conv 1", "flops": 1e9, "bytes": 1e6, "attributes": {"type": "Conv"}},
    {"id": "conv 2", "flops": 2e9, "bytes": 1e6, "attributes": {"type": "Conv"}},
    {"id": "head[1]", "flops": 4e9, "bytes": 1e6, "attributes": {"type": "Gemm"}},
]


def profiled(tmp_path: Path, text: str, name: str = "p.json", machine: str = MACHINE, graph: str = "") -> Spec:
    """The spec of three nodes with a profile."""
    (tmp_path / "g.json").write_text(graph or document(NODES), encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    return loads(f'graph from "g.json" {{ profile = "{name}" }}\n{machine}', tmp_path)


def profile(*times: object, **more: object) -> str:
    return json.dumps({"format": "placedsl-profile", "time_unit": "ms", "times": times, **more})


def test_a_profile_goes_before_estimates_where_it_says_something(tmp_path: Path) -> None:
    text = profile({"node": "conv 1", "time": {"gpu": 5}}, {"type": "Conv", "time": {"accelerator": 7, "cpu": 70}})
    problem = profiled(tmp_path, text).problem
    assert problem.time[:, 0].tolist() == pytest.approx([5e-3, 7e-3, 4.01e-3])
    assert problem.time[:, 1].tolist() == pytest.approx([70e-3, 70e-3, 40e-3])
    assert "4 of 6 times are measured, the rest are estimated from operations and bytes" in problem.notes


def test_the_more_particular_goes_first(tmp_path: Path) -> None:
    """A name before a pattern of names before a type; a device before its family before its kind."""
    machine = MACHINE.replace("device gpu:", "device gpu[2]:")
    rows = [
        {"node": "conv 1", "time": {"accelerator": 1}}, {"node": "conv *", "time": {"accelerator": 2}},
        {"type": "Con?", "time": {"accelerator": 3}}, {"type": "Gemm", "time": {"gpu[2]": 4}},
        {"node": "head[1]", "time": {"gpu": 5}}, {"node": "head*", "time": {"accelerator": 6}},
    ]  # fmt: skip
    for _ in range(5):
        random.shuffle(rows)
        problem = profiled(tmp_path, profile(*rows), machine=machine).problem
        assert problem.time[:, :2].tolist() == pytest.approx(np.array([[1, 1], [2, 2], [5, 4]]) / 1e3)


def test_a_whole_profile_needs_no_rates(tmp_path: Path) -> None:
    rows = [{"node": "*", "time": {"accelerator": 2, "host": 3}}]
    problem = profiled(
        tmp_path, profile(*rows), machine="device gpu: accelerator\ndevice cpu: host\nminimize time_per_sample\n"
    )
    assert problem.problem.time.tolist() == [[2e-3, 3e-3]] * 3
    assert problem.problem.measured.all()


def test_tables(tmp_path: Path) -> None:
    text = "type,node,device,time\nConv,,gpu,7 ms\n\n,conv 1,gpu,5 ms\nGemm,,cpu, 2 s\n"
    problem = profiled(tmp_path, text, "p.csv").problem
    assert problem.time[:, 0].tolist() == pytest.approx([5e-3, 7e-3, 4.01e-3])
    assert problem.time[2, 1] == 2


def test_a_profile_in_the_graphs_own_unit(tmp_path: Path) -> None:
    graph = document([{"id": 1, "time": 3}, {"id": 2, "time": 4}])
    rows = [{"node": 2, "time": {"gpu": 9}}]
    text = profile(*rows).replace('"time_unit": "ms", ', "")
    assert profiled(tmp_path, text, graph=graph).problem.time[:, 0].tolist() == [3, 9]
    with pytest.raises(InputError, match="the graph's times have no unit, these do"):
        profiled(tmp_path, profile(*rows), graph=graph)
    with pytest.raises(InputError, match="the graph's times have no unit, this is time"):
        profiled(tmp_path, "node,device,time\n2,gpu,9 ms\n", "p.csv", graph=graph)


def test_times_of_what_reading_folded_away_are_counted_in_a_note(tmp_path: Path) -> None:
    """A profiler times every operator of the file, those on constants among them."""
    constants = [numpy_helper.from_array(np.ones(2, np.float32), name) for name in ("p", "q")]
    nodes = [helper.make_node("Neg", ["p"], ["u"], name="neg"), helper.make_node("Exp", ["u"], ["v"], name="exp"),
             helper.make_node("Add", ["q", "v"], ["w"]),
             helper.make_node("Mul", ["x", "w"], ["y"], name="mul")]  # fmt: skip
    made = model(nodes, {"x": [2]}, initialisers=constants)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    rows: list[dict[str, object]] = [{"node": name, "time": GPU} for name in ("neg", "ex*", "w", "mul")]
    rows.append({"type": "Neg", "time": GPU})
    (tmp_path / "p.json").write_text(profile(*rows), encoding="utf-8")
    problem = loads('graph from "m.onnx" { profile = "p.json" }\n' + MACHINE, tmp_path).problem
    assert problem.graph.ids == ("mul",)
    assert problem.time[0, 0] == 1e-3
    message = (
        "the profile's times of 4 operators, such as 'neg', are not used: inputs, and what depends on none, are no"
    )
    assert [note for note in problem.notes if note.startswith("the profile's times")] == [message + " nodes"]
    (tmp_path / "p.json").write_text(profile({"node": "muul", "time": GPU}), encoding="utf-8")
    with pytest.raises(InputError, match="no node is called 'muul'"):
        loads('graph from "m.onnx" { profile = "p.json" }\n' + MACHINE, tmp_path)


GPU = {"gpu": 1}


def test_names_of_another_model_are_told_once_with_their_number(tmp_path: Path) -> None:
    """Two times of a name are one name; so few as a misspelling makes are told one by one."""
    rows = [{"node": f"other{k}", "time": {device: 1}} for k in range(80) for device in ("gpu", "cpu")]
    with pytest.raises(InputError) as caught:
        profiled(tmp_path, profile(*rows, {"node": "conv 1", "time": GPU}))
    told = [d.message for d in caught.value.diagnostics]
    assert told == [
        *(f"no node is called 'other{k}'" for k in range(3)),
        "77 more names of this profile are of no node",
    ]
    last = caught.value.diagnostics[-1]
    assert "'placedsl check SPEC --nodes' lists the 3 nodes" in last.hint
    assert last.span is not None
    with pytest.raises(InputError) as caught:
        profiled(tmp_path, profile(*rows[:8]))
    assert [d.message for d in caught.value.diagnostics] == [f"no node is called 'other{k}'" for k in range(4)]


def test_the_nodes_that_a_wrong_profile_may_name_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="/model/layers.0/act, first/Relu"),
             helper.make_node("Relu", ["a"], ["b"], name="b")]  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model(nodes, {"x": [2]}).SerializeToString())
    (tmp_path / "p.csv").write_text("node,device,time\nnone,gpu,1 ms\n", encoding="utf-8")
    spec = tmp_path / "m.place"
    spec.write_text('graph from "m.onnx" { profile = "p.csv" }\ndevice gpu: accelerator\n', encoding="utf-8")
    assert main(["check", str(spec)]) == 1
    capsys.readouterr()
    assert main(["check", str(spec), "--nodes"]) == 0
    table = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert table == [
        ["node", "type", "module", "layer"],
        ["/model/layers.0/act, first/Relu", "Relu", "model.layers.0.act, first", "model.layers.0"],
        ["b", "Relu", "", ""],
    ]
    spec.write_text('graph from "n.onnx"\n', encoding="utf-8")
    assert main(["check", str(spec), "--nodes"]) == 1
    assert "no such file" in capsys.readouterr().err
    spec.write_text("graph {\n node a { time = 1 ms, layer = 3 }\n node b { time = 1 ms }\n}\ndevice gpu: accelerator\n"
                    "minimize devices_used\n", encoding="utf-8")  # fmt: skip
    assert main(["check", str(spec), "--nodes"]) == 0
    assert capsys.readouterr().out == "node,layer\na,3\nb,\n"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (profile({"node": "conv 3", "time": GPU}), '"conv 3"', "no node is called 'conv 3'", "'conv 1'"),
        (profile({"type": "conv", "time": GPU}), '"conv"', "no node is of the type 'conv'", "'Conv'"),
        (profile({"node": "relu*", "time": GPU}), '"relu*"', "no node is called 'relu*'", "conv 1"),
        (profile({"node": "conv 1", "time": {"gup": 1}}), "1", "there is no device or kind 'gup'", "'gpu'"),
        (profile({"node": "conv 1", "time": {"gpu": -1}}), "-1", "'gpu' is negative", ""),
        (profile({"node": "conv 1", "time": 3}), "3", "'time' is a number: times by device are expected", "gpu"),
        (profile({"time": GPU}), "{", "a node or a type is expected", "conv1"),
        (profile({"node": "conv 1", "time": GPU}, {"node": "conv 1", "time": GPU}), '"conv 1"', "given twice", ""),
        (profile(time_unit="GiB"), '"GiB"', "'time_unit' is a unit of time", "ms"),
        (profile(time_unit="msec"), '"msec"', "'msec' is not a unit", "ms"),
        (profile(format="other"), '"other"', "'format' is", ""),
        ('{"format": "placedsl-profile", "times": []}', "{", "'time_unit' is missing", "ms"),
        ("node,device,time\nconv 3,gpu,1 ms\n", "conv 3", "no node is called 'conv 3'", "'conv 1'"),
        ("node,device,time\nconv 1,gup,1 ms\n", "gup", "there is no device or kind 'gup'", "'gpu'"),
        ("node,device,time\nconv 1,gpu,1 GiB\n", "1 GiB", "a time is expected, this is data", "ms"),
        ("node,device,time\nconv 1,gpu,soon\n", "soon", "is not a quantity", "ms"),
        ("node,device,time\nconv 1,gpu\n", "conv 1", "this line has 2 cells, the headings are 3", ""),
        ("node,type,device,time\nconv 1,Conv,gpu,1 ms\n", "conv 1", "one of the two", ""),
        ("node,device,tiem\nconv 1,gpu,1 ms\n", "tiem", "a profile has no column 'tiem'", "'time'"),
        ("conv 1,gpu,1 ms\n", "conv 1", "a line of headings is expected", "node,device"),
        ("", "", "the file is empty", "node,device,time"),
    ],
)  # fmt: skip
def test_malformed_profiles(text: str, place: str, message: str, hint: str, tmp_path: Path) -> None:
    name = "p.json" if text.startswith("{") else "p.csv"
    with pytest.raises(InputError) as caught:
        profiled(tmp_path, text, name)
    first = caught.value.diagnostics[0]
    assert message in first.message
    assert hint in first.hint
    assert first.span is not None
    assert first.span.source.name == str(tmp_path / name)
    assert first.span.source.line(first.span.line)[first.span.column - 1 :].startswith(place)


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(document(NODES), encoding="utf-8")
    (tmp_path / "measured.csv").write_text("node,device,time\n", encoding="utf-8")
    for block, column, message in (
        ('"mesured.csv"', 33, "no such file"),
        ("3", 33, "a file name in quotes is expected"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            loads(f'graph from "g.json" {{ profile = {block} }}\n{MACHINE}', tmp_path)
        span = caught.value.diagnostics[0].span
        assert span is not None
        assert span.column == column
