"""ONNX models that nobody would write: small models with changes of structure or of bytes.

The changes are made by reflection over the messages of the format, so each field is met: attributes, shapes, types,
names, initialisers, functions, subgraphs.
"""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from mutation import scrambled
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 255, 4096, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -1.0, 0.5, 1e30, float("inf"), float("nan"))
TYPES = (
    "Relu", "Add", "MatMul", "Conv", "Gemm", "Reshape", "Concat", "Split", "Slice", "Range", "Expand", "Tile", "Shape",
    "Loop", "If", "Scan", "Einsum", "LSTM", "Attention", "Constant", "ConstantOfShape", "Pad", "Resize", "NonZero",
    "Gather",
    "Transpose", "Squeeze", "Unsqueeze", "ReduceSum", "QLinearConv", "DequantizeLinear", "OneHot", "TopK", "Optional",
    "SequenceConstruct", "StringNormalizer", "Nonsense", "", "Softmax", "LayerNormalization", "Where", "Cast", "Size",
    "RandomNormal", "Trilu", "GroupNormalization", "DFT", "Unique", "GatherND", "ScatterND", "Mod", "Pow", "Div",
)  # fmt: skip
F = TensorProto.FLOAT


def _light() -> list[bytes]:
    """Small topologies that the package brings along."""
    import onnx.backend.test

    folder = Path(onnx.backend.test.__file__).parent / "data" / "light"
    return [(folder / f"light_{name}.onnx").read_bytes() for name in ("bvlc_alexnet", "zfnet512", "vgg19")]


def _graph(nodes: list[Any], inputs: dict[str, tuple[int, list[Any]]], stored: dict[str, Any], **more: Any) -> bytes:
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], F, None)],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return bytes(helper.make_model(made, opset_imports=imports, **more).SerializeToString())


# Longer than 80 lines: models, one after another.
@functools.cache
def bases() -> tuple[bytes, ...]:
    """Models in order."""
    import numpy as np

    node = helper.make_node

    def floats(*shape: int) -> Any:
        return np.zeros(shape, dtype=np.float32)

    def whole(*numbers: int) -> Any:
        return np.array(numbers, dtype=np.int64)

    body = helper.make_graph(
        [node("Relu", ["x"], ["inner"])], "body", [], [helper.make_tensor_value_info("inner", F, [2])]
    )
    functions = [
        helper.make_function("local", "f", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 18)]),
        helper.make_function(
            "local",
            "g",
            ["a"],
            ["c"],
            [node("f", ["a"], ["b"], domain="local"), node("f", ["b"], ["c"], domain="local")],
            [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)],
        ),
    ]
    made = [
        _graph(
            [
                node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                node("Relu", ["c"], ["r"]),
                node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                node("Flatten", ["p"], ["f"]),
                node("Gemm", ["f", "v"], ["y"], transB=1),
            ],
            {"x": (F, [1, 3, 8, 8])},
            {"w": floats(4, 3, 3, 3), "b": floats(4), "v": floats(5, 64)},
        ),
        _graph(
            [
                node("Shape", ["x"], ["s"]),
                node("Gather", ["s", "zero"], ["n"]),
                node("Concat", ["n", "rest"], ["t"], axis=0),
                node("Reshape", ["x", "t"], ["r"]),
                node("MatMul", ["r", "w"], ["m"]),
                node("Softmax", ["m"], ["p"]),
                node("Split", ["p"], ["a", "b"], axis=-1, num_outputs=2),
                node("Add", ["a", "b"], ["y"]),
            ],
            {"x": (F, ["batch", 4, 8])},
            {"zero": whole(0), "rest": whole(4, 8), "w": floats(8, 6)},
        ),
        _graph(
            [
                node("Range", ["lo", "hi", "by"], ["q"]),
                node("Cast", ["q"], ["f"], to=F),
                node("Expand", ["f", "shape"], ["e"]),
                node("Tile", ["e", "times"], ["t"]),
                node("Slice", ["t", "starts", "ends"], ["sl"]),
                node("Mul", ["sl", "x"], ["y"]),
            ],
            {"x": (F, [1])},
            {
                "lo": np.int64(0),
                "hi": np.int64(6),
                "by": np.int64(1),
                "shape": whole(2, 6),
                "times": whole(2, 1),
                "starts": whole(0),
                "ends": whole(3),
            },
        ),
        _graph(
            [
                node("LSTM", ["x", "w", "r"], ["o", "h"], hidden_size=4),
                node("Squeeze", ["h", "zero"], ["q"]),
                node("Einsum", ["q", "q"], ["e"], equation="ij,kj->ik"),
                node("LayerNormalization", ["e", "one"], ["y"]),
            ],
            {"x": (F, [5, 3, 2])},
            {"w": floats(1, 16, 2), "r": floats(1, 16, 4), "zero": whole(0), "one": floats(3)},
        ),
        _graph(
            [
                node("f", ["x"], ["t"], domain="local"),
                node("g", ["t"], ["u"], domain="local"),
                node("Neg", ["u"], ["y"]),
            ],
            {"x": (F, [2])},
            {},
            functions=functions,
        ),
        _graph(
            [
                node("Constant", [], ["c"], value=numpy_helper.from_array(whole(1, 2), "c")),
                node("Unsqueeze", ["x", "c"], ["u"]),
                node("Transpose", ["u"], ["t"], perm=[2, 1, 0]),
                node("ReduceSum", ["t"], ["s"], keepdims=0),
                node("Where", ["b", "s", "x"], ["y"]),
            ],
            {"x": (F, [2]), "b": (TensorProto.BOOL, [2])},
            {},
        ),
        _graph(
            [node("If", ["b"], ["i"], then_branch=body, else_branch=body), node("Relu", ["i"], ["y"])],
            {"x": (F, [2]), "b": (TensorProto.BOOL, [])},
            {},
        ),
        _graph(
            [
                node("DequantizeLinear", ["w", "scale"], ["d"]),
                node("MatMul", ["x", "d"], ["m"]),
                node("Pad", ["m", "pads"], ["p"]),
                node("Resize", ["p", "", "", "sizes"], ["z"], mode="linear"),
                node("TopK", ["z", "k"], ["v", "i"]),
                node("Relu", ["v"], ["y"]),
            ],
            {"x": (F, [1, 1, 2, 3])},
            {
                "w": np.zeros((3, 4), dtype=np.int8),
                "scale": np.float32(1),
                "pads": whole(0, 0, 1, 1, 0, 0, 1, 1),
                "sizes": whole(1, 1, 6, 8),
                "k": whole(2),
            },
        ),
    ]
    return (*made, (ROOT / "docs" / "picture.onnx").read_bytes(), *_light())


