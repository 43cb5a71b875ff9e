"""Sizes of a model's symbolic dimensions, as a spec gives them: ``graph from "x.onnx" { batch = 1 }``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placedsl.diagnostics import Diagnostic, Span, nearest


@dataclass(frozen=True, slots=True)
class Size:
    """A whole number, 1 or more, and where its name stands."""

    value: int
    place: Span | None = None


Sizes = Mapping[str, Size]

#: What else ``graph from "FILE" { … }`` may say.
SETTINGS = ("time_unit", "format", "profile")


def unknown(sizes: Sizes, known: Iterable[str]) -> list[Diagnostic]:
    """Sizes of dimensions that the model does not have; ``known`` are those that it has."""
    names = list(known)
    more = ", and the model no dimension of that name" if names else ""
    return [
        Diagnostic(f"a graph file has no '{name}'{more}", size.place, nearest(name, [*names, *SETTINGS]))
        for name, size in sizes.items()
        if name not in names
    ]


def missing(dimensions: Mapping[str, str], sizes: Sizes) -> list[Diagnostic]:
    """Dimensions without a size; ``dimensions`` says of each where the model has it."""
    return [
        Diagnostic(
            f"the dimension '{name}' of {where} has no size",
            None,
            f'say it, as in graph from "…" {{ {name if name.isidentifier() else chr(34) + name + chr(34)} = 1 }}',
        )
        for name, where in dimensions.items()
        if name not in sizes
    ]
