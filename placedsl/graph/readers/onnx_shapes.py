"""Shapes of an ONNX model whose inputs have numbers throughout: inferred, and read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.graph.readers.models import MOST
from placedsl.graph.readers.onnx_constants import completed


def label(node: Any) -> str:
    """How messages call an operator."""
    return str(node.name or next(iter(node.output), "") or node.op_type)


def prepare(graph: Any) -> None:
    """Leave out the data of large tensors, of which only shapes are used; InputError for what would end the process."""
    for tensor in graph.initializer:
        if math.prod(tensor.dims) > limits.limit("constants"):
            for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                tensor.ClearField(field)
    _check_splits(graph.node)


def _check_splits(nodes: Iterable[Any]) -> None:
    """Refuse parts that are not as many as outputs: ONNX's shape inference ends the process, or takes all memory."""
    found = []
    for node in nodes:
        parts = next((a.i for a in node.attribute if a.name == "num_outputs"), None)
        if node.op_type == "Split" and parts is not None and parts != len(node.output):
            what = f"operator '{label(node)}' (Split) has {len(node.output)} outputs, and num_outputs is {parts}"
            found.append(Diagnostic(what, None, "was the file damaged?"))
    if found:
        raise InputError(found[:MOST])


def settle(graph: Any, numbers: Mapping[str, int]) -> None:
    """Put numbers in the place of symbols; what the model says of shapes that have others is left out."""
    for value in graph.input:
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if not is_number(dimension):
                name = dimension.dim_param or f"{value.name}[{axis}]"
                if name in numbers:
                    dimension.dim_value = numbers[name]
    kept = [value for value in graph.value_info if _settled(value, numbers)]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for value in graph.output:
        if not _settled(value, numbers):
            value.type.tensor_type.ClearField("shape")


def is_number(dimension: Any) -> bool:
    """Whether a dimension has a number."""
    return bool(dimension.HasField("dim_value")) and dimension.dim_value >= 0


def _settled(value: Any, numbers: Mapping[str, int]) -> bool:
    """Replace the symbolic dimensions that are known; whether all of them are."""
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return False
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.dim_param in numbers:
            dimension.dim_value = numbers[dimension.dim_param]
        if not is_number(dimension):
            return False
    return True


def shaped(model: Any, numbers: Mapping[str, int]) -> Any:
    """The model with inferred shapes; InputError where they cannot be."""
    from onnx import shape_inference

    try:
        model = shape_inference.infer_shapes(model)
    except (shape_inference.InferenceError, RuntimeError, TypeError, ValueError) as problem:
        text = " ".join(str(problem).split())
        raise InputError([Diagnostic(f"the shapes of this model cannot be inferred: {text}", None)]) from None
    for value in model.graph.value_info:
        _settled(value, numbers)
    completed(model)
    return model


def shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """The shapes that are known throughout, by the names of tensors."""
    out = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.HasField("shape") and all(map(is_number, kind.shape.dim)):
            out[value.name] = tuple(dimension.dim_value for dimension in kind.shape.dim)
    return out | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
