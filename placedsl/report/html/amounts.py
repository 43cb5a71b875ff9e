"""Values of an answer's document as pages show them, by the unit that the document gives."""

from __future__ import annotations

import math
from typing import Any

from placedsl.units import CANONICAL, DATA, show

_DIMENSIONS = {unit: dimension for dimension, (unit, _) in CANONICAL.items()}


def amount(value: float | None, unit: str) -> str:
    """A value with its unit, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    dimension = _DIMENSIONS.get(unit)
    return f"{value:.6g} {unit}" if dimension is None else show(value, dimension)


def size(number: float | None) -> str:
    """Bytes."""
    return "–" if number is None else show(number, DATA)


def time_unit(document: dict[str, Any]) -> str:
    """The unit of loads and times: ``s``, or empty where the graph has a unit of its own.

    Answers of versions that did not say it have it in their objectives, if these are times.
    """
    named = any(goal["unit"] == "s" for goal in document["objectives"])
    return str(document.get("time_unit", "s" if named else ""))


def several(number: int, word: str) -> str:
    """``1 node``, ``2,000 nodes``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")
