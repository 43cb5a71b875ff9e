"""Sizes of dimensions that an ONNX model has as numbers: replaced where all operators follow, else refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.onnx_models import graph_of, light_folder, model, source

import placedsl
from placedsl.diagnostics import InputError
from placedsl.graph.readers import read
from placedsl.graph.readers.sizes import Size


class Making:
    """A model for one batch, or with a symbolic one (0): shapes of operators say the batch, or leave it open (-1)."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.nodes: list[Any] = []
        self.weights: dict[str, Sequence[int]] = {}
        self.constants: list[Any] = []

    def add(self, kind: str, *reads: str, **more: Any) -> str:
        made = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(reads), [made], name=f"n{len(self.nodes)}", **more))
        return made

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = shape
        return name

    def whole(self, *numbers: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(numbers, dtype=np.int64), name))
        return name

    def reshape(self, x: str, times: int, *rest: int) -> str:
        """A shape that begins with a multiple of the batch."""
        return self.add("Reshape", x, self.whole(times * self.batch or -1, *rest))

    def model(self, *shape: int) -> Any:
        inputs = {"x": [self.batch or "batch", *shape]}
        return model(self.nodes, inputs, self.weights, initialisers=self.constants)


def random_layers(batch: int, seed: int) -> Any:
    """Layers of attention, feed-forward and pooling, as exporters write them."""
    chosen, made = random.Random(seed), Making(batch)
    length, heads, width = chosen.choice((3, 5, 8)), chosen.choice((2, 3, 4)), chosen.choice((4, 6))
    whole = heads * width
    x = "x"
    for _ in range(chosen.randint(1, 4)):
        part = chosen.randrange(5)
        if part == 0:  # heads as a dimension
            y = made.add("Transpose", made.reshape(x, 1, length, heads, width), perm=[0, 2, 1, 3])
            scores = made.add("MatMul", y, made.add("Transpose", y, perm=[0, 1, 3, 2]))
            y = made.add("Transpose", made.add("MatMul", made.add("Softmax", scores), y), perm=[0, 2, 1, 3])
            y = made.reshape(y, 1, length, whole)
        elif part == 1:  # samples and heads as one dimension
            y = made.add("Transpose", made.reshape(x, 1, length, heads, width), perm=[0, 2, 1, 3])
            y = made.reshape(y, heads, length, width)
            y = made.add("MatMul", made.add("MatMul", y, made.add("Transpose", y, perm=[0, 2, 1])), y)
            y = made.add("Transpose", made.reshape(y, 1, heads, length, width), perm=[0, 2, 1, 3])
            y = made.reshape(y, 1, length, whole)
        elif part == 2:  # samples and positions as one dimension
            y = made.add("MatMul", made.reshape(x, length, whole), made.weight(whole, 7))
            y = made.add("MatMul", made.add("Relu", y), made.weight(7, whole))
            y = made.reshape(y, 1, length, whole)
        elif part == 3:
            y = made.add("Add", made.add("Mul", x, made.weight(whole)), made.weight(1, length, whole))
        else:
            y = made.add("ReduceMean", x, axes=[1], keepdims=1)
        x = made.add("Add", x, y)
    if chosen.random() < 0.5:
        x = made.add("Gemm", made.add("Flatten", x), made.weight(length * whole, 9))
    made.add("Relu", x)
    return made.model(length, whole)


@pytest.mark.parametrize("seed", range(60))
def test_a_model_for_one_batch_is_the_same_for_another(seed: int) -> None:
    """Against the same model with a symbolic batch, whose shapes leave it open."""
    chosen = random.Random(1000 + seed)
    old, new = chosen.choice((1, 1, 2, 3, 4, 6)), chosen.choice((1, 2, 5, 8, 32))
    expected = graph_of(random_layers(0, seed), batch=new)
    for name in ("batch", "x[0]"):
        found = graph_of(random_layers(old, seed), **{name: new})
        assert found.ids == expected.ids
        for key in ("flops", "bytes"):
            assert found.attributes[key].tolist() == expected.attributes[key].tolist()
        assert found.tensor_bytes.tolist() == expected.tensor_bytes.tolist()
        assert found.memory.tolist() == expected.memory.tolist()


@pytest.mark.parametrize("path", sorted(light_folder().glob("*.onnx")), ids=lambda path: path.stem)
def test_published_models_for_one_sample(path: Any) -> None:
    one, eight = read(path), read(path, None, {"batch": Size(8)})
    assert eight.ids == one.ids
    assert eight.attributes["flops"].tolist() == (8 * one.attributes["flops"]).tolist()
    assert eight.tensor_bytes.tolist() == (8 * one.tensor_bytes).tolist()
    assert eight.memory.tolist() == one.memory.tolist()


