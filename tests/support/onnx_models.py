"""Small ONNX models made for the tests."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from placedsl.diagnostics import Source
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read
from placedsl.graph.readers.sizes import Size

Shape = Sequence[int | str | None]


def model(
    nodes: Sequence[Any], inputs: Mapping[str, Shape], weights: Mapping[str, Sequence[int]] | None = None,
    outputs: Sequence[str] | None = None, **more: Any,
) -> Any:  # fmt: skip
    """A model whose weights are shapes without data, in float32; its outputs have no shape."""
    stored = []
    for name, shape in (weights or {}).items():
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="absent.bin")
        stored.append(tensor)
    stored += more.pop("initialisers", [])
    last = [name for node in nodes[-1:] for name in node.output[:1]] if outputs is None else outputs
    graph = helper.make_graph(
        list(nodes), "tested",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in last], stored,
    )  # fmt: skip
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("some.where", 1)], **more
    )


def source(made: Any, name: str = "model.onnx") -> Source:
    """A model as a file holds it."""
    return Source(name, "", data=made.SerializeToString())


def graph_of(made: Any, **sizes: int) -> Graph:
    """The graph of a model."""
    return read(source(made), None, {name: Size(size) for name, size in sizes.items()})


def light_folder() -> Path:
    """Where the package onnx keeps topologies without weights."""
    import onnx.backend.test

    return Path(onnx.backend.test.__file__).parent / "data" / "light"


def chained_functions(depth: int, first: str = "") -> Any:
    """``f0`` is one operator (or a call of ``first``), and each further function calls the one before twice."""
    local, opset = "own.functions", [helper.make_opsetid("", 17), helper.make_opsetid("own.functions", 1)]

    def call(name: str, read: str, made: str) -> Any:
        return helper.make_node(name, [read], [made], domain=local)

    inner = call(first, "a", "b") if first else helper.make_node("Relu", ["a"], ["b"])
    functions = [helper.make_function(local, "f0", ["a"], ["b"], [inner], opset)]
    for level in range(1, depth + 1):
        twice = [call(f"f{level - 1}", "a", "m"), call(f"f{level - 1}", "m", "b")]
        functions.append(helper.make_function(local, f"f{level}", ["a"], ["b"], twice, opset))
    made = model([call(f"f{depth}", "x", "y")], {"x": [2]})
    made.functions.extend(functions)
    made.opset_import.append(helper.make_opsetid(local, 1))
    return made


def chain(names: Sequence[str]) -> Source:
    """Matrix products of these names one after another, with weights, and a constant that two of them read."""
    made = np.random.default_rng(0)
    weights = [numpy_helper.from_array(made.standard_normal((3, 3)).astype(np.float32), f"w_{name}") for name in names]
    constant = numpy_helper.from_array(np.ones((3, 3), dtype=np.float32), "one")
    nodes = [helper.make_node("Neg", ["one"], ["minus"], name="folded")]
    read = "x"
    for k, name in enumerate(names):
        used = "minus" if k % 2 else f"w_{name}"
        nodes.append(helper.make_node("MatMul", [read, used], [f"{name}_out"], name=name))
        read = f"{name}_out"
    return source(model(nodes, {"x": (2, 3)}, outputs=[read], initialisers=[*weights, constant]))


def random_model(seed: int) -> Any:
    """Operators of one and two outputs, with and without names, weights that several read, folded constants, outputs
    that are read on, and an input that is passed through."""
    made, source_ = np.random.default_rng(seed), random.Random(seed)
    weights = [numpy_helper.from_array(made.standard_normal((4, 4)).astype(np.float32), f"w{k}") for k in range(3)]
    nodes = [
        helper.make_node("Neg", ["w0"], ["folded"]), helper.make_node("Abs", ["folded"], ["folded twice"], name="abs"),
    ]  # fmt: skip
    tensors, outputs = ["x"], []
    for k in range(source_.randint(3, 14)):
        read = source_.choice(tensors)
        name = f"node{k}" if source_.random() < 0.7 else ""
        kind = source_.choice(("MatMul", "Add", "Relu", "Split", "Const"))
        if kind == "Split":
            halves = [f"half{k}a", f"half{k}b"]
            nodes.append(helper.make_node("Split", [read], halves, name=name, axis=1, num_outputs=2))
            nodes.append(helper.make_node("Concat", halves[::-1], [f"t{k}"], axis=1))
        elif kind == "MatMul":
            nodes.append(
                helper.make_node("MatMul", [read, source_.choice(("w0", "w1", "w2", "folded"))], [f"t{k}"], name=name)
            )
        elif kind == "Const":
            nodes.append(helper.make_node("Add", [read, "folded twice"], [f"t{k}"], name=name))
        elif kind == "Add":
            nodes.append(helper.make_node("Add", [read, source_.choice(tensors)], [f"t{k}"], name=name))
        else:
            nodes.append(helper.make_node("Relu", [read], [f"t{k}"], name=name))
        tensors.append(f"t{k}")
    outputs = sorted({tensors[-1], source_.choice(tensors[1:])})
    graph = helper.make_graph(
        nodes, "random", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 4))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 4)) for name in outputs], weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
