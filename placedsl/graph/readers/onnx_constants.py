"""Small constants of an ONNX model computed beforehand: shapes that exporters compute from shapes.

Shape inference asks for values in many places (``Reshape``, ``Expand``, ``Range``).  They are computed with ONNX's own
reference implementation, and the shapes that follow from them inferred, operator by operator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Larger tensors are no shapes.
MOST_ELEMENTS = 4096
#: These make no more elements than there are combinations of those that they read.
_NO_LARGER = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Compress", "Concat", "Constant", "Div", "Equal", "Flatten", "Floor", "Gather",
    "Greater", "Identity", "Less", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "ReduceMax", "ReduceMin",
    "ReduceProd", "ReduceSum", "Reshape", "Shape", "Size", "Slice", "Sqrt", "Squeeze", "Sub", "Transpose", "Unique",
    "Unsqueeze", "Where",
))  # fmt: skip
#: What makes few elements of many products, which are no shapes.
_COSTLY = frozenset(("Einsum",))
_MOST_COMBINATIONS = MOST_ELEMENTS**2
#: What the reference implementation and shape inference raise where data do not fit.
_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def completed(model: Any) -> None:
    """Put values in the place of operators whose inputs are all known, and add the shapes that follow from them.

    One pass: operators stand in topological order.  ONNX's own propagation of values is not used: it writes out every
    element of what it takes for a shape, and a ``Range`` may have 10^12.
    """
    from onnx import numpy_helper

    graph = model.graph
    known = {tensor.name: value for tensor in graph.initializer if (value := _data(tensor)) is not None}
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {value.name: value.type for value in values if _lengths(value.type) is not None}
    types |= {tensor.name: _type(tensor.data_type, tensor.dims) for tensor in graph.initializer}
    shapes = {name: lengths for name, kind in types.items() if (lengths := _lengths(kind)) is not None}
    left, wider = [], []
    found: dict[str, np.ndarray] = {}
    imports = list(model.opset_import)
    for node in graph.node:
        made = _run(node, known, shapes, imports)
        if made is not None:
            known |= made
            found |= made
            for name, value in made.items():
                shapes[name], types[name] = list(value.shape), _type_of(value)
            continue
        left.append(node)
        if not all(name in shapes for name in node.output if name):
            for value in _inferred(node, known, types, imports):
                lengths = _lengths(value.type)
                if lengths is not None and value.name not in shapes:
                    shapes[value.name], types[value.name] = lengths, value.type
                    wider.append(value)
    replaced = found.keys() | {value.name for value in wider}
    kept = [value for value in graph.value_info if value.name not in replaced]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(left)
    graph.value_info.extend([*kept, *wider])
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in found.items())


def _lengths(kind: Any) -> list[int] | None:
    """The shape of a type; None where it is not known throughout."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dimensions = kind.tensor_type.shape.dim
    if not all(dimension.HasField("dim_value") and dimension.dim_value >= 0 for dimension in dimensions):
        return None
    return [dimension.dim_value for dimension in dimensions]


def _type(element: int, shape: Sequence[int]) -> Any:
    from onnx import helper

    return helper.make_tensor_type_proto(element, list(shape))


def _type_of(value: np.ndarray) -> Any:
    from onnx import helper

    return _type(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


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
    node: Any, known: Mapping[str, np.ndarray], shapes: Mapping[str, list[int]], imports: Sequence[Any]
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
    bounded = node.op_type in _NO_LARGER and math.prod(known[name].size for name in reads) <= _MOST_COMBINATIONS
    if node.op_type in _COSTLY or not (bounded or _few(node, known, imports)):
        return None
    try:
        values = ReferenceEvaluator(node, opsets={one.domain: one.version for one in imports}).run(
            None, {name: known[name] for name in reads}
        )
        made = {name: np.asarray(value) for name, value in zip(node.output, values, strict=False) if name}
        for value in made.values():
            _type_of(value)  # of a type that ONNX has
    except _FAILURES:
        return None
    return made if sum(value.size for value in made.values()) <= MOST_ELEMENTS else None


def _few(node: Any, known: Mapping[str, np.ndarray], imports: Sequence[Any]) -> bool:
    """Whether an operator on known values makes few elements."""
    made = [_lengths(value.type) for value in _inferred(node, known, {}, imports)]
    if len(made) < len([name for name in node.output if name]):
        return False
    return sum(math.inf if lengths is None else math.prod(lengths) for lengths in made) <= MOST_ELEMENTS


def _inferred(
    node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, Any], imports: Sequence[Any]
) -> list[Any]:
    """The shapes of what an operator makes, as values of a graph, from known values and types; none where unknown."""
    from onnx import checker, defs, helper, numpy_helper, shape_inference

    reads = [name for name in node.input if name]
    values = {name: known[name] for name in reads if name in known}
    given = {name: _type_of(values[name]) if name in values else types[name] for name in reads
             if name in values or name in types}  # fmt: skip
    if len(given) < len(set(reads)):
        return []
    try:
        version = next(one.version for one in imports if one.domain == node.domain)
        schema = defs.get_schema(node.op_type, version, node.domain)
        data = {name: numpy_helper.from_array(value, name) for name, value in values.items()}
        made = shape_inference.infer_node_outputs(schema, node, given, data, opset_imports=imports)
    except (*_FAILURES, StopIteration, checker.ValidationError, defs.SchemaError, shape_inference.InferenceError):
        return []
    return [
        helper.make_value_info(name, kind)
        for name, kind in made.items()
        if kind.HasField("tensor_type") and kind.tensor_type.HasField("shape")
    ]
