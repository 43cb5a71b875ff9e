"""``placedsl profile``: what is asked for wrongly, traces, and packages that are missing."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.paths import ROOT

import placedsl
from placedsl.cli.main import main

DOCS = ROOT / "docs"
PICTURE = str(DOCS / "picture.onnx")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a model is expected"),
        ([PICTURE], "--device is expected"),
        (["--links", PICTURE], "MODEL has no meaning with --links"),
        (["--links", "--beside", "2"], "--beside has no meaning with --links"),
        (["--links", "--rank", "0"], "--rank and --address go together"),
        ([PICTURE, "--device", "cpu", "--backend", "nccl"], "--backend is for --links"),
        ([PICTURE, "--device", "cpu", "--size", "batch=many"], "--size batch=many: a whole number"),
        (["--trace", "t.json"], "--as is expected"),
        (["--trace", "t.json", "--as", "gpu", "--scale"], "--scale has no meaning with --trace"),
        ([PICTURE, "--device", "cpu", "-o", "nowhere/times.csv"], "there is no folder 'nowhere'"),
        (["model.py:made", "--device", "cpu"], "-o FILE is expected: the graph of the spec is written beside it"),
        (["model.py:made", "--device", "cpu", "-o", "times.json"], "-o times.json: the table is CSV"),
        (["model.py:made", "--device", "cpu", "-o", "t.csv", "--size", "x=2"], "--size has no meaning with model.py"),
        ([PICTURE, "--device", "cuda", "--cpu-time"], "--cpu-time is for --device cpu"),
        (["--links", "--training"], "--training has no meaning with --links"),
    ],
)
def test_what_is_asked_for_wrongly(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_description_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = ROOT / "examples" / "data" / "decoder-6-blocks.json"
    assert main(["profile", str(graph), "--device", "cpu"]) == 1
    assert "is of the format 'native', which is not run" in capsys.readouterr().err
    times = str(tmp_path / "times.csv")
    assert main(["profile", PICTURE, "--device", "cpu", "--training", "-o", times]) == 1
    assert "has forward passes only" in capsys.readouterr().err
    assert main(["profile", PICTURE, "--device", "cpu", "--cpu-time"]) == 1
    assert "ONNX Runtime tells times of the clock only" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("torch") is not None, reason="the package is installed")
def test_models_of_python_files_and_configurations_need_their_packages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = str(tmp_path / "times.csv")
    for model, package in (("model.py:made", "torch"), (str(DOCS / "llama-3-8b.json"), "torch and transformers")):
        for training in ([], ["--training"]):
            assert main(["profile", model, "--device", "cpu", "-o", times, *training]) == 1
            assert f"measuring this needs the package {package}" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("onnxruntime") is not None, reason="the package is installed")
def test_a_package_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", PICTURE, "--device", "cpu"]) == 1
    said = capsys.readouterr().err
    assert "measuring this needs the package onnxruntime" in said
    assert "pip install 'placedsl[measure]'" in said


def test_a_trace_becomes_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of nodes and types are kept, others counted; the spec takes the times."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": name, "ts": at, "dur": 40.0, "tid": 1, "args": {}}
        for at, name in ((0.0, "conv1"), (100.0, "elsewhere"))
    ]
    events += [{"ph": "X", "cat": "cpu_op", "name": "aten::Relu", "ts": 300.0, "dur": 8.0, "tid": 1, "args": {}}]
    trace, times = tmp_path / "trace.json", tmp_path / "times.csv"
    trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    words = ["profile", PICTURE, "--trace", str(trace), "--as", "gpu", "--size", "batch=16", "-o", str(times)]
    assert main(words) == 0
    text = f'graph from "picture.onnx" {{ batch = 16, profile = "{times.as_posix()}" }}\n'
    text += "device gpu: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 1 TB/s }\n"
    text += "interconnect { bandwidth = 1 GB/s }\nminimize time_per_sample\n"
    spec = placedsl.loads(text, DOCS)
    time = dict(zip(spec.problem.graph.ids, spec.problem.time[:, 0], strict=True))
    assert time["conv1"] == pytest.approx(40e-6)
    assert time["relu1"] == pytest.approx(8e-6)
    assert "1 of its 3 names are of no node or type of picture.onnx" in " ".join(spec.problem.graph.notes)
    assert int(spec.problem.measured.sum()) == 4
    trace.write_text(json.dumps({"traceEvents": events[1:2]}), encoding="utf-8")
    assert main(words) == 1
    assert "nothing in this trace is called as a node or a type" in capsys.readouterr().err