def refused(made: Any, **sizes: int) -> str:
    with pytest.raises(InputError) as caught:
        graph_of(made, **sizes)
    (found,) = caught.value.diagnostics
    assert "export the model with a symbolic dimension" in found.hint
    return found.message


@pytest.mark.parametrize("old", [1, 2, 4])
def test_operators_that_do_not_follow_are_named(old: int) -> None:
    token = Making(old)
    token.add("Concat", "x", token.weight(old, 1, 8), axis=1)
    assert "the shape that operator 'n0' (Concat) makes cannot be told, or does not fit" in refused(
        token.model(5, 8), batch=3
    )
    if old > 1:
        middle = Making(old)
        middle.add("Reshape", "x", middle.whole(5, -1, 8))
        assert "operator 'n0' (Reshape) makes its shape from constants" in refused(middle.model(5, 8), batch=3)
    first = Making(old)
    first.add("Relu", first.add("Gather", "x", first.whole(0), axis=0))
    assert "operator 'n0' (Gather) makes the same shape" in refused(first.model(5, 8), batch=3)
    length = Making(old)
    length.reshape("x", 1, 5, 2, 4)
    assert "operator 'n0' (Reshape)" in refused(length.model(5, 8), **{"x[1]": 7})


def test_an_axis_that_operators_follow_is_replaced() -> None:
    made = Making(2)
    made.add("Relu", made.add("MatMul", "x", made.weight(8, 3)))
    graph = graph_of(made.model(5, 8), **{"x[1]": 7})
    assert graph.tensor_bytes.tolist() == [2 * 7 * 3 * 4]
    assert "does not fit" in refused(made.model(5, 8), **{"x[2]": 7})
    both = graph_of(made.model(5, 8), **{"x[1]": 7, "batch": 9})
    assert both.tensor_bytes.tolist() == [9 * 7 * 3 * 4]


def test_expanded_heads_follow() -> None:
    for old in (1, 2):
        made = Making(old)
        heads = made.add("Expand", made.add("Unsqueeze", "x", made.whole(2)), made.whole(old, 3, 4, 5))
        made.add("Relu", made.add("Reshape", heads, made.whole(old, 12, 5)))
        graph = graph_of(made.model(3, 5), batch=7)
        assert graph.tensor_bytes.tolist()[-1] == 7 * 12 * 5 * 4


def test_every_input_as_long_as_the_first_is_of_the_batch() -> None:
    nodes = [helper.make_node("Add", ["x", "y"], ["a"]), helper.make_node("Mul", ["a", "z"], ["b"])]
    made = model(nodes, {"x": [2, 4], "y": [2, 4], "z": [1, 4]})
    graph = graph_of(made, batch=6)
    assert graph.tensor_bytes.tolist() == [6 * 4 * 4]


def test_a_dimension_called_batch_is_the_batch() -> None:
    made = model([helper.make_node("Add", ["x", "y"], ["a"])], {"x": [2, 4], "y": ["batch", 2, 4]})
    assert graph_of(made, batch=6).attributes["flops"].tolist() == [6 * 2 * 4]


def test_unknown_names_are_told_the_dimensions() -> None:
    made = model([helper.make_node("Add", ["x", "y"], ["a"])], {"x": [2, 4], "y": ["samples", 2, 4]})
    with pytest.raises(InputError) as caught:
        graph_of(made, samples=1, bach=3, other=4)
    assert [d.hint for d in caught.value.diagnostics] == [
        "did you mean 'batch'? its dimensions: samples, batch, x[0], x[1], y[1], y[2]",
        "its dimensions: samples, batch, x[0], x[1], y[1], y[2]",
    ]


def test_the_spec_says_where_the_number_stands(tmp_path: Any) -> None:
    made = Making(1)
    made.add("Concat", "x", made.weight(1, 1, 8), axis=1)
    (tmp_path / "m.onnx").write_bytes(source(made.model(5, 8)).data)
    text = 'graph from "m.onnx" { batch = 4 }\ndevice gpu: accelerator { compute = 1 TFLOP/s }\n'
    with pytest.raises(InputError) as caught:
        placedsl.loads(text + "minimize time_per_sample\n", tmp_path)
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.span.line, found.span.column, found.span.length) == (1, 23, 5)
