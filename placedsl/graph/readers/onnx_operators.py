"""The operators of ONNX: operations and bytes of each, from the shapes of what it reads and makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from placedsl.graph.readers.operations import (
    PER_ELEMENT,
    Operator,
    Tensor,
    attention,
    convolution,
    einsum,
    matrix_product,
    recurrent,
    transposed_convolution,
)  # fmt: skip

#: The same data under another shape or name: nothing is computed or moved.
VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"))

#: Data is moved, nothing is computed.
_MOVES = frozenset((
    "Cast", "CastLike", "Compress", "Concat", "ConstantOfShape", "DepthToSpace", "Expand", "EyeLike", "Gather",
    "GatherElements", "GatherND", "OneHot", "Pad", "Range", "ReverseSequence", "ScatterElements", "ScatterND",
    "Scatter", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose", "Trilu", "Where", "NonZero",
    "CenterCropPad",
))  # fmt: skip

#: These read as much of their first input as they write.
_PARTIAL = frozenset(("Gather", "GatherElements", "GatherND", "Slice"))

_REDUCTIONS = frozenset((
    "ArgMax", "ArgMin", "CumSum", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
))  # fmt: skip


def moved(operator: Operator) -> float:
    """Bytes that it reads and writes."""
    if operator.type in VIEWS:
        return 0.0
    if operator.type in _PARTIAL:
        return operator.moved - operator.input(0).bytes + operator.output.bytes
    return operator.moved


def operations(operator: Operator) -> float | None:
    """Floating-point operations; None for a type that is not known.

    ValueError where inputs are missing or do not fit.
    """
    name = operator.type
    if name in VIEWS or name in _MOVES:
        return 0.0
    if name in _REDUCTIONS:
        return operator.input(0).elements
    if name in _RULES:
        try:
            return _RULES[name](operator)
        except IndexError:
            raise ValueError("its inputs have too few dimensions") from None
    each = PER_ELEMENT.get(name.lower())
    return None if each is None else each * operator.output.elements


def _bias(operator: Operator, position: int) -> Tensor | None:
    return operator.inputs[position] if position < len(operator.inputs) else None


def _conv(operator: Operator) -> float:
    return convolution(operator.output, operator.input(1), _bias(operator, 2))


def _quantised_conv(operator: Operator) -> float:
    return convolution(operator.output, operator.input(3), _bias(operator, 8))


def _transposed(operator: Operator) -> float:
    return transposed_convolution(operator.input(0), operator.input(1), operator.output, _bias(operator, 2))


def _gemm(operator: Operator) -> float:
    inner = operator.input(0).shape[0 if operator.attributes.get("transA") else 1]
    return matrix_product(operator.output, inner) + (operator.output.elements if _bias(operator, 2) else 0.0)


def _matmul(operator: Operator) -> float:
    return matrix_product(operator.output, operator.input(0).shape[-1])


def _einsum(operator: Operator) -> float:
    equation = operator.attributes.get("equation", b"")
    text = equation.decode("utf-8", "replace") if isinstance(equation, bytes) else str(equation)
    return einsum(text, [t for t in operator.inputs if t is not None], operator.output)


def _pool(operator: Operator) -> float:
    return operator.output.elements * float(math.prod(operator.attributes.get("kernel_shape", ())))


def _variadic(operator: Operator) -> float:
    present = sum(t is not None for t in operator.inputs)
    return (present - (operator.type != "Mean")) * operator.output.elements


def _attention(operator: Operator) -> float:
    tensors = [operator.input(i) for i in range(3)]
    heads = (operator.attributes.get("q_num_heads", 1), *2 * (operator.attributes.get("kv_num_heads", 1),))
    for i, (tensor, count) in enumerate(zip(tensors, heads, strict=True)):
        if len(tensor.shape) == 3:  # batch, positions, heads and width in one
            batch, positions, width = tensor.shape
            tensors[i] = replace(tensor, shape=(batch, count, positions, width // max(1, count)))
    past = _bias(operator, 4)
    if past is not None:  # keys of earlier positions
        *before, positions, width = tensors[1].shape
        tensors[1] = replace(tensors[1], shape=(*before, positions + past.shape[-2], width))
    return attention(*tensors)


def _resize(operator: Operator) -> float:
    mode = operator.attributes.get("mode", b"nearest")
    points = {b"linear": 2, b"cubic": 4}.get(mode, 0)
    changed = sum(a != b for a, b in zip(operator.input(0).shape, operator.output.shape, strict=False))
    return 2.0 * points**changed * operator.output.elements if points else 0.0


_RULES: Mapping[str, Callable[[Operator], float]] = {
    "Attention": _attention,
    "AveragePool": _pool,
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _transposed,
    "Einsum": _einsum,
    "GRU": lambda o: recurrent(o.input(0), o.input(1), o.input(2)),
    "Gemm": _gemm,
    # Squares, their sum over neighbouring channels, and four operations with that.
    "LRN": lambda o: (o.attributes.get("size", 1) + 4.0) * o.output.elements,
    "LSTM": lambda o: recurrent(o.input(0), o.input(1), o.input(2)),
    "LpNormalization": lambda o: 3.0 * o.output.elements,
    "LpPool": _pool,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "Max": _variadic,
    "MaxPool": _pool,
    "Mean": _variadic,
    "Min": _variadic,
    "QLinearConv": _quantised_conv,
    "QLinearMatMul": _matmul,
    "RNN": lambda o: recurrent(o.input(0), o.input(1), o.input(2)),
    "Resize": _resize,
    "Sum": _variadic,
    "Upsample": _resize,
}
