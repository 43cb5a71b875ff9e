"""Modules and layers of operators, from exported programs and ONNX models."""

from __future__ import annotations

import pytest
from onnx import helper
from support.onnx_models import graph_of, model
from support.paths import ROOT

from placedsl.graph.readers import read
from placedsl.graph.readers.module_paths import layer, of_onnx

SCOPES = "pkg.torch.onnx.name_scopes"


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("model.layers.3.mlp.up_proj", "model.layers.3"), ("model.layers.13", "model.layers.13"),
        ("encoder.blocks.2.mlp.1", "encoder.blocks.2"), ("layer1.0.conv1", "layer1.0"), ("4", "4"),
        ("model.norm", None), ("lm_head", None), ("h2.out", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_a_layer_is_the_path_up_to_its_first_number(module: str | None, expected: str | None) -> None:
    assert layer(module) == expected


@pytest.mark.parametrize(
    ("name", "metadata", "expected"),
    [
        ("/model/layers.3/mlp/up_proj/MatMul", {}, "model.layers.3.mlp.up_proj"),
        ("/body/body.1/body.1.0/Gemm", {}, "body.1.0"), ("/layers.0_1/act_1/Relu", {}, "layers.0.act_1"),
        ("/MatMul_2", {}, None), ("MatMul_2", {}, None), ("bert/encoder/MatMul", {}, None),
        ("node_mul", {SCOPES: "['', 'model', 'model.layers.0', 'mul']"}, "model.layers.0"),
        ("node_mul", {SCOPES: "['', 'mul']"}, None), ("node_mul", {SCOPES: "['mul']"}, None),
        ("node_mul", {SCOPES: "[1, 2, 3]"}, None), ("node_mul", {SCOPES: "'ab'"}, None),
        ("node_mul", {SCOPES: "['model', "}, None), ("node_mul", {"another": "['', 'model', 'mul']"}, None),
    ],
)  # fmt: skip
def test_modules_of_onnx_operators(name: str, metadata: dict[str, str], expected: str | None) -> None:
    assert of_onnx(name, metadata) == expected


def test_layers_of_an_onnx_model() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="/model/embed/Relu"),
        helper.make_node("Relu", ["a"], ["b"], name="/model/layers.1/act/Relu"),
        helper.make_node("Relu", ["b"], ["c"], name="c"),
        helper.make_node("Relu", ["c"], ["d"], name="d"),
    ]
    nodes[2].metadata_props.add(key=SCOPES, value="['', 'model', 'model.layers.10', 'c']")
    graph = graph_of(model(nodes, {"x": [4]}))
    assert graph.attributes["module"].tolist() == ["model.embed", "model.layers.1.act", "model.layers.10", None]
    assert graph.attributes["layer"].tolist() == [None, "model.layers.1", "model.layers.10", None]


def test_a_model_without_module_names_has_no_such_attributes() -> None:
    graph = graph_of(model([helper.make_node("Relu", ["x"], ["a"], name="a")], {"x": [4]}))
    assert not {"module", "layer"} & set(graph.attributes)


def test_layers_of_an_exported_program() -> None:
    graph = read(ROOT / "docs" / "encoder.pt2")
    layers = graph.attributes["layer"]
    assert set(layers) == {None, *(f"body.layers.{k}" for k in range(4))}
    assert [i for i, own in zip(graph.ids, layers, strict=True) if own is None] == ["embedding", "add", "linear_16"]
