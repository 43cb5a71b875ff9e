"""Exported programs of PyTorch, which is not needed to read them."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT

from placedsl import InputError, loads
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read
from placedsl.graph.readers.sizes import Size
from placedsl.graph.readers.symbols import UnknownSizeError, symbol, value

ENCODER = ROOT / "docs" / "encoder.pt2"
MACHINE = """
device gpu[2]: accelerator { compute = 15 TFLOP/s, memory_bandwidth = 900 GB/s }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
"""


def tensor(*shape: int, dtype: int = 7) -> dict[str, Any]:
    return {"dtype": dtype, "sizes": [{"as_int": length} for length in shape]}


def call(target: str, makes: str, **arguments: Any) -> dict[str, Any]:
    """A node that makes one tensor; arguments that are texts are names of tensors."""
    given = [
        {"name": name, "arg": {"as_tensor": {"name": of}} if isinstance(of, str) else of, "kind": 1}
        for name, of in arguments.items()
    ]
    outputs = [{"as_tensor": {"name": makes}}]
    return {"target": f"torch.ops.aten.{target}", "inputs": given, "outputs": outputs, "metadata": {}, "name": makes}


def program(tensors: dict[str, Any], nodes: list[Any], weights: tuple[str, ...] = ()) -> dict[str, Any]:
    """A program whose input is ``x``."""
    specs: list[Any] = [{"parameter": {"arg": {"name": name}, "parameter_name": name}} for name in weights]
    specs.append({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})
    graph = {"inputs": [], "outputs": [], "nodes": nodes, "tensor_values": tensors, "sym_int_values": {}}
    return {"graph_module": {"graph": graph, "signature": {"input_specs": specs, "output_specs": []}}}


def archive(root: object, path: Path, member: str = "model/models/model.json") -> Path:
    """The program as a file."""
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(member, root if isinstance(root, str) else json.dumps(root))
    return path


def one(node: Any, tensors: dict[str, Any], path: Path, weights: tuple[str, ...] = ()) -> tuple[float, float, float]:
    """Operations, bytes moved and parameter bytes of one operator."""
    graph = read(archive(program(tensors, [node], weights), path / "m.pt2"))
    assert graph.nodes == 1
    return float(graph.attributes["flops"][0]), float(graph.attributes["bytes"][0]), float(graph.memory[0])


def test_linear_layer(tmp_path: Path) -> None:
    tensors = {"x": tensor(4, 10, 20), "w": tensor(30, 20), "b": tensor(30), "y": tensor(4, 10, 30)}
    node = call("linear.default", "y", input="x", weight="w", bias="b")
    weights = 4 * (30 * 20 + 30)
    moved = 4 * (4 * 10 * 20 + 4 * 10 * 30) + weights
    assert one(node, tensors, tmp_path, ("w", "b")) == (2 * 40 * 30 * 20 + 40 * 30, moved, weights)


def test_half_precision_moves_half_the_bytes(tmp_path: Path) -> None:
    for dtype, width in ((6, 2), (13, 2), (8, 8)):
        tensors = {"x": tensor(4, 5, dtype=dtype), "y": tensor(4, 5, dtype=dtype)}
        assert one(call("relu.default", "y", self="x"), tensors, tmp_path) == (20, 2 * 20 * width, 0)


def test_attention_convolution_pooling_and_embedding(tmp_path: Path) -> None:
    heads = tensor(2, 4, 16, 8)
    node = call("scaled_dot_product_attention.default", "y", query="x", key="k", value="v")
    # Scores, their scaling, softmax (5 operations each), and the sum of values.
    expected = 2 * 4 * 16 * 16 * (2 * 8 + 1 + 5 + 2 * 8)
    graph = read(
        archive(program({"x": heads, "k": heads, "v": heads, "y": heads}, [node], ("k", "v")), tmp_path / "a.pt2")
    )
    assert graph.attributes["flops"].tolist() == [expected]
    tensors = {"x": tensor(1, 3, 8, 8), "w": tensor(6, 3, 3, 3), "y": tensor(1, 6, 8, 8)}
    node = call("conv2d.default", "y", input="x", weight="w", padding={"as_ints": [1, 1]})
    assert one(node, tensors, tmp_path, ("w",))[0] == 2 * 6 * 64 * 27
    node = call("max_pool2d.default", "y", self="x", kernel_size={"as_ints": [2]})
    assert one(node, {"x": tensor(1, 3, 8, 8), "y": tensor(1, 3, 4, 4)}, tmp_path)[0] == 3 * 16 * 4
    tensors = {"x": tensor(2, 5, dtype=5), "w": tensor(1000, 64), "y": tensor(2, 5, 64)}
    node = call("embedding.default", "y", weight="w", indices="x")
    assert one(node, tensors, tmp_path, ("w",)) == (0, 2 * 4 * 10 * 64 + 8 * 10, 4 * 64000)


def test_what_depends_on_weights_alone_is_memory_and_no_node(tmp_path: Path) -> None:
    tensors = {"x": tensor(8, 4), "w": tensor(4, 4), "t": tensor(4, 4), "e": tensor(9, 4, 4), "y": tensor(9, 8, 4)}
    nodes = [
        call("permute.default", "t", self="w"), call("expand.default", "e", self="t"),
        call("matmul.default", "y", self="x", other="e"),
    ]  # fmt: skip
    graph = read(archive(program(tensors, nodes, ("w",)), tmp_path / "m.pt2"))
    assert graph.ids == ("y",)
    assert graph.memory.tolist() == [4 * 16]  # nine views of one weight


@pytest.mark.parametrize("value", [{"as_bool": False}, {"as_none": True}, {"as_int": 3}, {"as_string": "mean"}])
def test_constant_arguments_of_a_model_are_no_tensors(value: dict[str, Any], tmp_path: Path) -> None:
    """As ``torch.export.export(model, (x,), {"use_cache": False})`` writes them."""
    root = program({"x": tensor(4), "y": tensor(4)}, [call("relu.default", "y", self="x")])
    signature = root["graph_module"]["signature"]
    signature["input_specs"].append({"constant_input": {"name": "use_cache", "value": value}})
    graph = read(archive(root, tmp_path / "m.pt2"))
    assert graph.ids == ("y",)
    assert graph.memory.tolist() == [0]


def test_names_of_inputs_and_weights_are_no_nodes(tmp_path: Path) -> None:
    """As a profiler that runs the program calls them; a second output has a name of its own."""
    tensors = {"x": tensor(4), "w": tensor(4), "u": tensor(4), "y": tensor(4), "z": tensor(4)}
    root = program(tensors, [call("neg.default", "u", self="w"), call("add.Tensor", "y", self="x", other="u")], ("w",))
    root["graph_module"]["graph"]["nodes"][1]["outputs"].append({"as_tensor": {"name": "z"}})
    graph = read(archive(root, tmp_path / "m.pt2"))
    assert graph.ids == ("y",)
    assert graph.folded.names == {"x", "w", "u", "z", "output"}


def test_regions_without_gradients_are_part_of_the_program(tmp_path: Path) -> None:
    """As exporters write what stood under ``torch.no_grad()``; one tensor is handed on as it came."""
    inner = {
        "inputs": [{"as_tensor": {"name": "a"}}],
        "outputs": [{"as_tensor": {"name": "b"}}, {"as_tensor": {"name": "a"}}],
        "nodes": [call("exp.default", "m", self="a"), call("tanh.default", "b", self="m")],
        "tensor_values": {"a": tensor(6), "m": tensor(6), "b": tensor(6)},
    }
    region = {
        "target": "torch.ops.higher_order.wrap_with_set_grad_enabled", "name": "region", "metadata": {},
        "inputs": [
            {"name": "", "arg": {"as_bool": False}}, {"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}},
            {"name": "", "arg": {"as_tensor": {"name": "x"}}},
        ],
        "outputs": [{"as_tensor": {"name": "r"}}, {"as_tensor": {"name": "s"}}],
    }  # fmt: skip
    values = {name: tensor(6) for name in ("x", "r", "s", "y")}
    root = program(values, [region, call("add.Tensor", "y", self="r", other="s")])
    graph = read(archive(root, tmp_path / "m.pt2"))
    assert sorted(zip(graph.ids, graph.attributes["type"], strict=True)) == [
        ("r", "tanh"), ("region.m", "exp"), ("s", "alias"), ("y", "add"),
    ]  # fmt: skip
    edges = {(graph.ids[u], graph.ids[v]) for u, v in zip(graph.edge_source, graph.edge_target, strict=True)}
    assert edges == {("region.m", "r"), ("r", "y"), ("s", "y")}


def encoder(**sizes: int) -> Graph:
    """The transformer of the documents: width 256, four layers, 30,000 words."""
    return read(ENCODER, None, {name.replace("_", ""): Size(size) for name, size in sizes.items()})


def test_a_transformer() -> None:
    """The sum of its matrix products, by hand."""
    graph = encoder()
    tokens, width, words, positions = 2 * 128, 256, 30000, 128
    products = np.isin(graph.attributes["type"], ("linear", "scaled_dot_product_attention"))
    layer = 2 * tokens * width * (3 * width + width + 4 * width + 4 * width) + tokens * (3 + 1 + 4 + 1) * width
    scores = 4 * 2 * positions * positions * (4 * 64 + 6)
    assert graph.attributes["flops"][products].sum() == 4 * (layer + scores) + tokens * words * (2 * width + 1)
    layers = [name for name in graph.attributes["module"] if name and name.startswith("body.layers.2.")]
    assert "body.layers.2.linear1" in layers
    assert graph.memory.sum() > 4 * 2 * words * width


def test_dynamic_dimensions_have_the_sizes_of_the_export_unless_told() -> None:
    plain = encoder()
    assert [note.partition(",")[0] for note in plain.notes] == ["'tokens[0]' is 2", "'tokens[1]' is 128"]
    other = read(ENCODER, None, {"tokens[0]": Size(8), "tokens[1]": Size(128)})
    assert other.notes == ()
    linear = plain.attributes["type"] == "linear"
    assert np.allclose(other.attributes["flops"][linear], 4 * plain.attributes["flops"][linear])
    with pytest.raises(InputError, match="no dimension of that name") as caught:
        read(ENCODER, None, {"token[0]": Size(8)})
    assert "'tokens[0]'" in caught.value.diagnostics[0].hint


def test_from_file_to_placement() -> None:
    answer = loads(f'graph from "{ENCODER.as_posix()}"{MACHINE}').solve()
    assert answer.evaluation is not None
    assert not answer.evaluation.violations
    assert any("estimated" in note for note in answer.notes)
    assert "torch" not in sys.modules


def broken() -> list[tuple[str, Any, str]]:
    """What cannot be used, with a part of what is said."""
    good = program({"x": tensor(2), "y": tensor(2)}, [call("relu.default", "y", self="x")])
    odd = call("linear.default", "y", input="x")
    empty = call("relu.default", "y", self="x") | {"outputs": [{}]}
    inner = call("thing", "y", self={"as_graph": {"name": "inner", "graph": {}}})
    return [
        ("no JSON", "{", "no JSON"),
        ("a list", [], "not laid out as exported programs are"),
        ("no graph", {}, "not laid out"),
        ("no nodes", program({"x": tensor(2)}, []), "no nodes"),
        ("no shape", program({"x": tensor(2)}, [call("relu.default", "y", self="x")]), "not laid out|shape of 'y'"),
        ("no output", program({"x": tensor(2), "y": tensor(2)}, [empty]), "not laid out"),
        ("control flow", program({"x": tensor(2), "y": tensor(2)}, [inner]), "holds a graph of its own"),
        ("odd inputs", program({"x": tensor(2), "y": tensor(2)}, [odd]), "'weight' is missing"),
        ("odd size", json.dumps(good).replace('{"as_int": 2}', '{"as_expr": {"expr_str": "f(s0)"}}'), "cannot be told"),
    ]  # fmt: skip


@pytest.mark.parametrize(("root", "message"), [pytest.param(r, m, id=n) for n, r, m in broken()])
def test_malformed_programs(root: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(archive(root, tmp_path / "m.pt2"))


def test_other_archives_and_cut_off_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this archive holds no exported program"):
        read(archive({}, tmp_path / "m.pt2", "data.pkl"))
    whole = ENCODER.read_bytes()
    for length in range(4, len(whole), 500):
        (tmp_path / "m.pt2").write_bytes(whole[:length])
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path / "m.pt2")
    damaged = bytearray(whole)
    damaged[200:260] = bytes(60)
    (tmp_path / "m.pt2").write_bytes(damaged)
    with pytest.raises(InputError):
        read(tmp_path / "m.pt2")


@pytest.mark.parametrize("seed", range(40))
def test_damaged_programs_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    with zipfile.ZipFile(ENCODER) as whole:
        text = bytearray(whole.read("encoder/models/model.json"))
    for _ in range(dice.randint(1, 3)):
        text[dice.randrange(len(text))] = dice.randrange(32, 127)
    with contextlib.suppress(InputError):  # anything else fails
        assert read(archive(text.decode(), tmp_path / "m.pt2")).nodes > 0


def test_older_archives(tmp_path: Path) -> None:
    """PyTorch before 2.8 named the program otherwise."""
    root = program({"x": tensor(2), "y": tensor(2)}, [call("relu.default", "y", self="x")])
    assert read(archive(root, tmp_path / "m.pt2", "serialized_exported_program.json")).ids == ("y",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Symbol('s77', positive=True, integer=True)", 6), ("s77", 6), ("2*s77 + 1", 13), ("-1 + s77", 5),
        ("s77**2", 36), ("Mul(Integer(64), Symbol('s27', positive=True, integer=True))", 320),
        ("Add(s77, s27, 1)", 12), ("FloorDiv(s77, 4)", 1), ("(s77//4)", 1), ("Max(1, s77)", 6), ("Mod(s77, 4)", 2),
    ],
)  # fmt: skip
def test_sizes_that_are_expressions(text: str, expected: int) -> None:
    assert value(text, {"s77": 6, "s27": 5}) == expected


def test_expressions_that_cannot_be_read() -> None:
    for text in ("s0", "f(s77)", "s77//0", "[1]", "1.5", "__import__('os')", "(", "s77**99"):
        with pytest.raises(UnknownSizeError):
            value(text, {"s77": 6})
    assert symbol("s77") == "s77"
    assert symbol("2*s77") is None


def test_bytes_that_are_no_archive_at_all(tmp_path: Path) -> None:
    noise = io.BytesIO(b"PK\x03\x04" + bytes(range(256)))
    (tmp_path / "m.pt2").write_bytes(noise.getvalue())
    with pytest.raises(InputError, match="this archive cannot be read"):
        read(tmp_path / "m.pt2")


def test_weights_that_several_modules_read_are_tied(tmp_path: Path) -> None:
    """Also through views; what one module reads twice is not, nor are tensors that are no parameters."""

    def inside(node: dict[str, Any], module: str) -> dict[str, Any]:
        return node | {"metadata": {"nn_module_stack": f"k,{module},torch.nn.modules.linear.Linear"}}

    names = ("x", "w", "turned", "own", "table", "a", "b", "c", "e")
    tensors = {name: tensor(8, 8) for name in names}
    nodes = [
        call("permute.default", "turned", self="w"),
        inside(call("mm.default", "a", self="x", mat2="w"), "embedding"),
        inside(call("mm.default", "b", self="a", mat2="own"), "body.0"),
        inside(call("mm.default", "c", self="b", mat2="own"), "body.0"),
        inside(call("mm.default", "e", self="c", mat2="turned"), "head"),
        inside(call("mm.default", "f", self="e", mat2="table"), "head"),
        inside(call("mm.default", "g", self="f", mat2="table"), "tail"),
    ]
    tensors |= {"f": tensor(8, 8), "g": tensor(8, 8)}
    root = program(tensors, nodes, ("w", "own"))
    root["graph_module"]["signature"]["input_specs"].append({"buffer": {"arg": {"name": "table"}}})
    graph = read(archive(root, tmp_path / "m.pt2"))
    tied = dict(zip(map(str, graph.ids), graph.attributes["tied"].tolist(), strict=True))
    assert tied == {"a": "embedding", "b": None, "c": None, "e": "embedding", "f": None, "g": None}
