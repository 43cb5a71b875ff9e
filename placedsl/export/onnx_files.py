"""ONNX models as exporters take them apart: which operator each node of a plan is, and models of some operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.export.layout import some
from placedsl.graph.readers.onnx_functions import inlined

#: Models from this size on have their weights in a file beside them: protocol buffers end at 2 GiB.
_LARGE = 1_500_000_000
#: Tensors that are smaller stay in the model.
_SMALL = 1_024
#: Annotations of operators exist from this version of ONNX's files on.
_ANNOTATED_IR = 10


def model_of(source: Source | None) -> Any:
    """The model in the graph's file with its weights and without functions; InputError where it is none."""
    if source is None:
        hint = "name the spec as well: placedsl export SPEC ANSWER --to …"
        raise InputError([Diagnostic("the model's file is needed, which the answer does not name", None, hint)])
    if find_spec("onnx") is None:
        hint = "install it: pip install 'placedsl[onnx]'"
        raise InputError([Diagnostic("parts of an ONNX model need the package onnx", None, hint)])
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(source.data)
        if not source.data or not model.graph.node:
            raise DecodeError
    except DecodeError:
        message = f"the graph of the spec is no ONNX model ('{source.name}')"
        raise InputError([Diagnostic(message, None, 'as in graph from "model.onnx"')]) from None
    try:
        onnx.load_external_data_for_model(model, str(Path(source.name).parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as problem:
        message = f"weights of '{source.name}' cannot be read: {' '.join(str(problem).split())}"
        raise InputError([Diagnostic(message, None, "they stand in files beside the model")]) from None
    return inlined(model)


def operators(model: Any, ids: Iterable[int | str]) -> dict[str, int]:
    """The position of the operator of each node; InputError for nodes that the model does not have."""
    names = Counter(node.name for node in model.graph.node if node.name)
    by_name = {node.name: k for k, node in enumerate(model.graph.node) if names[node.name] == 1}
    by_output = {name: k for k, node in reversed(list(enumerate(model.graph.node))) for name in node.output if name}
    out: dict[str, int] = {}
    unknown = []
    for own in map(str, ids):
        found = by_name.get(own, by_output.get(own, by_output.get(own.rstrip("'"))))
        if found is None:
            unknown.append(own)
        else:
            out[own] = found
    if unknown or len(set(out.values())) < len(out):
        message = (
            f"the model has no operator {some(map(repr, unknown))}" if unknown else "operators have names in common"
        )
        raise InputError([Diagnostic(message, None, "is the answer of this model?")])
    return out


class Cutter:
    """A model, and models of some of its operators.

    ``placed``: positions of the operators that are somewhere; the others depend on no input (they were folded), and are
    in each part that reads what they make.
    """

    def __init__(self, model: Any, placed: Iterable[int]) -> None:
        self.model, self.nodes = model, list(model.graph.node)
        self.placed = set(placed)
        self.maker = {name: k for k, node in enumerate(self.nodes) for name in node.output if name}
        self.weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self.sparse = {tensor.values.name: tensor for tensor in model.graph.sparse_initializer}
        self.values = _values(model)
        self.graph_outputs = [value.name for value in model.graph.output]

    def part(self, own: Sequence[int], readers: Mapping[str, Iterable[int]], name: str) -> Any:
        """The model of some operators; ``readers``: the operators outside that read a tensor."""
        import onnx
        from onnx import helper

        chosen, waiting = set(own), list(own)
        weights: dict[str, None] = {}
        inputs: dict[str, None] = {}
        while waiting:
            for read in self.nodes[waiting.pop()].input:
                made = self.maker.get(read)
                if not read:
                    continue
                if read in self.weights or read in self.sparse:
                    weights[read] = None
                elif made is not None and made not in self.placed:
                    if made not in chosen:
                        chosen.add(made)
                        waiting.append(made)
                elif made is None or made not in chosen:
                    inputs[read] = None
        kept = sorted(chosen)
        inside = {read for k in kept for read in self.nodes[k].output}
        ordered = [read for k in kept for read in self.nodes[k].input if read in inputs and read not in inside]
        mine = set(own)
        outputs = [
            made for k in kept if k in mine for made in self.nodes[k].output
            if made and (made in self.graph_outputs or any(reader not in chosen for reader in readers.get(made, ())))
        ]  # fmt: skip
        if not outputs:  # nothing reads what these make; without an output the part could not be run
            dead = [made for k in own for made in self.nodes[k].output if made and made not in readers]
            outputs = [made for made in dead if made in self.values]
        graph = onnx.GraphProto(name=name)
        graph.node.extend(self.nodes[k] for k in kept)
        graph.input.extend(self._value(read) for read in dict.fromkeys(ordered))
        graph.output.extend(self._value(made) for made in outputs)
        graph.initializer.extend(self.weights[read] for read in weights if read in self.weights)
        graph.sparse_initializer.extend(self.sparse[read] for read in weights if read in self.sparse)
        shown = {*ordered, *outputs}
        graph.value_info.extend(
            value for tensor, value in self.values.items() if tensor in inside and tensor not in shown
        )
        out = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        out.producer_name = "placedsl"
        return out

    def readers(self) -> dict[str, list[int]]:
        """The operators that read each tensor."""
        out: dict[str, list[int]] = {}
        for k, node in enumerate(self.nodes):
            for read in node.input:
                out.setdefault(read, []).append(k)
        return out

    def passed_through(self) -> list[str]:
        """Outputs of the model that no operator with a place makes: inputs, constants."""
        return [name for name in self.graph_outputs if self.maker.get(name) not in self.placed]

    def _value(self, name: str) -> Any:
        if name not in self.values:
            message = f"the type of tensor '{name}', which goes from one part to another, cannot be inferred"
            raise InputError([Diagnostic(message, None, "give it a value_info in the model")])
        return self.values[name]


def _values(model: Any) -> dict[str, Any]:
    """The type and shape of each tensor, as far as they can be inferred."""
    import onnx
    from onnx import shape_inference

    light = onnx.ModelProto()
    light.CopyFrom(model)
    for tensor in light.graph.initializer:  # shapes are inferred without large weights, whose copies take memory
        if len(tensor.raw_data) > _SMALL:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="absent")
    try:
        inferred = shape_inference.infer_shapes(light)
    except (shape_inference.InferenceError, RuntimeError, TypeError, ValueError) as problem:
        text = " ".join(str(problem).split())
        raise InputError([Diagnostic(f"the shapes of this model cannot be inferred: {text}", None)]) from None
    graph = inferred.graph
    return {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}


def files_of(name: str, model: Any) -> dict[str, bytes]:
    """A model as files: one, or where it is large another one with its weights."""
    import onnx

    weights = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if weights < _LARGE:
        return {name: model.SerializeToString()}
    blob = bytearray()
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) < _SMALL:
            continue
        begin, size = len(blob), len(tensor.raw_data)
        blob += tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        for key, value in (("location", f"{name}.data"), ("offset", begin), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
    return {name: model.SerializeToString(), f"{name}.data": bytes(blob)}


def annotated(model: Any, annotation: Mapping[int, str]) -> Any:
    """The model with an annotation ``layer_ann`` of some operators."""
    out = type(model)()
    out.CopyFrom(model)
    out.ir_version = max(out.ir_version, _ANNOTATED_IR)
    for k, text in annotation.items():
        node = out.graph.node[k]
        for entry in [entry for entry in node.metadata_props if entry.key == "layer_ann"]:
            node.metadata_props.remove(entry)
        node.metadata_props.add(key="layer_ann", value=text)
    return out
