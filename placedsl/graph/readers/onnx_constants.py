"""Small constants of an ONNX model computed beforehand: shapes that exporters compute from shapes.

Shape inference asks for values in many places (``Reshape``, ``Expand``, ``Range``).  They are computed with ONNX's own
reference implementation, and the shapes that follow from them inferred, operator by operator.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from placedsl import limits

#: These make no more elements than there are combinations of those that they read.
_NO_LARGER = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Compress", "Concat", "Constant", "Div", "Equal", "Flatten", "Floor", "Gather",
    "Greater", "Identity", "Less", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "ReduceMax", "ReduceMin",
    "ReduceProd", "ReduceSum", "Reshape", "Shape", "Size", "Slice", "Sqrt", "Squeeze", "Sub", "Transpose", "Unique",
    "Unsqueeze", "Where",
))  # fmt: skip
#: What makes few elements of many products, which are no shapes.
_COSTLY = frozenset(("Einsum",))
_RANDOM = ("Random", "Bernoulli", "Multinomial")
#: Element type and shape of a tensor.
_Type = tuple[int, tuple[int, ...]]
#: What the reference implementation and shape inference raise where data do not fit.
_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def completed(model: Any) -> None:
    """Put shapes in the place of operators whose inputs are all known, and add the shapes that follow from them.

    One pass: operators stand in topological order.  What is computed becomes a stored tensor without its data, for
    only its shape is needed from then on.  ONNX's own propagation of values is not used: it writes out every
    element of what it takes for a shape, and a ``Range`` may have 10^12.
    """
    from onnx import TensorProto, helper

    graph = model.graph
    known = {tensor.name: value for tensor in graph.initializer if (value := _data(tensor)) is not None}
    types: dict[str, _Type] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = _type_of_proto(value.type)
        if kind is not None:
            types[value.name] = kind
    types |= {tensor.name: (tensor.data_type, tuple(tensor.dims)) for tensor in graph.initializer}
    operators = _Operators(list(model.opset_import))
    left: list[Any] = []
    wider: dict[str, _Type] = {}
    found: dict[str, _Type] = {}
    for node in graph.node:
        made = operators.run(node, known, types)
        if made is not None:
            for name, constant in zip(node.output, made, strict=False):
                if name:
                    known[name] = constant
                    types[name] = found[name] = _type_of(constant)
            continue
        left.append(node)
        if not all(name in types for name in node.output if name):
            for name, kind in zip(node.output, operators.inferred(node, known, types), strict=False):
                if kind is not None and name not in types:
                    types[name] = wider[name] = kind
    kept = [value for value in graph.value_info if value.name not in found and value.name not in wider]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(left)
    graph.value_info.extend(kept)
    graph.value_info.extend(helper.make_tensor_value_info(name, *kind) for name, kind in wider.items())
    graph.initializer.extend(TensorProto(name=n, data_type=kind, dims=shape) for n, (kind, shape) in found.items())


def _type_of_proto(kind: Any) -> _Type | None:
    """The element type and the shape of a tensor; None where the shape is not known throughout."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dimensions = kind.tensor_type.shape.dim
    if not all(dimension.HasField("dim_value") and dimension.dim_value >= 0 for dimension in dimensions):
        return None
    return kind.tensor_type.elem_type, tuple(dimension.dim_value for dimension in dimensions)


def _type_of(value: np.ndarray) -> _Type:
    """The element type and the shape of a value; ValueError, KeyError for a type that ONNX does not have."""
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(value.dtype), value.shape


def _data(tensor: Any) -> np.ndarray | None:
    """The value of a stored tensor; None where it is large or not there."""
    from onnx import TensorProto, numpy_helper

    if math.prod(tensor.dims) > limits.limit("constants") or tensor.data_location == TensorProto.EXTERNAL:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except _FAILURES:
        return None


def _lies_elsewhere(node: Any) -> bool:
    """Whether an attribute is a tensor in a file of its own: none is opened."""
    from onnx import TensorProto

    return any(
        tensor.data_location == TensorProto.EXTERNAL
        for attribute in node.attribute for tensor in (attribute.t, *attribute.tensors)
    )  # fmt: skip


