"""Programs that ``torch.export.save`` wrote, read without PyTorch: an archive with the program as JSON.

Weights are not looked at; their shapes stand in the program.  Shapes are those with which the model was exported,
unless the spec gives other sizes of its dynamic dimensions.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.graph import Folded, Graph
from placedsl.graph.readers import sizes as given_sizes
from placedsl.graph.readers.models import Step, graph_of
from placedsl.graph.readers.operations import Operator, Tensor
from placedsl.graph.readers.sizes import Sizes
from placedsl.graph.readers.symbols import UnknownSizeError, symbol, value
from placedsl.graph.readers.torch_operators import VIEWS, moved, operations
from placedsl.graph.readers.torch_regions import flattened, form_of, tensors

#: Where the program stands in an archive, of now and of PyTorch before 2.8.
_MEMBERS = ("*/models/*.json", "models/*.json", "*serialized_exported_program.json")
#: Bytes an element by the numbers that the format gives to types; others have 1.
_WIDTHS = {3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 13: 2, 27: 2, 28: 2}
_RANDOM = ("rand", "bernoulli", "normal", "multinomial", "dropout", "uniform")
_EXPECTED = 'as torch.export.save(program, "model.pt2") writes it'


def program(path: Path) -> Source:
    """The program in an archive, without the weights; InputError when there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if any(fnmatchcase(n, member) for member in _MEMBERS)]
            if len(names) != 1:
                what = "several programs" if names else "no exported program"
                raise _wrong(f"this archive holds {what}", _EXPECTED)
            size, largest = archive.getinfo(names[0]).file_size, limits.count("program-bytes")
            if size > largest:
                hint = limits.raising("program-bytes", size)
                raise _wrong(f"the program in this archive has {size:,} bytes, more than {largest:,}", hint)
            return Source(str(path), "", data=archive.read(names[0]))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as problem:
        reason = " ".join(str(problem).split()).lower()
        raise _wrong(f"this archive cannot be read: {reason or 'it ends early'}", "was it cut off?") from None


def read(source: Source, sizes: Sizes) -> Graph:
    """Read an exported program; ``sizes`` are those of its dynamic dimensions.  Raises InputError with every defect."""
    try:
        root = json.loads(source.data)
        return _Program(root, source, sizes).graph()
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise _wrong("the program in this archive is no JSON", "was it cut off?") from None
    except OverflowError:
        raise _wrong("a tensor of this program has more elements than can be counted", "are its sizes right?") from None
    except (LookupError, TypeError, AttributeError, ValueError, StopIteration, RecursionError) as problem:
        message = f"this program is not laid out as exported programs are: {type(problem).__name__} at {problem}"
        raise _wrong(message, _EXPECTED) from None


