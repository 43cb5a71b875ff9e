"""ONNX models cut into parts: run one after another by ONNX's own evaluator, they give what the whole model gives."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from onnx import checker, helper, load
from onnx.reference import ReferenceEvaluator
from support.onnx_models import chain, model, random_model, source

import placedsl
from placedsl.cli.main import main
from placedsl.diagnostics import InputError
from placedsl.export import onnx_files, registry
from placedsl.problem.plan import Plan

SEEDS = range(12)
SPEC = """graph from "model.onnx" { format = "onnx" }
device gpu[3]: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 100 GB/s }
device cpu: host { compute = 100 GFLOP/s, memory_bandwidth = 20 GB/s }
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""


def run_parts(folder: Path, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    known = dict(given)
    for part in manifest["parts"]:
        own = load(folder / part["file"])
        checker.check_model(own)
        made = ReferenceEvaluator(own).run(None, {name: known[name] for name in part["inputs"]})
        known |= dict(zip(part["outputs"], made, strict=True))
    return known


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_give_what_the_whole_gives(seed: int, tmp_path: Path) -> None:
    """Any placement, so that devices hold several pieces."""
    whole = random_model(seed)
    (tmp_path / "model.onnx").write_bytes(whole.SerializeToString())
    (tmp_path / "spec.place").write_text(SPEC, encoding="utf-8")
    spec = placedsl.load(tmp_path / "spec.place")
    given = {"x": np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32)}
    expected = dict(zip([o.name for o in whole.graph.output], ReferenceEvaluator(whole).run(None, given), strict=True))
    source_ = random.Random(seed)
    for case in range(4):
        places = {str(node): source_.choice(("gpu[1]", "gpu[2]", "gpu[3]", "cpu")) for node in spec.problem.graph.ids}
        (tmp_path / "answer.json").write_text(json.dumps(places), encoding="utf-8")
        out = tmp_path / f"out{case}"
        paths = [str(tmp_path / "spec.place"), str(tmp_path / "answer.json")]
        assert main(["export", *paths, "--to", "onnx-split", "-o", str(out)]) == 0
        found = run_parts(out, given)
        for name, value in expected.items():
            assert np.array_equal(found[name], value), (seed, case, name)
        assert main(["evaluate", paths[0], str(out), "--from", "onnx-split"]) == 0
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        by_device = {own: part["device"] for part in manifest["parts"] for own in part["nodes"]}
        assert by_device == places
        for part in manifest["parts"]:  # read by the operators of the files as well
            del part["nodes"]
        (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        assert main(["evaluate", paths[0], str(out), "--from", "onnx-split"]) == 0


def test_large_weights_are_in_a_file_beside_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_files, "_LARGE", 30)
    monkeypatch.setattr(onnx_files, "_SMALL", 8)
    (tmp_path / "model.onnx").write_bytes(chain(["a", "b", "c"]).data)
    (tmp_path / "spec.place").write_text(SPEC, encoding="utf-8")
    (tmp_path / "answer.json").write_text(json.dumps({"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[2]"}), encoding="utf-8")
    out = tmp_path / "out"
    assert main(["export", str(tmp_path / "spec.place"), str(tmp_path / "answer.json"), "--to", "onnx-split",
                 "-o", str(out)]) == 0  # fmt: skip
    assert sorted(file.name for file in out.iterdir()) == [
        "manifest.json", "part1.onnx", "part1.onnx.data", "part2.onnx", "part2.onnx.data"
    ]  # fmt: skip
    given = {"x": np.ones((2, 3), dtype=np.float32)}
    (expected,) = ReferenceEvaluator(load(tmp_path / "model.onnx")).run(None, given)
    assert np.array_equal(run_parts(out, given)["c_out"], expected)


def test_what_cannot_be_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No ONNX model, no spec, weights that are not there, an answer of another model, bytes to stdout."""
    places = {"a": "gpu[1]", "b": "gpu[2]"}
    plan = _plan(places)
    short = source(model([helper.make_node("Neg", ["x"], ["y"], name="a")], {"x": (2,)}))
    for model_, told in ((None, "the model's file is needed"), (short, "the model has no operator 'b'")):
        with pytest.raises(InputError, match=told):
            registry.files(plan, "onnx-split", model=model_)
    absent = chain(["a", "b"])
    product, negative = (
        helper.make_node("MatMul", ["x", "w"], ["y"], name="a"),
        helper.make_node("Neg", ["y"], ["z"], name="b"),
    )
    holed = model([product, negative], {"x": (2, 3)}, {"w": (3, 3)})
    with pytest.raises(InputError, match=r"weights of 'model\.onnx' cannot be read"):
        registry.files(plan, "onnx-split", model=source(holed))
    assert registry.files(plan, "onnx-split", model=absent)
    (tmp_path / "model.onnx").write_bytes(absent.data)
    (tmp_path / "spec.place").write_text(SPEC, encoding="utf-8")
    (tmp_path / "answer.json").write_text(json.dumps(places), encoding="utf-8")
    command = ["export", str(tmp_path / "spec.place"), str(tmp_path / "answer.json"), "--to", "onnx-split"]
    assert main(command) == 2
    assert "-o FOLDER is needed: 'part1.onnx' is no text" in capsys.readouterr().err


def _plan(places: dict[str, str]) -> Plan:
    text = "graph {\n" + "".join(f"    node {own} {{ time = 1 ms }}\n" for own in places)
    text += f"    {' -> '.join(places)}\n}}\ndevice gpu[2]: accelerator\nminimize time_per_sample\n"
    spec = placedsl.loads(text)
    return Plan.of(spec.problem, spec.evaluate(places))


def test_two_way_plans_are_refused() -> None:
    nodes = "".join(f"    node {name} {{ time = 1 ms }}\n" for name in "abc")
    text = f"graph {{\n{nodes}    a -> b -> c\n}}\n"
    text += "device gpu[2]: accelerator\nschedule dataflow\nminimize latency\n"
    spec = placedsl.loads(text)
    plan = Plan.of(spec.problem, spec.evaluate({"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[1]"}))
    (reason,) = registry.refused(plan, "onnx-split")
    assert "two devices may send to each other" in reason
