"""ONNX models, run node by node by ONNX Runtime, whose own profiler takes the times.

Nodes are run as they are written, without fusion, for the times to be those of the graph's nodes; the whole model is
run with the runtime's usual optimisations, and may be faster than the sum.  Initialisers whose data is not there are
random.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Diagnostic, InputError, Source, UsageError
from placedsl.graph.readers import onnx as reader
from placedsl.measurement.runs import Pass, Request, Runnable
from placedsl.measurement.traces import KERNEL_TIME

#: Passes for which one session is made; its profiler writes when it ends.
_AT_ONCE = 5
_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
#: ONNX Runtime parses models of up to 2 GiB that are not in a file.
_LARGEST = 2**31 - 1


def prepare(request: Request, source: Source) -> Runnable:
    """The model of a request, with inputs; InputError where ONNX Runtime does not take it."""
    import onnxruntime

    if request.interpreted:
        raise UsageError("--interpreted is for programs of PyTorch")
    provider = _provider(request.device)
    model, operators = reader.named(source, request.sizes)
    _fill(model, request.model.parent)
    if model.ByteSize() > _LARGEST:
        hint = "export it in parts, or profile it by PyTorch"
        raise InputError([Diagnostic(f"'{request.model}' with its weights has more than 2 GiB", None, hint)])
    inputs = _inputs(model)
    running = _Running(model.SerializeToString(), inputs, provider, request.threads, operators)
    settings = {
        "runtime": f"onnxruntime {onnxruntime.__version__}", "device": request.device,
        "threads": str(request.threads or "as the runtime chooses"),
        "inputs": ", ".join("x".join(map(str, value.shape)) or "1" for value in inputs.values()),
    }  # fmt: skip
    digest = hashlib.sha256(source.data).hexdigest()
    return Runnable(operators, settings, digest, [], running.passes, _AT_ONCE, running.allocated)


def _provider(device: str) -> tuple[str, dict[str, str]]:
    """The execution provider of a device; InputError where this build has none."""
    import onnxruntime

    kind, _, number = device.partition(":")
    name = _PROVIDERS.get(kind, "")
    if name not in onnxruntime.get_available_providers():
        hint = f"this build of ONNX Runtime has {', '.join(onnxruntime.get_available_providers())}"
        raise InputError([Diagnostic(f"--device {device}: ONNX Runtime has no provider for it", None, hint)])
    return name, {"device_id": number} if number else {}


def _fill(model: Any, folder: Path) -> None:
    """The data of initialisers that lie outside of the file; random where it is not there."""
    import onnx
    from onnx import external_data_helper, helper

    for tensor in model.graph.initializer:
        if not external_data_helper.uses_external_data(tensor):
            continue
        try:
            external_data_helper.load_external_data_for_tensor(tensor, str(folder))
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
        except (OSError, ValueError, onnx.checker.ValidationError):
            value = _random(tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type))
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))


def _inputs(model: Any) -> dict[str, Any]:
    """A value for each input, by name: small random numbers, zeros where it holds no fractions."""
    from onnx import helper

    constants = {tensor.name for tensor in model.graph.initializer}
    out = {}
    for value in model.graph.input:
        if value.name not in constants:
            kind = value.type.tensor_type
            lengths = tuple(dimension.dim_value for dimension in kind.shape.dim)
            out[value.name] = _random(lengths, helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return out


def _random(lengths: tuple[int, ...], dtype: Any) -> Any:
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return np.zeros(lengths, dtype=dtype)
    return (np.random.default_rng(0).standard_normal(lengths) * 0.02).astype(dtype)


class _Running:
    """A model and its inputs; ``provider``: an execution provider and its options."""

    def __init__(
        self, model: bytes, inputs: dict[str, Any], provider: tuple[str, dict[str, str]], threads: int | None,
        operators: list[str],
    ) -> None:  # fmt: skip
        import onnxruntime

        self.runtime, self.model, self.inputs, self.provider = onnxruntime, model, inputs, provider
        self.threads = threads
        self.position = {name: i for i, name in enumerate(operators)}
        self.bytes = np.full(len(operators), np.nan)
        self.whole = self._session(self._options(onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL))

    def passes(self, count: int) -> list[Pass]:
        """So many passes, each by nodes and as a whole."""
        options = self._options(self.runtime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        options.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            options.profile_file_prefix = str(Path(folder) / "run")
            session = self._session(options)
            session.run(None, self.inputs)  # the first makes the memory, and is left out
            for _ in range(count):
                session.run(None, self.inputs)
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        return [Pass(seconds, self._as_a_whole()) for seconds in self._seconds(events)[1:]]

    def allocated(self) -> Floats:
        """Bytes of what each node makes, as the runtime tells it; its own buffers are not known."""
        return self.bytes

    def _options(self, level: Any) -> Any:
        options = self.runtime.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 4  # what is wrong is raised as well
        if self.threads is not None:
            options.intra_op_num_threads = self.threads
        return options

    def _session(self, options: Any) -> Any:
        try:
            session = self.runtime.InferenceSession(self.model, options, [self.provider])
            session.disable_fallback()
        except Exception as problem:  # noqa: BLE001 - the runtime has an exception type per status
            told = " ".join(str(problem).split())
            raise InputError([Diagnostic(f"ONNX Runtime does not take the model: {told}", None)]) from None
        return session

    def _as_a_whole(self) -> float:
        begun = time.perf_counter()
        self.whole.run(None, self.inputs)
        return time.perf_counter() - begun

    def _seconds(self, events: list[dict[str, Any]]) -> list[Floats]:
        """The passes in a profile: seconds by node; one ends where a node comes again."""
        out: list[Floats] = []
        seen: set[int] = set()
        for event in events:
            name = event.get("name", "")
            position = self.position.get(name.removesuffix(KERNEL_TIME)) if name.endswith(KERNEL_TIME) else None
            if position is None:
                continue
            if position in seen or not out:
                out.append(np.zeros(len(self.position)))
                seen.clear()
            seen.add(position)
            out[-1][position] = event["dur"] * 1e-6
            self.bytes[position] = float(event.get("args", {}).get("output_size") or np.nan)
        return out
