"""ONNX models: what their operators cost, by hand, by published totals, and at random."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import chained_functions, graph_of, light_folder, model, source

from placedsl import InputError, loads
from placedsl.graph.readers import read
from placedsl.graph.readers.sizes import Size

node = helper.make_node


def cost(made: Any, **sizes: int) -> tuple[float, float, float]:
    """Operations, bytes moved and parameter bytes of a model of one operator."""
    graph = graph_of(made, **sizes)
    assert graph.nodes == 1
    return float(graph.attributes["flops"][0]), float(graph.attributes["bytes"][0]), float(graph.memory[0])


def test_convolution() -> None:
    # 64 filters of 3 x 7 x 7 over 112 x 112 places.
    made = model([node("Conv", ["x", "w", "b"], ["y"], kernel_shape=[7, 7], strides=[2, 2], pads=[3, 3, 3, 3])],
                 {"x": [1, 3, 224, 224]}, {"w": [64, 3, 7, 7], "b": [64]})  # fmt: skip
    weights = 64 * 3 * 7 * 7 + 64
    places = 112 * 112 * 64
    assert cost(made) == (2 * places * 147 + places, 4 * (3 * 224 * 224 + weights + places), 4 * weights)


def test_grouped_convolution_reads_its_own_channels_only() -> None:
    grouped = node("Conv", ["x", "w"], ["y"], group=32, pads=[1, 1, 1, 1])
    made = model([grouped], {"x": [2, 32, 10, 10]}, {"w": [32, 1, 3, 3]})
    assert cost(made)[0] == 2 * (2 * 32 * 100) * 9


def test_transposed_convolution() -> None:
    made = model([node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])], {"x": [1, 8, 5, 5]}, {"w": [8, 4, 2, 2]})
    assert cost(made)[0] == 2 * (8 * 25) * (4 * 2 * 2)


@pytest.mark.parametrize("turned", [0, 1])
def test_general_matrix_product(turned: int) -> None:
    shape = [30, 10] if turned else [10, 30]
    made = model([node("Gemm", ["x", "w", "c"], ["y"], transA=turned)], {"x": shape}, {"w": [30, 7], "c": [7]})
    assert cost(made)[0] == 2 * 10 * 30 * 7 + 10 * 7


def test_matrix_product_of_a_batch() -> None:
    made = model([node("MatMul", ["x", "y"], ["z"])], {"x": ["batch", 12, 64, 32], "y": ["batch", 12, 32, 64]})
    assert cost(made, batch=4) == (2 * 4 * 12 * 64 * 64 * 32, 4 * 4 * 12 * (2 * 64 * 32 + 64 * 64), 0)


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("bhid,bhjd->bhij", [[2, 3, 5, 7], [2, 3, 6, 7]], 2 * (2 * 3 * 5 * 6 * 7)),  # scores of attention
        ("...id,...jd->...ij", [[2, 3, 5, 7], [2, 3, 6, 7]], 2 * (2 * 3 * 5 * 6 * 7)),
        ("i,j->ij", [[5], [6]], 30),  # an outer product sums nothing
        ("ij->i", [[5, 6]], 30),  # a sum multiplies nothing
    ],
)
def test_einsum(equation: str, shapes: list[list[int]], expected: float) -> None:
    inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
    assert cost(model([node("Einsum", list(inputs), ["y"], equation=equation)], inputs))[0] == expected


def test_batch_normalisation_pooling_and_elements() -> None:
    vectors = {name: [8] for name in ("s", "b", "m", "v")}
    made = model([node("BatchNormalization", ["x", *vectors], ["y"])], {"x": [1, 8, 10, 10]}, vectors)
    assert cost(made) == (2 * 800, 4 * (1600 + 32), 4 * 32)
    made = model([node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2])], {"x": [1, 8, 11, 11]})
    assert cost(made)[0] == 8 * 25 * 9
    assert cost(model([node("GlobalAveragePool", ["x"], ["y"])], {"x": [1, 8, 10, 10]}))[0] == 800
    assert cost(model([node("Softmax", ["x"], ["y"])], {"x": [3, 100]}))[0] == 5 * 300
    assert cost(model([node("Relu", ["x"], ["y"])], {"x": [3, 100]})) == (300, 2400, 0)
    assert cost(model([node("Reshape", ["x", "to"], ["y"])], {"x": [3, 100]}, initialisers=[
        numpy_helper.from_array(np.array([-1]), "to")]))[:2] == (0, 0)  # fmt: skip


def test_a_gather_reads_rows_of_its_table_and_keeps_all_of_it() -> None:
    made = model([node("Gather", ["table", "rows"], ["y"])], {}, {"table": [30000, 64]})
    made.graph.input.append(helper.make_tensor_value_info("rows", TensorProto.INT64, [1, 16]))
    assert cost(made) == (0, 2 * 4 * 16 * 64 + 8 * 16, 4 * 30000 * 64)


def test_recurrent_layers_use_each_weight_in_each_step() -> None:
    made = model([node("LSTM", ["x", "w", "r"], ["y"], hidden_size=16)], {"x": [20, 3, 8]},
                 {"w": [1, 64, 8], "r": [1, 64, 16]})  # fmt: skip
    assert cost(made)[0] == 2 * 20 * 3 * (64 * 8 + 64 * 16)


# Operations of these networks for one picture of 224 x 224, in thousand millions, twice the usual count of pairs of a
# multiplication and an addition; parameters in millions.  AlexNet is the one of two groups, SqueezeNet 1.1.
PUBLISHED = {
    "bvlc_alexnet": (1.31, 61.0), "densenet121": (5.73, 8.0), "inception_v1": (2.86, 7.0), "inception_v2": (4.05, 11.2),
    "resnet50": (8.2, 25.6), "squeezenet": (0.70, 1.24), "vgg19": (39.2, 143.7),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_known_networks(name: str) -> None:
    graph = read(light_folder() / f"light_{name}.onnx")
    operations, parameters = PUBLISHED[name]
    assert np.nansum(graph.attributes["flops"]) / 1e9 == pytest.approx(operations, rel=0.03)
    assert graph.memory.sum() / 4e6 == pytest.approx(parameters, rel=0.03)


def test_all_topologies_of_the_package_are_read() -> None:
    files = sorted(light_folder().glob("*.onnx"))
    assert len(files) == 9
    for file in files:
        graph = read(file)
        assert graph.notes == ()
        assert np.isfinite(graph.attributes["flops"]).all()
        assert (graph.attributes["bytes"] >= 0).all()
        convolutions = graph.attributes["type"] == "Conv"
        assert graph.attributes["flops"][convolutions].sum() > 0.5 * graph.attributes["flops"].sum()
        assert "ConstantOfShape" not in set(graph.attributes["type"])  # weights are no nodes


def test_dimensions_are_asked_for_by_name() -> None:
    made = model([node("Relu", ["x"], ["y"])], {"x": ["batch", "length", None]})
    with pytest.raises(InputError) as caught:
        graph_of(made, batch=2)
    assert [d.message for d in caught.value.diagnostics] == [
        "the dimension 'length' of input 'x' has no size", "the dimension 'x[2]' of input 'x' has no size",
    ]  # fmt: skip
    with pytest.raises(InputError, match="the model no dimension of that name") as caught:
        graph_of(made, lenght=2)
    assert "did you mean 'length'?" in caught.value.diagnostics[0].hint
    sizes = {"batch": Size(2), "length": Size(3), "x[2]": Size(5)}
    assert read(source(made), None, sizes).attributes["flops"][0] == 30


def test_dimensions_in_a_spec(tmp_path: Path) -> None:
    made = model(
        [node("Relu", ["x"], ["y"]), node("MatMul", ["y", "w"], ["z"])], {"x": ["batch", "in put"]}, {"w": [64, 8]}
    )
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    rest = """
device gpu: accelerator { compute = 1 GFLOP/s, memory_bandwidth = 1 MB/s }
interconnect { bandwidth = 1 GB/s }
minimize sum(v in nodes, d in devices: v.time[d] * (v on d))
"""
    text = 'param samples = 4\ngraph from "m.onnx" { batch = samples, "in put" = 64 }' + rest
    problem = loads(text, tmp_path).problem
    assert problem.graph.attributes["flops"].tolist() == [256, 2 * 4 * 64 * 8]
    # Both are bound by memory: 4 bytes a number, read or written.
    assert problem.time[:, 0].tolist() == pytest.approx([4 * 512 / 1e6, 4 * (256 + 512 + 32) / 1e6])
    with pytest.raises(InputError) as caught:
        loads('graph from "m.onnx" { batch = 4, "in putt" = 64 }' + rest, tmp_path)
    unknown, missing = sorted(caught.value.diagnostics, key=lambda d: d.span.column if d.span else 0, reverse=True)
    assert unknown.span is not None
    assert (unknown.span.column, "'in putt'" in unknown.message) == (34, True)
    assert missing.span is not None
    assert (missing.span.column, "'in put'" in missing.message) == (12, True)


@pytest.mark.parametrize("value", ["0", "1.5", "2 ms", '"4"'])
def test_a_size_is_a_whole_number(value: str, tmp_path: Path) -> None:
    made = model([node("Relu", ["x"], ["y"])], {"x": ["batch", 4]})
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(InputError, match=r"whole number|a graph file has no 'batch'"):
        loads(f'graph from "m.onnx" {{ batch = {value} }}\ndevice gpu: accelerator\nminimize devices_used', tmp_path)


def test_shapes_are_computed_through_operators_on_shapes() -> None:
    """As exporters write ``x.view(x.shape[0], -1)``."""
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["first"]),
        node("Concat", ["first", "rest"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]), node("MatMul", ["y", "w"], ["z"]),
    ]  # fmt: skip
    constants = [numpy_helper.from_array(np.array([0]), "zero"), numpy_helper.from_array(np.array([-1]), "rest")]
    graph = graph_of(model(nodes, {"x": ["batch", 4, 5]}, {"w": [20, 3]}, initialisers=constants), batch=7)
    assert list(graph.attributes["type"]) == ["Reshape", "MatMul"]
    assert graph.attributes["flops"].tolist() == [0, 2 * 7 * 20 * 3]


def test_shapes_that_inference_does_not_follow_are_computed() -> None:
    """As exporters write ``mask.expand(x.shape[0], -1, 8)`` and ``torch.arange(x.shape[0])``."""
    numbers = {"zero": 0, "one": 1, "first": [0], "last": [1], "kept": [-1], "length": [8], "minus": [-1]}
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()]
    one = numpy_helper.from_array(np.array([1]))
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Unsqueeze", ["n", "first"], ["n1"]),
        node("Concat", ["n1", "kept", "length"], ["to"], axis=0), node("Shape", ["to"], ["rank"]),
        node("ConstantOfShape", ["rank"], ["ones"], value=one), node("Mul", ["ones", "minus"], ["open"]),
        node("Equal", ["to", "open"], ["is open"]), node("Where", ["is open", "ones", "to"], ["final"]),
        node("Expand", ["mask", "final"], ["y"]), node("Range", ["zero", "n", "one"], ["count"]),
        node("Cast", ["count"], ["number"], to=TensorProto.FLOAT), node("Unsqueeze", ["number", "last"], ["column"]),
        node("Mul", ["column", "row"], ["z"]),
    ]  # fmt: skip
    inputs = {"x": ["batch", 4], "mask": [1, 1, 8], "row": [1, 3]}
    graph = graph_of(model(nodes, inputs, initialisers=constants, outputs=["y", "z"]), batch=7)
    assert list(graph.attributes["type"]) == ["Expand", "Mul"]
    assert graph.attributes["bytes"].tolist() == [4 * (8 + 7 * 8) + 8 * 3, 4 * (7 + 3 + 21)]


def reshapes(layers: int) -> list[Any]:
    """As exporters write ``x = x.view(x.shape[0], -1).view(x.shape[0], 4, 5)``, again and again."""
    nodes, last = [], "x"
    for i in range(layers):
        nodes += [
            node("Shape", [last], [f"s{i}"]), node("Gather", [f"s{i}", "zero"], [f"n{i}"]),
            node("Concat", [f"n{i}", "rest"], [f"flat{i}"], axis=0), node("Reshape", [last, f"flat{i}"], [f"f{i}"]),
            node("Concat", [f"n{i}", "sides"], [f"full{i}"], axis=0), node("Reshape", [f"f{i}", f"full{i}"], [f"y{i}"]),
        ]  # fmt: skip
        last = f"y{i}"
    return nodes


def test_what_each_layer_computes_of_the_same_shapes_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"zero": [0], "rest": [-1], "sides": [4, 5]}
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()]
    run: list[str] = []
    evaluator = onnx.reference.ReferenceEvaluator

    def counted(made: Any, **more: Any) -> Any:
        run.append(made.op_type)
        return evaluator(made, **more)

    monkeypatch.setattr(onnx.reference, "ReferenceEvaluator", counted)
    graph = graph_of(model(reshapes(30), {"x": ["batch", 4, 5]}, initialisers=constants), batch=7)
    assert graph.nodes == 60
    assert sorted(run) == ["Concat", "Concat", "Gather"]


def test_the_same_operator_on_other_values_or_with_other_attributes_is_another_one() -> None:
    numbers = {"one": [[2, 3]], "two": [[4, 5]], "all": [-1]}
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()]
    nodes = [
        node("Concat", ["one", "two"], ["long"], axis=1), node("Concat", ["one", "two"], ["high"], axis=0),
        node("Concat", ["one", "one"], ["alike"], axis=1),
        *(node("Shape", [name], [f"{name} shape"]) for name in ("long", "high")),
        node("Reshape", ["alike", "all"], ["to"]), node("Reshape", ["long", "all"], ["long to"]),
        node("Expand", ["x", "to"], ["y"]), node("Expand", ["x", "long to"], ["z"]),
        node("Expand", ["x", "long shape"], ["u"]), node("Expand", ["x", "high shape"], ["v"]),
    ]  # fmt: skip
    graph = graph_of(model(nodes, {"x": [1]}, initialisers=constants, outputs=["y", "z", "u", "v"]))
    assert graph.attributes["type"].tolist() == ["Expand"] * 4
    moved = [4 + 4 * n + 8 * dimensions for n, dimensions in ((36, 4), (120, 4), (4, 2), (4, 2))]
    assert graph.attributes["bytes"].tolist() == moved


def test_each_output_is_a_tensor_of_its_own() -> None:
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1), node("Relu", ["a"], ["c"]), node("Tanh", ["a"], ["d"]),
        node("Exp", ["b"], ["e"]), node("Sum", ["c", "d", "e"], ["f"]),
    ]  # fmt: skip
    graph = graph_of(model(nodes, {"x": [2, 6]}))
    tensors = [(graph.names[p], size) for p, size in zip(graph.tensor_producer, graph.tensor_bytes, strict=True)]
    assert sorted(tensors) == [("a", 24), ("a", 24), ("c", 24), ("d", 24), ("e", 24)]


def test_unknown_types_cost_bytes_and_are_told() -> None:
    nodes = [node("Det", ["x"], ["y"]), node("Relu", ["y"], ["z"])]
    graph = graph_of(model(nodes, {"x": [5, 3, 3]}))
    assert math.isnan(graph.attributes["flops"][0])
    assert graph.attributes["bytes"][0] == 4 * (45 + 5)
    assert graph.notes == ("type 'Det' is not known: the times of its 1 operators are estimated from bytes alone",)


def test_functions_are_written_out() -> None:
    graph = graph_of(chained_functions(5))
    assert graph.attributes["type"].tolist() == ["Relu"] * 32


def test_functions_that_cannot_be_written_out_are_told() -> None:
    def with_functions(count: int, *reads: str) -> Any:
        imports = [helper.make_opsetid("", 17)]
        body = [node("Relu", ["a"], ["b"])]
        functions = [helper.make_function("some.where", "f", ["a"], ["b"], body, imports) for _ in range(count)]
        return model([node("f", list(reads), ["y"], domain="some.where")], {"x": [2]}, functions=functions)

    assert graph_of(with_functions(1, "x")).nodes == 1
    for made in (with_functions(2, "x"), with_functions(1, "x", "x")):
        with pytest.raises(InputError, match="the functions of this ONNX model cannot be put in the place"):
            graph_of(made)


@pytest.mark.parametrize(("outputs", "parts"), [(3, 2), (2, 3), (2, 2**31 - 1), (1, 0), (2, -1)])
def test_splits_into_other_numbers_of_parts_than_outputs(outputs: int, parts: int) -> None:
    names = [f"y{i}" for i in range(outputs)]
    imports = [helper.make_opsetid("", 18)]
    made = model([node("Split", ["x"], names, num_outputs=parts, axis=0)], {"x": [6]})
    del made.opset_import[:]
    made.opset_import.extend(imports)
    with pytest.raises(InputError, match=rf"\(Split\) has {outputs} outputs, and num_outputs is {parts}"):
        graph_of(made)


@pytest.mark.parametrize("location", [None, "", "here.bin", "../there.bin"])
def test_constants_in_files_of_their_own_are_not_read(location: str | None) -> None:
    value = numpy_helper.from_array(np.array([3, 2], dtype=np.int64), "c")
    value.ClearField("raw_data")
    value.data_location = TensorProto.EXTERNAL
    if location is not None:
        value.external_data.add(key="location", value=location)
    nodes = [node("Constant", [], ["c"], value=value), node("Reshape", ["x", "c"], ["y"])]
    with pytest.raises(InputError, match=r"shape of .*'y'"):
        graph_of(model(nodes, {"x": [6]}))


def test_constants_that_the_reference_implementation_refuses() -> None:
    stored = [numpy_helper.from_array(np.zeros((3, 4), dtype=np.int8), "w")]
    stored += [numpy_helper.from_array(np.float32(1), "scale")]
    nodes = [node("DequantizeLinear", ["w", "scale", "w"], ["d"]), node("MatMul", ["x", "d"], ["y"])]
    assert graph_of(model(nodes, {"x": [2, 3]}, initialisers=stored)).nodes == 1


def big_numbers(*nodes: Any, **numbers: Any) -> Any:
    """A model with constant operators, of which one reads ``x``."""
    constants = [node("Constant", [], [name], value=numpy_helper.from_array(np.array(value))) for name, value in
                 numbers.items()]  # fmt: skip
    return model([*constants, *nodes], {"x": [1]})


@pytest.mark.parametrize(
    ("kind", "numbers", "attributes"),
    [
        ("Range", {"low": 0, "high": 10**12, "step": 1}, {}),
        ("ConstantOfShape", {"shape": [10**6, 10**6]}, {"value": numpy_helper.from_array(np.array([1]))}),
        ("Expand", {"value": [1], "shape": [10**6, 10**6]}, {}),
        ("Tile", {"value": [1], "times": [10**12]}, {}),
    ],
)
def test_large_constants_are_memory_and_not_computed(kind: str, numbers: Any, attributes: Any) -> None:
    nodes = [node(kind, list(numbers), ["all"], **attributes), node("Cast", ["all"], ["real"], to=TensorProto.FLOAT),
             node("Mul", ["real", "x"], ["y"])]  # fmt: skip
    graph = graph_of(big_numbers(*nodes, **numbers))
    assert graph.attributes["type"].tolist() == ["Mul"]
    assert graph.memory.tolist() == [4e12]


def test_large_einsums() -> None:
    """Of constants they are not computed; what more than can be counted is told."""
    ones = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    sums = node("Einsum", ["w"] * 6, ["s"], equation="ab,cd,ef,gh,ij,kl->")
    graph = graph_of(model([sums, node("Mul", ["x", "s"], ["y"])], {"x": [1]}, initialisers=[ones]))
    assert graph.attributes["type"].tolist() == ["Mul"]
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    sums = node("Einsum", ["x"] * 52, ["y"], equation=",".join(letters) + "->")
    with pytest.raises(InputError, match=r"\(Einsum\): it computes more than can be counted"):
        graph_of(model([sums], {"x": [10**9]}))


def random_model(dice: random.Random) -> tuple[Any, int, dict[tuple[int, int], set[str]]]:
    """Operators on squares of numbers: the model, their number, and which tensors flow between which."""
    side = dice.choice([2, 3, 8])
    made_by: dict[str, int] = {}
    nodes, flows = [], dict[tuple[int, int], set[str]]()
    for i in range(dice.randint(1, 12)):
        kind = dice.choice(["Relu", "MatMul", "Add", "Sum", "Transpose", "Split"])
        count = {"MatMul": 2, "Add": 2, "Sum": 3}.get(kind, 1)
        whole = ["x", *(name for name in made_by if "half" not in name)]
        reads = [dice.choice(whole) for _ in range(count)]
        makes = [f"half{i}a", f"half{i}b"] if kind == "Split" and side % 2 == 0 else [f"t{i}"]
        nodes.append(node("Relu" if kind == "Split" and len(makes) == 1 else kind, reads, makes, name=f"n{i}"))
        for name in reads:
            if name in made_by:
                flows.setdefault((made_by[name], i), set()).add(name)
        made_by |= dict.fromkeys(makes, i)
    return model(nodes, {"x": [side, side]}), len(nodes), flows


@pytest.mark.parametrize("seed", range(40))
def test_random_models(seed: int) -> None:
    made, count, flows = random_model(random.Random(seed))
    graph = graph_of(made)
    assert graph.nodes == count
    edges = set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    assert edges == flows.keys()
    side = made.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    for k, (u, v) in enumerate(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)):
        assert graph.tensor_bytes[graph.edge_tensor[k]] == 4 * side * side * len(flows[u, v])
    for a, b in itertools.combinations(range(len(graph.edge_source)), 2):
        one, other = ((graph.edge_source[k], graph.edge_target[k]) for k in (a, b))
        same = one[0] == other[0] and flows[int(one[0]), int(one[1])] == flows[int(other[0]), int(other[1])]
        assert (graph.edge_tensor[a] == graph.edge_tensor[b]) == same
