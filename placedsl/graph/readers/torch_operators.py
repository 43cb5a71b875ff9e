"""The operators of PyTorch (ATen): operations and bytes of each, from the shapes of what it reads and makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

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

#: The same data under another shape: nothing is computed or moved.
VIEWS = frozenset((
    "alias", "as_strided", "chunk", "detach", "diagonal", "expand", "expand_as", "flatten", "lift_fresh_copy",
    "movedim", "narrow", "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "swapaxes",
    "t", "tensor_split", "transpose", "unbind", "unflatten", "unsqueeze", "view", "view_as", "unsafe_split",
))  # fmt: skip

#: Data is moved, nothing is computed.
_MOVES = frozenset((
    "_to_copy", "_unsafe_view", "arange", "cat", "clone", "concat", "constant_pad_nd", "contiguous", "copy", "empty",
    "embedding", "fill", "flip", "full", "full_like", "gather", "index", "index_put", "index_select", "masked_fill",
    "new_full", "new_ones", "new_zeros", "nonzero", "one_hot", "ones", "ones_like", "pad", "pixel_shuffle", "repeat",
    "repeat_interleave", "roll", "scalar_tensor", "scatter", "select_scatter", "slice_scatter", "stack", "to", "tril",
    "triu", "type_as", "upsample_nearest2d", "where", "zeros", "zeros_like",
))  # fmt: skip

#: These read as much of their first input as they write.
_PARTIAL = frozenset(("embedding", "gather", "index", "index_select"))

_REDUCTIONS = frozenset((
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d", "all", "amax", "amin",
    "any", "argmax", "argmin", "cumsum", "linalg_vector_norm", "max", "mean", "min", "norm", "prod", "std", "sum",
    "var", "logsumexp",
))  # fmt: skip

_ALIASES = {
    "_native_batch_norm_legit_no_training": "batchnorm", "native_batch_norm": "batchnorm",
    "native_layer_norm": "layernorm", "native_group_norm": "groupnorm", "_softmax": "softmax",
    "_log_softmax": "logsoftmax", "bitwise_not": "not", "leaky_relu": "leakyrelu",
}  # fmt: skip


def moved(operator: Operator) -> float:
    """Bytes that it reads and writes."""
    if _is_view(operator):
        return 0.0
    if operator.type in _PARTIAL:
        return operator.moved - operator.input(0).bytes + operator.output.bytes
    return operator.moved


def operations(operator: Operator) -> float | None:
    """Floating-point operations; None for a type that is not known.  ValueError where inputs do not fit."""
    name = operator.type
    if _is_view(operator) or name in _MOVES:
        return 0.0
    if name in ("max", "min") and operator.input(0).shape == operator.output.shape:  # of two tensors
        return operator.output.elements
    if name in _REDUCTIONS:
        return operator.input(0).elements
    if name in _RULES:
        return _RULES[name](operator)
    each = PER_ELEMENT.get(_ALIASES.get(name, name.replace("_", "")))
    return None if each is None else each * operator.output.elements


def _is_view(operator: Operator) -> bool:
    return operator.type in VIEWS or (operator.type == "dropout" and not operator.attributes.get("train"))


def _tensor(operator: Operator, *names: str) -> Tensor:
    """The argument by one of these names."""
    for name in names:
        found = operator.attributes.get(name)
        if isinstance(found, Tensor):
            return found
    raise ValueError(f"'{names[0]}' is missing")


def _bias(operator: Operator) -> Tensor | None:
    found = operator.attributes.get("bias")
    return found if isinstance(found, Tensor) else None


def _linear(operator: Operator) -> float:
    product = matrix_product(operator.output, _tensor(operator, "weight").shape[-1])
    return product + (operator.output.elements if _bias(operator) else 0.0)


def _product(operator: Operator) -> float:
    return matrix_product(operator.output, _tensor(operator, "self", "input").shape[-1])


def _product_and_sum(operator: Operator) -> float:
    first = _tensor(operator, "mat1", "batch1", "mat")
    return matrix_product(operator.output, first.shape[-1]) + operator.output.elements


def _convolution(operator: Operator) -> float:
    if operator.attributes.get("transposed"):
        return _transposed(operator)
    return convolution(operator.output, _tensor(operator, "weight"), _bias(operator))


def _transposed(operator: Operator) -> float:
    read = _tensor(operator, "input")
    return transposed_convolution(read, _tensor(operator, "weight"), operator.output, _bias(operator))


def _einsum(operator: Operator) -> float:
    operands = [t for t in operator.inputs if t is not None]
    return einsum(str(operator.attributes.get("equation", "")), operands, operator.output)


def _attention(operator: Operator) -> float:
    return attention(_tensor(operator, "query"), _tensor(operator, "key"), _tensor(operator, "value"))


def _pool(operator: Operator) -> float:
    kernel = operator.attributes.get("kernel_size", ())
    kernel = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    dimensions = next((int(digit) for digit in operator.type if digit.isdigit()), 2)
    if len(kernel) == 1:  # the same in every direction
        kernel *= dimensions
    return operator.output.elements * float(math.prod(kernel))


def _recurrent(operator: Operator) -> float:
    weights = operator.attributes.get("params", ())
    return recurrent(_tensor(operator, "input"), *(t for t in weights if isinstance(t, Tensor)))


_RULES: Mapping[str, Callable[[Operator], float]] = {
    **dict.fromkeys(("addmm", "addbmm", "baddbmm", "addmv"), _product_and_sum),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"), _pool),
    "max_pool2d_with_indices": _pool,
    **dict.fromkeys(("bmm", "dot", "matmul", "mm", "mv"), _product),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    "einsum": _einsum,
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), _recurrent),
    "linear": _linear,
    **dict.fromkeys((
        "_scaled_dot_product_attention_math", "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
        "scaled_dot_product_attention",
    ), _attention),
}  # fmt: skip