def messages(root: Any) -> list[Any]:
    """A message and all that it holds, but not the elements of tensors."""
    out, stack = [], [root]
    while stack:
        one = stack.pop()
        out.append(one)
        for descriptor, value in one.ListFields():
            if descriptor.type == descriptor.TYPE_MESSAGE:
                stack.extend([value] if not _repeated(descriptor) else value)
    return out


def _repeated(descriptor: Any) -> bool:
    return bool(descriptor.is_repeated)


def names(model: Any) -> list[str]:
    """Every name of a tensor, a node or a symbolic dimension."""
    graph = model.graph
    out = [name for node in graph.node for name in (*node.input, *node.output, node.name)]
    out += [value.name for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer)]
    return [*out, "", "batch", "é", "a" * 300, "\0"]


def changed(rng: random.Random, model: Any) -> None:
    """A few changes of structure."""
    every = names(model)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        match rng.randrange(8):
            case 0:
                _special(rng, model)
            case 1 | 2 if model.graph.node:
                node = rng.choice(model.graph.node)
                _field(rng, rng.choice([node, *messages(node)]), every)
            case 3 if model.graph.initializer:
                _field(rng, rng.choice(messages(rng.choice(model.graph.initializer))), every)
            case 4 if model.graph.input:
                _field(rng, rng.choice(messages(rng.choice([*model.graph.input, *model.graph.output]))), every)
            case _:
                _field(rng, rng.choice(messages(model)), every)


def _field(rng: random.Random, message: Any, every: list[str]) -> None:
    """Change one field of a message: leave it out, fill it, double or move its entries."""
    present = [descriptor for descriptor, _ in message.ListFields()]
    descriptor = rng.choice(present if present and rng.random() < 0.8 else list(message.DESCRIPTOR.fields))
    name = descriptor.name
    kind = rng.randrange(4)
    if kind == 0:
        message.ClearField(name)
        return
    value = getattr(message, name)
    is_message = descriptor.type == descriptor.TYPE_MESSAGE
    if not _repeated(descriptor):
        if is_message:
            value.SetInParent()
        else:
            setattr(message, name, _value(rng, descriptor, every))
        return
    at = rng.randrange(len(value)) if len(value) else 0
    if not len(value):
        value.add() if is_message else value.append(_value(rng, descriptor, every))
    elif kind == 1:
        del value[at]
    elif kind == 2 and is_message:
        value.add().CopyFrom(value[at])
    elif kind == 2:
        value.append(value[at])
    elif is_message:
        other = rng.randrange(len(value))
        kept = type(value[at])()
        kept.CopyFrom(value[at])
        value[at].CopyFrom(value[other])
        value[other].CopyFrom(kept)
    else:
        value[at] = _value(rng, descriptor, every)


