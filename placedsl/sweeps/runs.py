"""What a sweep runs: axes of values, and each combination of them as one run."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from placedsl.units import NUMBER, TIME, UnitError, parse_quantity, whole

#: Begins the axis of a parameter, as in ``set.gpus``.
PARAMETER = "set."
#: So many runs are begun unless more are allowed.
MOST = 10_000

#: Axes by name, each with its values as texts.  Those of parameters begin with :data:`PARAMETER`.
Axes = Mapping[str, tuple[str, ...]]

#: Characters of a value that are shown in a message.
_MOST_SHOWN = 40

_RANGE = re.compile(r"\s*([+-]?\d+)\s*\.\.\s*([+-]?\d+)\s*")


class ValueProblem(Exception):  # noqa: N818 - told with others, never raised to a user
    """A value that cannot be what its axis is."""


@dataclass(frozen=True)
class Run:
    """One problem to solve.  None: as the spec says, else the default.

    ``spec`` and ``data`` are file names, ``parameters`` values as texts, ``time_limit`` is in seconds, ``gap`` a share.
    """

    spec: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    schedule: str | None = None
    data: str | None = None
    method: str | None = None
    solver: str | None = None
    seed: int | None = None
    time_limit: float | None = None
    gap: float | None = None
    workers: int | None = None

    def document(self) -> dict[str, Any]:
        """The run as plain data, as :func:`run_of` reads it."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"parameters": dict(self.parameters)}

    def words(self) -> str:
        """The run in one line."""
        said = [self.spec, *(f"{name}={value}" for name, value in self.parameters.items())]
        for name in FIELDS[1:]:
            value = getattr(self, name)
            if value is not None:
                said.append(f"{name}={value}")
        return " ".join(said)


#: The axes that are no parameters, slowest first.
FIELDS = tuple(f.name for f in fields(Run) if f.name != "parameters")


def run_of(document: Mapping[str, Any]) -> Run:
    """The run that a document describes."""
    return Run(**{f.name: document[f.name] for f in fields(Run) if f.name in document})


def several(text: str, most: int = MOST) -> tuple[tuple[str, ...], list[str]]:
    """The values of a list, and what is wrong with it: ``1..4,8`` gives five values, ``8 GiB, 16 GiB`` two."""
    out: list[str] = []
    problems = []
    for part in text.split(","):
        try:
            out += ranged(part.strip(), most)
        except ValueProblem as problem:
            problems.append(str(problem))
    if "" in out:
        problems.append(f"'{text}' lacks a value: values are separated by commas, as in 1..4,8")
    return tuple(value for value in out if value), problems


def ranged(text: str, most: int = MOST) -> tuple[str, ...]:
    """The numbers of a range of the language, both ends included; any other text is one value."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return (text,)
    first, last = whole(match[1].removeprefix("+")), whole(match[2].removeprefix("+"))
    if first is None or last is None:
        raise ValueProblem(f"a number of the range '{text[:_MOST_SHOWN]}…' has too many digits")
    if last < first:
        raise ValueProblem(f"the range '{text}' is empty: its end lies before its beginning")
    if last - first >= most:
        raise ValueProblem(f"the range '{text}' has {last - first + 1:,} values, more than {most:,}")
    return tuple(str(value) for value in range(first, last + 1))


def count(axes: Axes) -> int:
    """How many combinations there are."""
    return math.prod(len(values) for values in axes.values())


def product(axes: Axes) -> list[Run]:
    """Every combination, the spec slowest, then parameters in their order, the seed quickest.

    ValueProblem where a value cannot be what its axis is.
    """
    names = sorted(axes, key=lambda name: (_place(name), 0))
    return [_run(dict(zip(names, values, strict=True))) for values in itertools.product(*(axes[n] for n in names))]


def _place(name: str) -> float:
    return 0.5 if name.startswith(PARAMETER) else FIELDS.index(name)


def _run(chosen: Mapping[str, str]) -> Run:
    """One combination."""
    given: dict[str, Any] = {}
    parameters = {}
    for name, text in chosen.items():
        if name.startswith(PARAMETER):
            parameters[name.removeprefix(PARAMETER)] = text
        else:
            given[name] = typed(name, text)
    return Run(parameters=parameters, **given)


def typed(name: str, text: str) -> str | int | float:
    """The value of an axis that is no parameter."""
    if name in ("seed", "workers"):
        least = 0 if name == "seed" else 1
        number = whole(text)
        if number is None or number < least:
            text = text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
            raise ValueProblem(f"{name} '{text}': a whole number is expected, {least} or more")
        return number
    if name in ("time_limit", "gap"):
        wanted, example = ((TIME, NUMBER), "60s") if name == "time_limit" else ((NUMBER,), "1%")
        try:
            quantity = parse_quantity(text)
        except UnitError as problem:
            raise ValueProblem(f"{name}: {problem}") from None
        fits = quantity.value > 0 if name == "time_limit" else 0 <= quantity.value < 1
        if quantity.dimension not in wanted or not fits:
            raise ValueProblem(f"{name} '{text}': as in {example}")
        return quantity.value
    return text


def usable(axes: Axes) -> tuple[Axes, list[str]]:
    """The axes without the values that cannot be what their axis is, and what is wrong with these."""
    found = []
    out: dict[str, tuple[str, ...]] = {}
    for name, values in axes.items():
        good = []
        for value in dict.fromkeys(values):
            try:
                good += [value] if name.startswith(PARAMETER) or typed(name, value) is not None else []
            except ValueProblem as problem:
                found.append(str(problem))
        if good:
            out[name] = tuple(good)
    return out, found
