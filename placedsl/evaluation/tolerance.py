"""Arithmetic and comparisons of numbers: exact between data, within a tolerance where a placement decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from placedsl.tolerances import EVALUATION, EVALUATION_ABSOLUTE, SOLVER_ROW

Compare = Callable[[float, float], bool]


def total(values: Iterable[float]) -> float:
    """The sum, rounded once; nan where infinities of both signs meet."""
    listed = list(values)
    try:
        return math.fsum(listed)
    except (ValueError, OverflowError):
        return sum(listed)


def same(left: float, right: float) -> bool:
    """Equal within the tolerance; an infinity equals itself only, nan nothing."""
    if left == right:
        return True
    apart = abs(left - right)
    return apart < math.inf and apart <= EVALUATION * max(abs(left), abs(right)) + EVALUATION_ABSOLUTE


def at_most(left: float, right: float) -> bool:
    """``left <= right`` within the tolerance."""
    return left <= right or same(left, right)


def _differ(left: float, right: float) -> bool:
    return left < right or left > right


#: Comparisons between data; all are false of nan.
EXACT: dict[str, Compare] = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "!=": _differ,
}

#: Comparisons of numbers that the placement decides; what is the same is neither less nor greater.
TOLERANT: dict[str, Compare] = EXACT | {
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
    "<": lambda a, b: a < b and not same(a, b),
    ">": lambda a, b: a > b and not same(a, b),
    "==": same,
    "!=": lambda a, b: _differ(a, b) and not same(a, b),
}


def loosely(operator: str, left: float, right: float, largest: float) -> bool:
    """A comparison of numbers of which one is a solver's own."""
    slack = SOLVER_ROW * largest
    if operator in ("<=", "<"):
        return left <= right + slack
    if operator in (">=", ">"):
        return left >= right - slack
    return (abs(left - right) <= slack) == (operator == "==")


def product(left: float, right: float) -> float:
    """The product, where nothing times infinity is nothing."""
    out = left * right
    return 0.0 if math.isnan(out) and not (math.isnan(left) or math.isnan(right)) else out


def extreme(operator: str, values: Sequence[float]) -> float:
    """``max`` or ``min`` of some values; nan if any of them is nan."""
    if any(map(math.isnan, values)):
        return math.nan
    return max(values) if operator == "max" else min(values)
