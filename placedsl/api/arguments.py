"""What callers in Python pass in: UsageError, with the argument's name, for what is of another type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from placedsl.diagnostics import UsageError
from placedsl.problem.problem import Problem


def path(name: str, value: object) -> Path:
    """A file name, a text or a path."""
    if isinstance(value, PathLike):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise wrong(name, value, "a file name is expected, a text or a path")
    return Path(value)


def text(name: str, value: object, example: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise wrong(name, value, f"a text is expected, as in {example}")
    return value


def mapping(name: str, value: object, example: str) -> Mapping[str, Any]:
    """A mapping whose keys are texts; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(name, value, f"a mapping from names is expected, as in {example}")
    return value


def texts(name: str, value: object, example: str) -> Mapping[str, str]:
    """A mapping from texts to texts; None is an empty one."""
    out = mapping(name, value, example)
    for inner in out.values():
        text(name, inner, example)
    return out


def placement(problem: Problem, value: object) -> list[int]:
    """Device positions, of a mapping from node ids to device names or a sequence of positions."""
    if isinstance(value, Mapping):
        from placedsl.problem.placement_files import positions

        return positions(problem, value)
    whole = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    if not whole or not all(isinstance(d, Integral) and not isinstance(d, bool) for d in value):  # type: ignore[attr-defined]
        hint = "node ids and device names, or the position of a device for each node, are expected"
        raise wrong("placement", value, hint)
    return [int(d) for d in value]  # type: ignore[attr-defined]


def wrong(name: str, value: object, expected: str) -> UsageError:
    """An argument that cannot be used."""
    shown = repr(value)
    return UsageError(f"{name}={shown if len(shown) <= 60 else shown[:57] + '...'}: {expected}")
