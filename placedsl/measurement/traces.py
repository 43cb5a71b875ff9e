"""Traces in Chrome's format that other profilers wrote: PyTorch's and ONNX Runtime's; the median time of each operator.

ONNX Runtime names nodes.  PyTorch names what stands under ``record_function``, which a graph may call the same, and
otherwise operators by type: the times of a type are then those of its outermost calls.  Where a trace has kernels of a
GPU, the time of a call is the sum over the kernels that it has launched.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.readers.json_text import parsed

#: What ONNX Runtime adds to the name of a node.
KERNEL_TIME = "_kernel_time"
_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
#: Regions that PyTorch marks itself.
_OWN_REGIONS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)", "[pytorch", "PyTorch Profiler")
_MICRO = 1e-6

#: By ``("node", name)`` or ``("type", name)``: seconds of each call.
Calls = Mapping[tuple[str, str], list[float]]


def looks_like(root: object) -> bool:
    """Whether a JSON value is a trace."""
    events = root.get("traceEvents") if isinstance(root, dict) else root
    return isinstance(events, list) and any(isinstance(event, dict) and "ph" in event for event in events)


def medians(source: Source) -> dict[tuple[str, str], float]:
    """Median seconds by node or by type; InputError where a trace has no operators."""
    root = parsed(source)
    if not looks_like(root):
        hint = "a trace of torch.profiler or ONNX Runtime is expected"
        raise InputError([Diagnostic("this is no trace in Chrome's format", source.whole(), hint)])
    events = [event for event in (root["traceEvents"] if isinstance(root, dict) else root) if _is_slice(event)]
    calls = _of_onnx_runtime(events) or _of_torch(events)
    if not calls:
        hint = "PyTorch: activities = [CPU] at least; ONNX Runtime: enable_profiling"
        raise InputError([Diagnostic("this trace has no operators", source.whole(), hint)])
    return {key: float(np.median(times)) for key, times in calls.items()}


def _is_slice(event: Any) -> bool:
    """Whether an entry is a piece of time with a name."""
    return (
        isinstance(event, dict) and event.get("ph") == "X" and isinstance(event.get("name"), str)
        and all(type(event.get(key)) in (int, float) for key in ("ts", "dur"))
        and np.isfinite(event["ts"]) and 0 <= event["dur"] < np.inf
    )  # fmt: skip


def _of_onnx_runtime(events: Iterable[Mapping[str, Any]]) -> Calls:
    out: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(KERNEL_TIME):
            out["node", event["name"].removesuffix(KERNEL_TIME)].append(event["dur"] * _MICRO)
    return out


def _of_torch(events: list[Mapping[str, Any]]) -> Calls:
    on_device = _kernels(events)
    out: dict[tuple[str, str], list[float]] = defaultdict(list)
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    for event in events:
        if event.get("cat") == "user_annotation" and not event["name"].startswith(_OWN_REGIONS):
            out["node", event["name"]].append(event["dur"] * _MICRO)
    inner = _Inner(operators)
    if on_device:  # what a region has launched, not how long the host needed to launch it
        out = defaultdict(list)
        for event in events:
            if event.get("cat") == "user_annotation" and not event["name"].startswith(_OWN_REGIONS):
                out["node", event["name"]].append(inner.sum(event, on_device) * _MICRO)
    for event in inner.outermost():
        kind = event["name"].removeprefix("aten::")
        seconds = inner.sum(event, on_device) if on_device else event["dur"]
        out["type", kind].append(seconds * _MICRO)
    return out


def _kernels(events: Iterable[Mapping[str, Any]]) -> dict[object, float]:
    """Microseconds of the kernels that each operator launched, by the number that both have."""
    out: dict[object, float] = defaultdict(float)
    for event in events:
        if event.get("cat") in _KERNELS:
            out[_number(event)] += event["dur"]
    return dict(out)


def _number(event: Mapping[str, Any]) -> object:
    arguments = event.get("args")
    return arguments.get("External id") if isinstance(arguments, dict) else None


class _Inner:
    """Calls by thread in the order in which they begin, and which lie within which."""

    def __init__(self, operators: Iterable[Mapping[str, Any]]) -> None:
        self.of_thread: dict[object, list[Mapping[str, Any]]] = defaultdict(list)
        for event in operators:
            self.of_thread[str(event.get("tid"))].append(event)
        for own in self.of_thread.values():
            own.sort(key=lambda event: (event["ts"], -event["dur"]))
        self.begins = {thread: [event["ts"] for event in own] for thread, own in self.of_thread.items()}

    def outermost(self) -> Iterable[Mapping[str, Any]]:
        """The calls that lie within no other."""
        for own in self.of_thread.values():
            end = -np.inf
            for event in own:
                if event["ts"] >= end:
                    end = event["ts"] + event["dur"]
                    yield event

    def sum(self, around: Mapping[str, Any], on_device: Mapping[object, float]) -> float:
        """Microseconds on the device of a call and of all that lie within it."""
        thread = str(around.get("tid"))
        begins = self.begins.get(thread, [])
        first = bisect.bisect_left(begins, around["ts"])
        last = bisect.bisect_right(begins, around["ts"] + around["dur"])
        numbers = {_number(event) for event in self.of_thread[thread][first:last]}
        return sum(on_device.get(number, 0.0) for number in numbers)
