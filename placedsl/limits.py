"""Limits on the size of what is asked for, by name: an input is refused before memory or time is gone.

The environment variable ``PLACEDSL_LIMITS`` sets other values, for the command line, Python and the editor alike, as in
``PLACEDSL_LIMITS="devices=1e6, graph-bytes=4 GiB"``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import lru_cache

from placedsl.diagnostics import UsageError, nearest
from placedsl.records import dataclass

#: The environment variable.
VARIABLE = "PLACEDSL_LIMITS"


@dataclass(frozen=True)
class Limit:
    """A limit by its name: the value when nothing is said, what it counts, and of what.

    ``highest``: no larger value is accepted, for what a machine with more memory could not do either.
    """

    name: str
    value: float
    unit: str
    meaning: str
    highest: float = math.inf


LIMITS: Mapping[str, Limit] = {
    one.name: one
    for one in (
        Limit("spec-bytes", 2**26, "bytes", "the text of a spec, or of a file that it imports"),
        Limit("data-bytes", 2**28, "bytes", "a file of values for parameters"),
        Limit("graph-bytes", 2**31, "bytes", "a graph file or a model"),
        Limit("program-bytes", 2**30, "bytes", "the program in an archive of PyTorch, unpacked"),
        Limit("stream-bytes", 2**28, "bytes", "what is read of a pipe or a device, whose size is not known beforehand"),
        Limit("nesting", 150, "levels", "an expression, by itself and with its definitions in place", 300),
        Limit("definitions", 100_000, "uses", "uses of definitions in a spec"),
        Limit("parts", 30_000, "parts", "one expression with its definitions in place"),
        Limit("combinations", 50_000_000, "combinations", "what one forall, exists, sum or set ranges over"),
        Limit("stated", 4_000_000, "combinations", "the same of a constraint or an objective of the spec in a program"),
        Limit("cells", 150_000_000, "numbers", "combinations times bound variables; each number takes 8 bytes"),
        Limit("visited", 20_000_000_000, "combinations", "what is looked at to find those that pass 'where'"),
        Limit("indices", 200_000_000, "combinations", "all indices that a variable of several indices could have"),
        Limit("devices", 10_000, "devices", "the devices of a spec"),
        Limit("clusters", 10_000, "clusters", "the clusters of a spec"),
        Limit("pieces", 1_000, "calls", "calls of an accelerator: 'pieces' of schedule calls"),
        Limit("copies", 10_000, "devices", "devices that may share a stage: 'data' of parallelism"),
        # Sums and products of two costs are to stay within the numbers of a computer.
        Limit("cost", 1e100, "SI units", "a time, memory or output of one node", 1e150),
        Limit(
            "operators", 200_000, "operators", "an ONNX model with its functions written out; layers of a config.json"
        ),
        Limit("elements", 1e18, "elements", "a tensor of a model"),
        Limit("constants", 4096, "elements", "a constant of an ONNX model from which shapes are computed", 1e9),
        Limit("samples", 5_000_000, "runs of pieces", "a timeline: its samples times the pieces that run each"),
    )
}


def limit(name: str) -> float:
    """The value of a limit; UsageError where ``PLACEDSL_LIMITS`` cannot be used."""
    return settings()[name]


def count(name: str) -> int:
    """The value of a limit that is a whole number."""
    return int(limit(name))


def settings() -> Mapping[str, float]:
    """Every limit by name, as ``PLACEDSL_LIMITS`` and the defaults say; UsageError where it cannot be used."""
    return _settings(os.environ.get(VARIABLE, ""))


def raising(name: str, needed: float | None = None) -> str:
    """How a limit is raised, for the hint of a message; ``needed``: what would do (None: that is not known)."""
    one = LIMITS[name]
    if limit(name) >= one.highest:
        return f"this is the limit '{name}' at its highest"
    wanted = 10.0 * limit(name) if needed is None else max(needed, limit(name) + 1.0)
    return (
        f"the limit '{name}' is raised by the environment variable {VARIABLE}={name}={_shown(min(wanted, one.highest))}"
    )


def hint(text: str, name: str, needed: float | None = None) -> str:
    """What to do about a limit: a hint, and how it is raised."""
    return f"{text}; {raising(name, needed)}" if text else raising(name, needed)


def shown(one: Limit) -> str:
    """The value of a limit when nothing is said, with its unit."""
    from placedsl.units import DATA, show

    if one.unit == "bytes":
        value = show(one.value, DATA)
    else:
        value = (f"{one.value:,.0f}" if one.value < 1e12 else f"{one.value:g}") + f" {one.unit}"
    return value + (f", {one.highest:g} at most" if one.highest < math.inf else "")


def _shown(value: float) -> str:
    """A value that reads back as no less."""
    if value < 1e7:
        return str(math.ceil(value))
    exponent = math.floor(math.log10(value)) - 1
    rounded = math.ceil(value / 10.0**exponent)
    return f"{rounded}e{exponent}" if rounded % 10 else f"{rounded // 10}e{exponent + 1}"


@lru_cache(maxsize=16)
def _settings(text: str) -> Mapping[str, float]:
    """All limits under a text ``name=value, name=value``."""
    out = {name: one.value for name, one in LIMITS.items()}
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, number = (word.strip() for word in part.partition("="))
        if not equals:
            raise UsageError(f"{VARIABLE}: '{part.strip()}' is not name=value, as in devices=1e6")
        if name not in LIMITS:
            raise UsageError(f"{VARIABLE}: there is no limit '{name}'; {nearest(name, LIMITS)}")
        out[name] = _value(LIMITS[name], number)
    return out


def _value(one: Limit, text: str) -> float:
    """A number, or of bytes a size such as ``4 GiB``; from 1 on and finite."""
    from placedsl.units import DATA, NUMBER, UnitError, parse_quantity

    try:
        quantity = parse_quantity(text)
    except UnitError:
        quantity = None
    known = (NUMBER, DATA) if one.unit == "bytes" else (NUMBER,)
    example = "4 GiB" if one.unit == "bytes" else _shown(min(10.0 * one.value, one.highest))
    if quantity is None or quantity.dimension not in known or not 1.0 <= quantity.value < math.inf:
        raise UsageError(f"{VARIABLE}: '{text}' is no value of {one.name}, as in {one.name}={example}")
    if quantity.value > one.highest:
        raise UsageError(f"{VARIABLE}: {one.name} is {_shown(one.highest)} at most, here it is {text}")
    return quantity.value