class _Operators:
    """Runs operators, and infers the types of what they make.

    The layers of a network repeat one another, so most operators have been met before, with the same attributes on
    equal values: what came of them is remembered.
    """

    def __init__(self, imports: Sequence[Any]) -> None:
        self.imports = imports
        self.opsets = {one.domain: one.version for one in imports}
        self._made: dict[Hashable, list[np.ndarray] | None] = {}
        self._types: dict[Hashable, list[_Type | None]] = {}
        #: What stands for a value in a key, by the identity of the value, and the value itself, which is kept alive.
        self._marks: dict[int, tuple[Hashable, np.ndarray]] = {}

    def run(
        self, node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, _Type]
    ) -> Sequence[np.ndarray] | None:
        """What an operator makes of known values, output by output; None where it cannot be told."""
        reads = [name for name in node.input if name]
        if node.op_type == "Shape" and reads[0] in types and not node.attribute:
            return [np.array(types[reads[0]][1], dtype=np.int64)]
        if not all(name in known for name in reads) or node.op_type.startswith(_RANDOM) or _lies_elsewhere(node):
            return None
        if any(math.prod(types[name][1]) > limits.limit("constants") for name in node.output if name in types):
            return None
        key = self._key(node, known, {})
        if key not in self._made:
            self._made[key] = self._run(node, {name: known[name] for name in reads})
        return self._made[key]

    def inferred(
        self, node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, _Type]
    ) -> Sequence[_Type | None]:
        """The types of what an operator makes, output by output, from known values and types; None where unknown."""
        key = self._key(node, known, types)
        if key not in self._types:
            self._types[key] = self._inferred(node, known, types)
        return self._types[key]

    def _key(self, node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, _Type]) -> Hashable:
        """All that the outcome depends on: the operator, and of each input its value, its type, or that it is open."""
        attributes = tuple(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
        inputs = tuple(self._mark(known[name]) if name in known else types.get(name) for name in node.input)
        left_out = tuple(not name for name in (*node.input, *node.output))
        return node.domain, node.op_type, attributes, inputs, left_out

    def _mark(self, value: np.ndarray) -> Hashable:
        if id(value) not in self._marks:
            content = tuple(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
            self._marks[id(value)] = (value.dtype.str, value.shape, content), value
        return self._marks[id(value)][0]

    def _run(self, node: Any, values: dict[str, np.ndarray]) -> list[np.ndarray] | None:
        from onnx import checker
        from onnx.reference import ReferenceEvaluator

        bounded = (
            node.op_type in _NO_LARGER and math.prod(v.size for v in values.values()) <= limits.limit("constants") ** 2
        )
        if node.op_type in _COSTLY or not (bounded or self._makes_few(node, values)):
            return None
        try:
            with np.errstate(all="ignore"):  # a remainder by 0 is whatever it is, not a warning
                made = [np.asarray(value) for value in ReferenceEvaluator(node, opsets=self.opsets).run(None, values)]
            for value in made:
                _type_of(value)  # of a type that ONNX has
        except (*_FAILURES, checker.ValidationError):
            return None
        return made if sum(value.size for value in made) <= limits.limit("constants") else None

    def _makes_few(self, node: Any, values: Mapping[str, np.ndarray]) -> bool:
        """Whether an operator on known values makes few elements."""
        made = self._inferred(node, values, {})
        made = [kind for kind, name in zip(made, node.output, strict=True) if name]
        return sum(math.inf if kind is None else math.prod(kind[1]) for kind in made) <= limits.limit("constants")

    def _inferred(self, node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, _Type]) -> list[_Type | None]:
        from onnx import checker, defs, helper, numpy_helper, shape_inference

        nothing: list[_Type | None] = [None] * len(node.output)
        reads = dict.fromkeys(name for name in node.input if name)
        if not all(name in known or name in types for name in reads):
            return nothing
        try:
            given = {
                name: helper.make_tensor_type_proto(*(_type_of(known[name]) if name in known else types[name]))
                for name in reads
            }
            schema = defs.get_schema(node.op_type, self.opsets[node.domain], node.domain)
            data = {name: numpy_helper.from_array(known[name], name) for name in reads if name in known}
            made = shape_inference.infer_node_outputs(schema, node, given, data, opset_imports=self.imports)
        except (*_FAILURES, checker.ValidationError, defs.SchemaError, shape_inference.InferenceError):
            return nothing
        return [_type_of_proto(made[name]) if name in made else None for name in node.output]
