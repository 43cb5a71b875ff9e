"""Small constants of an ONNX model computed beforehand: shapes that exporters compute from shapes.

Shape inference follows some operators on shapes and not others (``Where``, ``Range``, ``Equal``).  What it leaves open
is computed with ONNX's own reference implementation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Larger tensors are no shapes.
MOST_ELEMENTS = 4096
_FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def evaluated(model: Any) -> bool:
    """Put values in the place of operators whose inputs are all known; whether there were any."""
    from onnx import numpy_helper

    graph = model.graph
    known = {tensor.name: value for tensor in graph.initializer if (value := _data(tensor)) is not None}
    shapes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info)
        if value.type.tensor_type.HasField("shape")
        and all(d.HasField("dim_value") for d in value.type.tensor_type.shape.dim)
    }
    opsets = {one.domain: one.version for one in model.opset_import}
    left = []
    found: dict[str, np.ndarray] = {}
    for node in graph.node:
        made = _run(node, known, shapes, opsets)
        if made is None:
            left.append(node)
            continue
        known |= made
        found |= made
    if not found:
        return False
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in found.items())
    kept = [value for value in graph.value_info if value.name not in found]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(left)
    graph.value_info.extend(kept)
    return True


def _data(tensor: Any) -> np.ndarray | None:
    """The value of a stored tensor; None where it is large or not there."""
    from onnx import TensorProto, numpy_helper

    if math.prod(tensor.dims) > MOST_ELEMENTS or tensor.data_location == TensorProto.EXTERNAL:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except _FAILURES:
        return None


def _run(
    node: Any, known: Mapping[str, np.ndarray], shapes: Mapping[str, list[int]], opsets: Mapping[str, int]
) -> dict[str, np.ndarray] | None:
    """What an operator makes of known values; None where it cannot be told."""
    from onnx.reference import ReferenceEvaluator

    reads = [name for name in node.input if name]
    if node.op_type == "Shape" and reads[0] in shapes and not node.attribute:
        return {node.output[0]: np.array(shapes[reads[0]], dtype=np.int64)}
    if any(math.prod(shapes[name]) > MOST_ELEMENTS for name in node.output if name in shapes):
        return None
    if node.op_type.startswith(("Random", "Bernoulli", "Multinomial")) or not all(name in known for name in reads):
        return None
    try:
        values = ReferenceEvaluator(node, opsets=dict(opsets)).run(None, {name: known[name] for name in reads})
    except _FAILURES:
        return None
    made = {name: np.asarray(value) for name, value in zip(node.output, values, strict=False) if name}
    return made if sum(value.size for value in made.values()) <= MOST_ELEMENTS else None
