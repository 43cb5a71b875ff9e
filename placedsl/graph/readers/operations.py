"""What the operators of a neural network compute: floating-point operations from shapes.

A multiplication and an addition are two operations.  Arithmetic, a comparison, or a function such as ``exp`` of one
element is one; what does several of these to an element counts them (``PER_ELEMENT``).  Moving data is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and bytes an element."""

    shape: tuple[int, ...]
    width: float

    @property
    def elements(self) -> float:
        """How many elements it has; 1 for a scalar."""
        return float(math.prod(self.shape))

    @property
    def bytes(self) -> float:
        """Its size."""
        return self.elements * self.width


@dataclass(frozen=True)
class Operator:
    """One operator: its type, the tensors it reads (None: left out) and makes, and its attributes."""

    type: str
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def input(self, position: int) -> Tensor:
        """An input that must be there; ValueError when it is not."""
        found = self.inputs[position] if position < len(self.inputs) else None
        if found is None:
            raise ValueError(f"input {position} is missing")
        return found

    @property
    def output(self) -> Tensor:
        """The first output; ValueError when there is none."""
        if not self.outputs:
            raise ValueError("it has no output")
        return self.outputs[0]

    @property
    def moved(self) -> float:
        """Bytes of all that is read and written."""
        return sum(t.bytes for t in (*self.inputs, *self.outputs) if t is not None)


#: Operations on each element of the output, by the name in small letters without underscores.
PER_ELEMENT: Mapping[str, float] = {
    **dict.fromkeys((
        "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atanh", "bitwiseand", "bitwisenot", "bitwiseor",
        "bitwisexor", "bitshift", "ceil", "cos", "cosh", "div", "equal", "eq", "erf", "exp", "floor", "fmod", "ge",
        "greater", "greaterorequal", "gt", "le", "less", "lessorequal", "log", "logicaland", "logicalnot", "logicalor",
        "lt", "maximum", "minimum", "mod", "mul", "ne", "neg", "not", "or", "pow", "reciprocal", "relu", "remainder",
        "round", "rsqrt", "rsub", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh",
        "thresholdedrelu", "xor", "isnan", "isinf",
    ), 1.0),
    **dict.fromkeys((
        "clip", "clamp", "relu6", "hardtanh", "leakyrelu", "prelu", "silu", "swish", "softplus", "softsign",
        "batchnorm", "batchnormalization", "quantizelinear", "dequantizelinear", "shrink",
    ), 2.0),
    **dict.fromkeys(("hardsigmoid", "elu", "mish", "addcmul"), 3.0),
    **dict.fromkeys(("selu", "celu"), 4.0),
    **dict.fromkeys(("softmax", "logsoftmax", "gelu", "hardswish", "fastgelu"), 5.0),
    **dict.fromkeys(("rmsnorm", "rmsnormalization", "simplifiedlayernormalization"), 5.0),
    **dict.fromkeys(("layernorm", "layernormalization", "groupnorm", "groupnormalization", "instancenorm",
                     "instancenormalization", "skiplayernormalization", "meanvariancenormalization"), 8.0),
}  # fmt: skip


def matrix_product(output: Tensor, inner: float) -> float:
    """Each element of the output is a sum of ``inner`` products."""
    return 2.0 * output.elements * inner


def convolution(output: Tensor, weight: Tensor, bias: Tensor | None) -> float:
    """``weight``: output channels, input channels of a group, then the kernel."""
    return matrix_product(output, math.prod(weight.shape[1:])) + (output.elements if bias is not None else 0.0)


def transposed_convolution(read: Tensor, weight: Tensor, output: Tensor, bias: Tensor | None) -> float:
    """``weight``: input channels, output channels of a group, then the kernel."""
    return matrix_product(read, math.prod(weight.shape[1:])) + (output.elements if bias is not None else 0.0)


def attention(query: Tensor, key: Tensor, value: Tensor) -> float:
    """Scaled scores, their softmax, and the weighted sum; positions and width are the last dimensions of each.

    Where queries have more heads than keys, several share one.
    """
    pairs = float(math.prod(query.shape[:-1]) * key.shape[-2])
    return pairs * (2.0 * query.shape[-1] + 1.0 + PER_ELEMENT["softmax"] + 2.0 * value.shape[-1])


def einsum(equation: str, operands: Sequence[Tensor], output: Tensor) -> float:
    """Products over all indices, and their sums; ``...`` stands for the indices that the output has besides.

    ValueError where the equation does not fit the operands.
    """
    left, _, _ = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"'{equation}' has {len(terms)} operands, not {len(operands)}")
    size: dict[str, int] = {}
    hidden: tuple[int, ...] = ()
    for term, operand in zip(terms, operands, strict=True):
        before, dots, after = term.partition("...")
        named = len(before) + len(after)
        if named > len(operand.shape) or (not dots and named != len(operand.shape)):
            raise ValueError(f"'{term}' does not fit {len(operand.shape)} dimensions")
        pairs = [*zip(before, operand.shape), *zip(after, operand.shape[len(operand.shape) - len(after) :])]
        for letter, length in pairs:
            size[letter] = max(size.get(letter, 1), length)
        middle = operand.shape[len(before) : len(operand.shape) - len(after)] if dots else ()
        hidden = max(hidden, middle, key=math.prod)
    space = float(math.prod(size.values()) * math.prod(hidden))
    summed = space > output.elements
    return space * (len(operands) - 1 + summed)


def recurrent(sequence: Tensor, *weights: Tensor) -> float:
    """Every weight is used once for each sample of each step; ``sequence`` begins with steps and samples."""
    return 2.0 * math.prod(sequence.shape[:2]) * sum(weight.elements for weight in weights)
