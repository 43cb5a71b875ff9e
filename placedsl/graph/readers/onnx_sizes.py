"""Sizes that a spec gives an ONNX model: of dimensions without a number, and of others in the place of their number.

A model whose dimensions are numbers was exported for one batch, and its operators may hold the old size in constants.
Shapes of ``Reshape`` and ``Expand`` that begin with it, or with a multiple, are given the new one.  Whether all
operators follow is tried with primes that divide no other size of the model: where one gets lost, or makes shapes that
do not fit, the model is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.graph.readers import sizes as given_sizes
from placedsl.graph.readers.onnx_shapes import is_number, label, prepare, settle, shaped, shapes
from placedsl.graph.readers.sizes import Sizes

#: An axis of an input: its name and the position of the axis.
_Axis = tuple[str, int]
_Shape = tuple[int, ...]
#: What the first dimensions of all inputs may be called, where no dimension has that name.
_BATCH = "batch"
#: Operators that may take a dimension away, by how their types begin.
_REDUCING = ("Arg", "Reduce", "Shape", "Size", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
#: Constants of so many elements may be shapes.
_FEW = 64
_EXPECTED = "export the model with a symbolic dimension, as dynamic_shapes or dynamic_axes say it"


def inferred(model: Any, sizes: Sizes) -> Any:
    """The model with these sizes, and shapes inferred.  Raises InputError with every defect."""
    symbols, fixed = _dimensions(model.graph)
    axes = {name: own for name, own in _named(fixed).items() if name not in symbols}
    wrong = [*given_sizes.unknown(sizes, [*symbols, *axes]), *given_sizes.missing(symbols, sizes)]
    if wrong:
        raise InputError(wrong)
    prepare(model.graph)
    numbers = {name: size.value for name, size in sizes.items()}
    replaced = {name: own for name, own in axes.items() if name in sizes}
    if replaced:
        place = next(size.place for name, size in sizes.items() if name in replaced)
        try:
            model = _Replacement(model, numbers, replaced).model()
        except _LostError as problem:
            message = f"the number of '{next(iter(replaced))}' cannot be replaced in this model: {problem}"
            raise InputError([Diagnostic(message, place, _EXPECTED)]) from None
    settle(model.graph, numbers)
    return shaped(model, numbers)


def _dimensions(graph: Any) -> tuple[dict[str, str], dict[_Axis, int]]:
    """Where the model has each dimension without a number, by name, and the numbers of the other axes of inputs."""
    initialisers = {tensor.name for tensor in graph.initializer}
    initialisers |= {tensor.values.name for tensor in graph.sparse_initializer}
    symbols: dict[str, str] = {}
    fixed: dict[_Axis, int] = {}
    for value in graph.input:
        if value.name in initialisers:
            continue
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if is_number(dimension):
                fixed[value.name, axis] = dimension.dim_value
            else:
                symbols.setdefault(dimension.dim_param or f"{value.name}[{axis}]", f"input '{value.name}'")
    return symbols, fixed


def _named(fixed: Mapping[_Axis, int]) -> dict[str, list[_Axis]]:
    """Axes by the names that a spec may give them; first ones as long as that of the first input are the batch."""
    first = next((length for (_, axis), length in fixed.items() if axis == 0), None)
    batch = [own for own, length in fixed.items() if own[1] == 0 and length == first]
    return ({_BATCH: batch} if batch else {}) | {f"{name}[{axis}]": [(name, axis)] for name, axis in fixed}


@dataclass(frozen=True)
class _Begun:
    """A constant shape that begins with a multiple of what ``name`` replaces."""

    name: str
    multiple: int
    shape: _Shape

    def with_size(self, size: int) -> _Shape:
        """The shape with another size."""
        return (self.multiple * size, *self.shape[1:])


class _LostError(Exception):
    """An operator does not follow the size of its input."""


@dataclass(frozen=True)
class _Replacement:
    """Axes of a model that get other numbers than they have.

    ``numbers``  all sizes that the spec gives; ``axes``: those of them that stand in the place of a number
    """

    source: Any
    numbers: Mapping[str, int]
    axes: Mapping[str, Sequence[_Axis]]

    def model(self) -> Any:
        """The model with the numbers of the spec; _LostError where some operator does not follow."""
        # Sizes of dimensions without a number are those of the spec in the trial as well.
        primes = dict(zip(self.axes, self._primes(len(self.axes)), strict=True))
        leading = [name for name, own in self.axes.items() if own[0][1] == 0]
        old = {name: self._number(self.axes[name][0]) for name in leading}
        begun = {
            made: _Begun(name, shape[0] // max(1, old[name]), shape)
            for name in leading[:1]
            for made, shape in self._constant_shapes() if shape and shape[0] > 0 and shape[0] % max(1, old[name]) == 0
        }  # fmt: skip
        while True:
            tried = shaped(self._with(primes, begun), {})
            known = shapes(tried.graph)
            against = {
                node.output[0] for node in tried.graph.node
                if node.output[0] in begun and not _follows(node, known, begun[node.output[0]], primes[leading[0]])
            }  # fmt: skip
            follows = {made: own for made, own in begun.items() if made not in against}
            if len(follows) == len(begun):
                break
            begun = follows
        for node in tried.graph.node:
            for prime in primes.values():
                _check(node, known, prime)
        return self._with(self.numbers, begun)

    def _number(self, own: _Axis) -> int:
        inputs = (value for value in self.source.graph.input if value.name == own[0])
        return int(next(inputs).type.tensor_type.shape.dim[own[1]].dim_value)

    def _primes(self, count: int) -> list[int]:
        """Primes that divide no size and no small constant of the model, nor any size of the spec."""
        graph = self.source.graph
        numbers = {*self.numbers.values(), *(length for tensor in graph.initializer for length in tensor.dims)}
        numbers |= {d.dim_value for value in graph.input for d in value.type.tensor_type.shape.dim}
        numbers |= {abs(n) for shape in self._constants().values() for n in shape}
        out: list[int] = []
        candidate = 1009
        while len(out) < count:
            prime = all(candidate % k for k in range(2, math.isqrt(candidate) + 1))
            if prime and all(n % candidate for n in numbers if n):
                out.append(candidate)
            candidate += 2
        return out

    def _constants(self) -> dict[str, _Shape]:
        """Short lists of whole numbers, stored or made by ``Constant``, by name."""
        from onnx import TensorProto, numpy_helper

        graph = self.source.graph
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        made = [node for node in graph.node if node.op_type == "Constant"]
        tensors |= {node.output[0]: one.t for node in made for one in node.attribute if one.name == "value"}
        return {
            name: tuple(int(n) for n in np.ravel(numpy_helper.to_array(tensor)).tolist())
            for name, tensor in tensors.items()
            if tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and math.prod(tensor.dims) <= _FEW
            and tensor.data_location != TensorProto.EXTERNAL
        }  # fmt: skip

    def _constant_shapes(self) -> Iterator[tuple[str, _Shape]]:
        """What operators ``Reshape`` and ``Expand`` with constant shapes make, and these shapes."""
        constants = self._constants()
        for node in self.source.graph.node:
            if node.op_type in ("Reshape", "Expand") and len(node.input) > 1 and node.input[1] in constants:
                yield node.output[0], constants[node.input[1]]

    def _with(self, numbers: Mapping[str, int], begun: Mapping[str, _Begun]) -> Any:
        """A copy with numbers on the axes and in the shapes of ``begun``; it claims no shape of what operators make."""
        from onnx import numpy_helper

        out = type(self.source)()
        out.CopyFrom(self.source)
        graph = out.graph
        inputs = {value.name: value.type.tensor_type.shape.dim for value in graph.input}
        for name, axes in self.axes.items():
            for tensor, axis in axes:
                inputs[tensor][axis].dim_value = numbers[name]
        del graph.value_info[:]
        for value in graph.output:
            value.type.tensor_type.ClearField("shape")
        for node in graph.node:
            if node.output and node.output[0] in begun:
                own, stored = begun[node.output[0]], f"{node.output[0]}'shape"
                shape = np.array(own.with_size(numbers[own.name]), dtype=np.int64)
                graph.initializer.append(numpy_helper.from_array(shape, stored))
                node.input[1] = stored
        settle(graph, {name: size for name, size in self.numbers.items() if name not in self.axes})
        return out


def _follows(node: Any, known: Mapping[str, _Shape], begun: _Begun, prime: int) -> bool:
    """Whether a constant shape, with the size that is tried in its first number, fits what is read."""
    data, shape = known.get(node.input[0]), begun.with_size(prime)
    if data is None:
        return True
    if node.op_type == "Expand":  # what has no such dimension gets one, unless it had one element
        return data[0] % prime == 0 if len(data) == len(shape) and data[0] != 1 else begun.shape[0] != 1
    elements = math.prod(n for n in shape if n > 0)
    return math.prod(data) % elements == 0 if -1 in shape else 0 in shape or math.prod(data) == elements


def _check(node: Any, known: Mapping[str, _Shape], prime: int) -> None:
    """_LostError where an operator does not hand on the size that is tried."""
    reads = [known.get(name) for name in node.input if name]
    makes = [known.get(name) for name in node.output if name]
    what = f"operator '{label(node)}' ({node.op_type})"
    carrying = [shape for shape in reads if shape is not None and any(n and n % prime == 0 for n in shape)]
    if makes[:1] == [None]:
        raise _LostError(f"the shape that {what} makes cannot be told, or does not fit")
    if node.op_type == "Reshape" and reads[0] is not None and makes[0] is not None:
        moved = reads[0][:1] and reads[0][0] % prime == 0 and not (makes[0][:1] and makes[0][0] % prime == 0)
        if math.prod(reads[0]) != math.prod(makes[0]) or (carrying and moved):
            raise _LostError(f"{what} makes its shape from constants")
    kept = any(shape is None or any(n and n % prime == 0 for n in shape) for shape in makes)
    if carrying and not kept and not node.op_type.startswith(_REDUCING):
        raise _LostError(f"{what} makes the same shape whatever the size of what it reads")
