"""ONNX models that are malformed, cut off or damaged: read, or refused with a message."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from support.onnx_models import chained_functions, graph_of, light_folder, model

from placedsl import InputError, loads
from placedsl.diagnostics import Source
from placedsl.graph.readers import read

node = helper.make_node


def broken() -> list[tuple[str, Any, str]]:
    """Models that cannot be used, with a part of what is said."""
    relu = model([node("Relu", ["x"], ["y"])], {"x": [2]})
    out = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    inside = helper.make_graph([node("Relu", ["x"], ["z"])], "inside", [], [out])
    choice = node("If", ["x"], ["y"], then_branch=inside, else_branch=inside)
    unknown = helper.make_node("Odd", ["x"], ["y"], domain="some.where")
    misfit = node("Einsum", ["x"], ["y"], equation="ij,jk->ik")

    def of(*nodes: Any) -> Any:
        return model(nodes, {"x": [2]})

    return [
        ("text in place of a model", b"\x08 this is not a model", "no ONNX model, or it was cut off"),
        ("cut off", relu.SerializeToString()[:-9], "cut off"),
        ("no operators", model([], {"x": [2]}, outputs=["x"]), "has no operators"),
        (
            "nothing makes it",
            of(node("Relu", ["w"], ["y"], name="r")),
            r"\(Relu\) reads 'w', which nothing makes",
        ),
        ("made twice", of(node("Relu", ["x"], ["y"]), node("Exp", ["x"], ["y"])), "tensor 'y' is made 2 times"),
        ("no shape", of(unknown, node("Relu", ["y"], ["z"])), r"operator 'y' \(Odd\): the shape of 'y' is not known"),
        ("functions that call themselves", chained_functions(1, "f1"), "call themselves: 'f0' -> 'f1' -> 'f0'"),
        ("functions that double", chained_functions(60), "has more than 10.15 operators, more than 200,000"),
        ("elements", model([node("Relu", ["x"], ["y"])], {"x": [10**9, 10**9, 10**9]}), r"'x' has more than 1e\+18"),
        ("control flow", of(choice), r"operator 'y' \(If\) holds a graph of its own"),
        ("inputs that do not fit", of(misfit), "einsum|Einsum|shape|operands"),
    ]


@pytest.mark.parametrize(("made", "message"), [pytest.param(m, t, id=n) for n, m, t in broken()])
def test_malformed_models(made: Any, message: str) -> None:
    data = made if isinstance(made, bytes) else made.SerializeToString()
    with pytest.raises(InputError, match=message):
        read(Source("model.onnx", "", data=data))


@pytest.mark.parametrize("length", range(0, 132, 4))
def test_a_model_that_is_cut_off_is_told_as_such(length: int, tmp_path: Path) -> None:
    nodes = [node("Conv", ["x", "w"], ["y"]), node("Relu", ["y"], ["z"], name="last")]
    whole = model(nodes, {"x": [1, 3, 9, 9]}, {"w": [4, 3, 3, 3]}).SerializeToString()
    assert len(whole) > length
    (tmp_path / "m.onnx").write_bytes(whole[:length])
    with pytest.raises(InputError):
        read(tmp_path / "m.onnx")


def test_a_model_that_goes_round_in_a_circle() -> None:
    nodes = [node("Add", ["x", "z"], ["y"], name="a"), node("Relu", ["y"], ["z"], name="b")]
    made = model(nodes, {"x": [2]}, outputs=[])
    made.graph.value_info.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "yz")
    with pytest.raises(InputError, match=r"the graph has a cycle: '[ab]' -> '[ab]' -> '[ab]'"):
        graph_of(made)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_models_are_read_or_refused(seed: int) -> None:
    dice = random.Random(seed)
    damaged = bytearray((light_folder() / "light_squeezenet.onnx").read_bytes())
    for _ in range(dice.randint(1, 4)):
        damaged[dice.randrange(1, len(damaged))] = dice.randrange(256)
    with contextlib.suppress(InputError):  # anything else fails
        assert read(Source("model.onnx", "", data=bytes(damaged))).nodes > 0


def test_where_the_package_is_not_there_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model([node("Relu", ["x"], ["y"])], {"x": [2]}).SerializeToString())
    monkeypatch.setattr("placedsl.graph.readers.onnx.find_spec", lambda _: None)
    with pytest.raises(InputError) as caught:
        loads('graph from "m.onnx"\ndevice gpu: accelerator\nminimize devices_used', tmp_path)
    (only,) = caught.value.diagnostics
    assert only.span is not None
    assert (only.span.line, only.span.column) == (1, 12)
    assert "pip install 'placedsl[onnx]'" in only.hint
