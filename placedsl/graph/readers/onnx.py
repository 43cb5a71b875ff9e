"""ONNX models: operators with operations, bytes and parameters, from shapes that are inferred.

Weights need not be there: their shapes are enough.  What depends on no input of the model (initialisers, and all that
is computed of constants alone) is no node; its bytes are memory of the nodes that read it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.graph import Folded, Graph
from placedsl.graph.readers import module_paths
from placedsl.graph.readers.models import MOST, Step, graph_of
from placedsl.graph.readers.onnx_functions import inlined
from placedsl.graph.readers.onnx_operators import moved, operations
from placedsl.graph.readers.onnx_shapes import label
from placedsl.graph.readers.onnx_sizes import inferred
from placedsl.graph.readers.operations import Operator, Tensor
from placedsl.graph.readers.sizes import Sizes

_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


def read(source: Source, sizes: Sizes) -> Graph:
    """Read a model; ``sizes`` are those of its symbolic dimensions.  Raises InputError with every defect."""
    if find_spec("onnx") is None:
        hint = "install it: pip install 'placedsl[onnx]'"
        raise InputError([Diagnostic("reading this file needs the package onnx", None, hint)])
    try:
        model = _parsed(source)
        every = {(node.op_type, name) for node in model.graph.node for name in (node.name, *node.output)}
        return _Reading(inferred(model, sizes), source, every).graph()
    except OverflowError:
        raise _wrong("a tensor of this model has more elements than can be counted", "are its sizes right?") from None
    except (AttributeError, LookupError, TypeError, ValueError) as problem:  # names that are no texts, say
        message = f"this ONNX model is not as models are: {' '.join(str(problem).split())}"
        raise _wrong(message, "was the file damaged?") from None


def named(source: Source, sizes: Sizes) -> tuple[Any, list[str]]:
    """The model as :func:`read` takes it, whose operators have the ids of nodes as names, and these ids.

    Operators that are no nodes have names that begin with ``folded:``.
    """
    model = inferred(_parsed(source), sizes)
    nodes = _Reading(model, source, ())._not_folded()
    ids = _ids(nodes)
    for i, node in enumerate(model.graph.node):
        node.name = f"folded:{i}"
    for node, own in zip(nodes, ids, strict=True):
        node.name = own
    return model, ids


def _wrong(message: str, hint: str = "") -> InputError:
    return InputError([Diagnostic(message, None, hint)])


def _parsed(source: Source) -> Any:
    """The model; its file is neither asked for weights nor checked beyond what is used here."""
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(source.data)
    except DecodeError:
        raise _wrong("this is no ONNX model, or it was cut off", "an ONNX file is one ModelProto") from None
    if not model.graph.node:
        raise _wrong("this ONNX model has no operators", "was it cut off?")
    model = inlined(model)
    nested = [
        node for node in model.graph.node
        if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute)
    ]  # fmt: skip
    if nested:
        raise InputError(
            Diagnostic(f"operator '{label(node)}' ({node.op_type}) holds a graph of its own, which is not read", None,
                       "export the model without control flow")
            for node in nested[:MOST]
        )  # fmt: skip
    return model


class _Reading:
    """One model whose shapes are known, and the columns of its graph.

    ``every``: the types of all operators that it had at first, with their names and those of what they make.
    """

    def __init__(self, model: Any, source: Source, every: Collection[tuple[str, str]]) -> None:
        import onnx
        from onnx import helper

        self.model, self.source, self.every = model, source, every
        self.width: dict[int, float] = {
            kind: helper.tensor_dtype_to_np_dtype(kind).itemsize for kind in helper.get_all_tensor_dtypes() if kind
        }
        self.width |= {  # several in a byte
            number: 0.25 if name.endswith("2") else 0.5
            for name, number in onnx.TensorProto.DataType.items()
            if name in ("UINT4", "INT4", "FLOAT4E2M1", "UINT2", "INT2")
        }
        self.shapes: dict[str, Tensor] = {}
        self.constants: dict[str, float] = {}  # bytes of each tensor that depends on no input
        graph = model.graph
        for value in (*graph.input, *graph.value_info, *graph.output):
            kind = value.type.tensor_type
            if value.type.HasField("tensor_type") and kind.HasField("shape"):
                lengths = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
                if min(lengths, default=0) >= 0:
                    self.shapes[value.name] = Tensor(tuple(lengths), self.width.get(kind.elem_type, 8))
        for tensor in (*graph.initializer, *(t.values for t in graph.sparse_initializer)):
            self.shapes[tensor.name] = Tensor(tuple(tensor.dims), self.width.get(tensor.data_type, 8))
            self.constants[tensor.name] = self.shapes[tensor.name].bytes

    def graph(self) -> Graph:
        """All of it put together."""
        nodes = self._not_folded()
        ids = _ids(nodes)
        steps = [
            Step(own, self._operator(node), [n for n in node.input if n], [n for n in node.output if n], _module(node))
            for own, node in zip(ids, nodes, strict=True)
        ]
        inputs = [value.name for value in self.model.graph.input]
        stay = {name for node in nodes for name in (node.name, *node.output)}
        gone = [(kind, name) for kind, name in self.every if name and name not in stay]
        folded = Folded(frozenset(name for _, name in gone), frozenset(kind for kind, _ in gone))
        return graph_of(self.source, steps, self.shapes, inputs, self.constants, operations, moved, folded=folded)

    def _not_folded(self) -> list[Any]:
        """The operators that depend on an input of the model; the tensors that others make are constants."""
        kept = []
        for node in self.model.graph.node:
            reads = [name for name in node.input if name]
            settled = node.op_type in ("Shape", "Size") and all(name in self.shapes for name in reads)
            if node.op_type in _RANDOM or not (settled or all(name in self.constants for name in reads)):
                kept.append(node)
                continue
            for name in node.output:
                own = self.shapes.get(name)
                size = math.nan if own is None else own.bytes
                if node.op_type == "DequantizeLinear":  # stays as small as it is stored
                    size = sum(self.constants[read] for read in reads)
                self.constants[name] = size
        return kept

    def _operator(self, node: Any) -> Operator:
        from onnx import helper

        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [self.shapes.get(name) for name in node.input]
        return Operator(node.op_type, inputs, [self.shapes[n] for n in node.output if n in self.shapes], attributes)


def _module(node: Any) -> str | None:
    return module_paths.of_onnx(node.name, {entry.key: entry.value for entry in node.metadata_props})


def _ids(nodes: list[Any]) -> list[str]:
    """The name of each operator; where it has none of its own, that of its first output."""
    names = Counter(node.name for node in nodes)
    taken: set[str] = {name for name, count in names.items() if name and count == 1}
    out = []
    for i, node in enumerate(nodes):
        own = node.name
        if not own or names[own] > 1:
            own = next(iter(node.output), "") or f"{node.op_type}-{i}"
            while own in taken:
                own += "'"
            taken.add(own)
        out.append(own)
    return out
