"""Traces of PyTorch and ONNX Runtime, as they write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placedsl import InputError
from placedsl.diagnostics import Source
from placedsl.measurement import traces


def read(root: Any) -> dict[tuple[str, str], float]:
    return {key: round(seconds * 1e6, 6) for key, seconds in traces.medians(Source("t.json", json.dumps(root))).items()}


def piece(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: object) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": tid, "args": args}


def test_onnx_runtime_names_nodes() -> None:
    events = [piece("Session", "model_run", 0, 99)]
    for k, times in enumerate(((5, 40), (7, 10), (6, 20))):
        events += [
            piece("Node", "conv1_fence_before", 100 * k, 1), piece("Node", "conv1_kernel_time", 100 * k + 1, times[0]),
            piece("Node", "/a/relu_kernel_time", 100 * k + 9, times[1]),
        ]  # fmt: skip
    assert read(events) == {("node", "conv1"): 6, ("node", "/a/relu"): 20}


def test_operators_of_pytorch_within_others_do_not_count() -> None:
    events = [
        piece("cpu_op", "aten::linear", 0, 10), piece("cpu_op", "aten::addmm", 1, 8), piece("cpu_op", "aten::t", 2, 1),
        piece("cpu_op", "aten::linear", 20, 30), piece("cpu_op", "aten::addmm", 21, 20),
        piece("cpu_op", "aten::addmm", 60, 4), piece("cpu_op", "aten::relu", 5, 3, tid=2),
        piece("user_annotation", "ProfilerStep#1", 0, 70), piece("user_annotation", "layer0", 0, 52),
        {"ph": "i", "name": "[memory]", "ts": 3}, {"ph": "M", "name": "process_name"},
    ]  # fmt: skip
    assert read({"traceEvents": events}) == {
        ("node", "layer0"): 52, ("type", "linear"): 20, ("type", "addmm"): 4, ("type", "relu"): 3,
    }  # fmt: skip


def test_kernels_go_before_the_time_of_the_host() -> None:
    """A call takes what the kernels take that it, or an operator within it, has launched."""
    events = [
        piece("user_annotation", "layer0", 0, 12), piece("cpu_op", "aten::linear", 0, 10, **{"External id": 1}),
        piece("cpu_op", "aten::addmm", 1, 8, **{"External id": 2}),
        piece("cpu_op", "aten::relu", 11, 1, **{"External id": 3}),
        piece("cpu_op", "aten::relu", 50, 1, **{"External id": 4}),
        piece("kernel", "gemm", 30, 100, tid=9, **{"External id": 2}),
        piece("kernel", "bias", 130, 20, tid=9, **{"External id": 2}),
        piece("kernel", "relu", 150, 7, tid=9, **{"External id": 3}),
        piece("kernel", "relu", 190, 9, tid=9, **{"External id": 4}),
    ]  # fmt: skip
    assert read({"traceEvents": events}) == {("node", "layer0"): 127, ("type", "linear"): 120, ("type", "relu"): 8}


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"nodes": []}, "no trace in Chrome's format"), ([1, 2], "no trace in Chrome's format"),
        ({"traceEvents": [{"ph": "M", "name": "x"}]}, "has no operators"),
        ({"traceEvents": [piece("cpu_op", "aten::relu", 0, -1), {"ph": "X", "cat": "cpu_op"}]}, "has no operators"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_told(root: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(root)