def inputs(source: Source, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shapes of a program's inputs by name, with these sizes of its dynamic dimensions."""
    program = _Program(json.loads(source.data), source, sizes)
    return {name: tuple(program.shapes[name].shape) for name in program.inputs if name in program.shapes}


def _wrong(message: str, hint: str = "") -> InputError:
    return InputError([Diagnostic(message, None, hint)])


class _Program:
    """One program: its tensors with their shapes, and which of them depend on no input."""

    def __init__(self, root: Mapping[str, Any], source: Source, sizes: Sizes) -> None:
        self.source = source
        module = root["graph_module"]
        self.nodes, self.values = flattened(module["graph"])
        self.constants: dict[str, float] = {}
        self.inputs: list[str] = []
        #: The parameter that a tensor is, or is a view of.
        self.parameters: dict[str, str] = {}
        specs = [next(iter(spec.items())) for spec in module["signature"]["input_specs"]]
        for kind, spec in specs:
            if kind == "constant_input":
                continue  # an argument such as use_cache=False, with which the model was exported: no tensor
            argument = spec["arg"]
            name = argument.get("name") or argument.get("as_tensor", {}).get("name")
            if kind == "user_input" and name:
                self.inputs.append(name)
            elif kind != "user_input" and name:
                self.constants[name] = 0.0
                if kind == "parameter":
                    self.parameters[name] = name
        self.symbols, self.notes = self._sizes(sizes)
        self.shapes = {name: self._tensor(name, meta) for name, meta in self.values.items()}
        self.constants = {name: self.shapes[name].bytes for name in self.constants if name in self.shapes}

    def _sizes(self, sizes: Sizes) -> tuple[dict[str, int], list[str]]:
        """The size of each symbol: as the spec gives it, else as exported, which is told."""
        hints: dict[str, int] = {}
        aliases: dict[str, str] = {}
        for tensor, meta in self.values.items():
            for axis, length in enumerate(meta["sizes"]):
                name = symbol(length["as_expr"]["expr_str"]) if "as_expr" in length else None
                if name is not None:
                    hint = (length["as_expr"].get("hint") or {}).get("as_int")
                    if hint is not None:
                        hints.setdefault(name, int(hint))
                    if tensor in self.inputs:
                        aliases.setdefault(f"{tensor}[{axis}]", name)
        known = {**{name: name for name in hints}, **aliases}
        wrong = given_sizes.unknown(sizes, known)
        if wrong:
            raise InputError(wrong)
        chosen = {known[name]: size.value for name, size in sizes.items()}
        found = {**hints, **chosen}
        told = [
            f"'{alias}' is {hints[name]}, as it was exported: \"{alias}\" = … beside the file's name gives another size"
            for alias, name in aliases.items()
            if name in hints and name not in chosen
        ]
        return found, told

    def _tensor(self, name: str, meta: Mapping[str, Any]) -> Tensor:
        lengths = []
        for length in meta["sizes"]:
            if "as_int" in length:
                lengths.append(int(length["as_int"]))
                continue
            text = length["as_expr"]["expr_str"]
            try:
                lengths.append(value(text, self.symbols))
            except UnknownSizeError as problem:
                message = f"the size {text} of tensor '{name}' cannot be told: {problem}"
                raise _wrong(message, "export the model with fixed sizes") from None
        if min(lengths, default=0) < 0:
            raise _wrong(f"tensor '{name}' has a size below zero", _EXPECTED)
        return Tensor(tuple(lengths), _WIDTHS.get(meta["dtype"], 1))

    def graph(self) -> Graph:
        """All of it put together."""
        steps: list[Step] = []
        gone: list[tuple[str, str]] = []
        for node in self.nodes:
            kind = _type(node["target"])
            arguments = {given["name"]: self._argument(kind, given["arg"]) for given in node["inputs"]}
            reads = [name for given in node["inputs"] for name in tensors(given["arg"])]
            makes = [name for made in node["outputs"] for name in tensors(made)]
            if not makes:
                gone.append((kind, str(node.get("name") or "")))
                continue  # sizes, and checks of them
            if all(name in self.constants for name in reads) and not any(word in kind for word in _RANDOM):
                gone += [(kind, name) for name in (str(node.get("name") or ""), *makes)]
                held = sum(self.constants[name] for name in dict.fromkeys(reads)) if kind in VIEWS else math.inf
                self.constants |= {name: min(self.shapes[name].bytes, held) for name in makes}
                viewed = self.parameters.get(reads[0]) if kind in VIEWS else None
                self.parameters |= dict.fromkeys(makes, viewed) if viewed is not None else {}
                continue
            operator = Operator(kind, [self.shapes[n] for n in reads], [self.shapes[n] for n in makes], arguments)
            module = _module(node.get("metadata") or {})
            steps.append(Step(str(node.get("name") or makes[0]), operator, reads, makes, module))
        names = {name for _, name in gone if name} | {*self.inputs, *self.constants, "output"}
        names |= {name for step in steps for name in step.makes[1:]}
        return graph_of(
            self.source, self._tied(steps), self.shapes, self.inputs, self.constants, operations, moved, self.notes,
            Folded(frozenset(names - {step.id for step in steps}), frozenset(kind for kind, _ in gone)),
        )  # fmt: skip

    def _tied(self, steps: Sequence[Step]) -> list[Step]:
        """The steps, with the first module that reads a parameter where others read the same one."""
        modules: dict[str, dict[str, None]] = {}
        for step in steps:
            for name in step.reads:
                if step.module and name in self.parameters:
                    modules.setdefault(self.parameters[name], {})[step.module] = None
        first = {parameter: next(iter(readers)) for parameter, readers in modules.items() if len(readers) > 1}
        own = [next((first[p] for n in s.reads if (p := self.parameters.get(n)) in first), None) for s in steps]
        return [replace(step, tied=module) for step, module in zip(steps, own, strict=True)]

    def _argument(self, kind: str, given: Mapping[str, Any]) -> Any:
        """What an argument is: a tensor's shape, or the value itself."""
        form, inner = form_of(given)
        match form:
            case "as_tensor":
                return self.shapes[inner["name"]]
            case "as_tensors":
                return [self.shapes[one["name"]] for one in inner]
            case "as_graph":
                message = f"an operator of type '{kind}' holds a graph of its own, which is not read"
                raise _wrong(message, "export the model without control flow")
        return inner


def _type(target: str) -> str:
    """``linear`` of ``torch.ops.aten.linear.default``; operators of other libraries keep the library's name."""
    parts = target.removeprefix("torch.ops.").split(".")
    if parts[0] == "aten" and len(parts) > 1:
        name = parts[1]
        return name[:-1] if name.endswith("_") and not name.endswith("__") else name
    return ".".join(parts[:2])


def _module(metadata: Mapping[str, Any]) -> str | None:
    """The path of the module that an operator is part of, such as ``body.layers.0.linear1``."""
    entries = str(metadata.get("nn_module_stack", "")).split(";")
    parts = entries[-1].split(",")
    return parts[1] if len(parts) >= 3 and parts[1] else None
