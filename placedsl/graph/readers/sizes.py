"""Sizes that a spec gives a model, as in ``graph from "x.onnx" { batch = 1 }``: of dimensions, and of types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placedsl.diagnostics import Diagnostic, Span, nearest
from placedsl.records import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """A whole number, 1 or more, and where its name stands; the bits of an element where a type of numbers is given."""

    value: int
    place: Span | None = None


Sizes = Mapping[str, Size]

#: Bits of an element by the names of types of numbers.
BITS: Mapping[str, int] = {
    **dict.fromkeys(("fp64", "float64", "double"), 64), **dict.fromkeys(("fp32", "float32", "float"), 32),
    **dict.fromkeys(("bf16", "bfloat16", "fp16", "float16", "half", "int16"), 16),
    **dict.fromkeys(("fp8", "float8_e4m3fn", "float8_e5m2", "int8", "uint8"), 8),
    **dict.fromkeys(("fp4", "nvfp4", "mxfp4", "int4", "uint4"), 4), "int2": 2,
}  # fmt: skip
#: Entries that are such types.
TYPES = ("dtype", "weights")
#: So many dimensions are named.
_MOST_NAMED = 12
#: What else ``graph from "FILE" { … }`` may say.
SETTINGS = ("time_unit", "format", "profile", *TYPES)

#: What a size usually is, where that is not 1.
_USUAL = {"length": 4096}


def unknown(sizes: Sizes, known: Iterable[str]) -> list[Diagnostic]:
    """Sizes of dimensions that the model does not have; ``known`` are those that it has, all of which are told."""
    names = list(known)
    more = ", and the model no dimension of that name" if names else ""
    return [
        Diagnostic(f"a graph file has no '{name}'{more}", size.place, _meant(name, names))
        for name, size in sizes.items()
        if name not in names
    ]


def _meant(name: str, names: list[str]) -> str:
    """The nearest name, and the dimensions that there are."""
    if name in TYPES:
        return "a type of numbers is for a config.json: other models name their own"
    close = nearest(name, [*names, *(word for word in SETTINGS if word not in TYPES)])
    if names and not close.startswith("did you mean"):
        close = ""
    more = f" … ({len(names)} in all)" if len(names) > _MOST_NAMED else ""
    listed = f"its dimensions: {', '.join(names[:_MOST_NAMED])}{more}" if names else ""
    return f"{close} {listed}".strip()


def missing(dimensions: Mapping[str, str], sizes: Sizes) -> list[Diagnostic]:
    """Dimensions without a size; ``dimensions`` says of each where the model has it."""
    return [
        Diagnostic(
            f"the dimension '{name}' of {where} has no size",
            None,
            f'say it, as in graph from "…" {{ {name if name.isidentifier() else chr(34) + name + chr(34)} = '
            f"{_USUAL.get(name, 1)} }}",
        )
        for name, where in dimensions.items()
        if name not in sizes
    ]