def _value(rng: random.Random, descriptor: Any, every: list[str]) -> Any:
    match descriptor.cpp_type:
        case descriptor.CPPTYPE_STRING if descriptor.type == descriptor.TYPE_BYTES:
            return rng.choice(
                [
                    b"",
                    b"\0",
                    b"\xff" * 9,
                    b"\x01\0\0\0\0\0\0\0",
                    b"ij,jk->ik",
                    b"cubic",
                    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
                ]
            )
        case descriptor.CPPTYPE_STRING:
            return rng.choice([*TYPES, *every] if descriptor.name == "op_type" else [*every, rng.choice(TYPES)])
        case descriptor.CPPTYPE_ENUM:
            return rng.choice(list(descriptor.enum_type.values_by_number))
        case descriptor.CPPTYPE_FLOAT | descriptor.CPPTYPE_DOUBLE:
            return rng.choice(DOUBLES)
        case descriptor.CPPTYPE_INT32:
            return rng.choice([n for n in NUMBERS if -(2**31) <= n < 2**31] + list(range(30)))
        case descriptor.CPPTYPE_UINT64:
            return rng.choice([n for n in NUMBERS if n >= 0])
        case _:
            return rng.choice(NUMBERS)


def _special(rng: random.Random, model: Any) -> None:
    """Changes that touch several fields: cycles, subgraphs, functions, other operators, names that are taken."""
    graph = model.graph
    if not graph.node:
        return
    node, other = rng.choice(graph.node), rng.choice(graph.node)
    match rng.randrange(8):
        case 0 if node.input and other.output:  # perhaps a cycle
            node.input[rng.randrange(len(node.input))] = rng.choice(other.output)
        case 1:
            node.op_type = rng.choice(TYPES)
        case 2:
            inner = helper.make_graph([other], "inner", [], [])
            for _ in range(
                rng.choice([0, 0, 1, 20])
            ):  # the format allows 100 levels of messages, three for each of these
                inner = helper.make_graph([helper.make_node("If", ["b"], ["i"], then_branch=inner)], "outer", [], [])
            node.attribute.append(helper.make_attribute(rng.choice(["body", "then_branch", "x"]), inner))
        case 3:
            name = rng.choice(["f", "g", node.op_type])
            body = [other, helper.make_node(rng.choice(["f", "g", "Relu"]), ["a"], ["b"], domain="local")]
            model.functions.append(
                helper.make_function("local", name, ["a"], ["b"], body, [helper.make_opsetid("", 18)])
            )
            node.domain, node.op_type = rng.choice([("local", name), ("", name), ("local", "f")])
        case 4 if node.output and other.output:
            node.output[0] = other.output[0]
        case 5:
            dimension = [d for value in graph.input for d in value.type.tensor_type.shape.dim]
            if dimension:
                rng.choice(dimension).dim_value = rng.choice(NUMBERS)
        case 6 if graph.initializer:
            tensor = rng.choice(graph.initializer)
            del tensor.dims[:]
            tensor.dims.extend(rng.choices(NUMBERS, k=rng.choice([0, 1, 2, 5])))
            if rng.random() < 0.5:
                tensor.ClearField("raw_data")
                tensor.data_location = TensorProto.EXTERNAL
        case _:
            attribute = AttributeProto(
                name=rng.choice(["axis", "perm", "to", "value", "shape", "kernel_shape", "num_outputs", "size"])
            )
            attribute.type = rng.choice(
                [AttributeProto.INT, AttributeProto.INTS, AttributeProto.TENSOR, AttributeProto.UNDEFINED]
            )
            attribute.i = rng.choice(NUMBERS)
            attribute.ints.extend(rng.choices(NUMBERS, k=rng.randrange(4)))
            node.attribute.append(attribute)


def model(rng: random.Random) -> tuple[bytes, str]:
    """A model, and sizes of dimensions as a spec writes them."""
    every = bases()
    data = rng.choice(every[:-3]) if rng.random() < 0.9 else rng.choice(every)
    if rng.random() < 0.8:
        message = ModelProto()
        message.ParseFromString(data)
        try:
            changed(rng, message)
            data = message.SerializeToString()
        except (DecodeError, ValueError):  # larger than the format allows, or nested too deeply
            return data, ""
        data = scrambled(rng, data) if rng.random() < 0.1 else data
    else:
        data = scrambled(rng, data)
    batch = rng.choice([1, 2, 2, 2, 2, 16, 10**6, 2**62])
    if (b"batch" in data) == (rng.random() < 0.9):
        return data, f" {{ batch = {batch} }}"
    return data, rng.choice([""] * 9 + [' { "x[0]" = 3 }'])
