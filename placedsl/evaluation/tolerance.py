"""Arithmetic and comparisons of numbers: exact between data, within a tolerance where a placement decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from placedsl.tolerances import EVALUATION, SOLVER_ROW

Compare = Callable[[float, float], bool]
#: The two sides of a comparison, and the size of the terms that they are made of, asked for where it matters.
CompareTerms = Callable[[float, float, Callable[[], float]], bool]
#: Doubles hold every whole number below this.
_WHOLE = 2.0**53


def total(values: Iterable[float]) -> float:
    """The sum, rounded once; nan where infinities of both signs meet."""
    listed = list(values)
    try:
        return math.fsum(listed)
    except (ValueError, OverflowError):
        return sum(listed)


def no_terms() -> float:
    """The size of terms that are no larger than their sum."""
    return 0.0


def whole(value: float) -> bool:
    """A whole number that doubles add exactly: bytes, counts."""
    return -_WHOLE < value < _WHOLE and value == round(value)


def same(left: float, right: float, size: Callable[[], float] = no_terms) -> bool:
    """Equal within the rounding of the terms that the two sides are made of; ``size`` gives the largest of these.

    Whole numbers are exact: sums of bytes that differ by one byte are not the same.  An infinity equals itself only,
    nan nothing.
    """
    if left == right:
        return True
    apart = abs(left - right)
    if not apart < math.inf or (whole(left) and whole(right)):
        return False
    return apart <= EVALUATION * max(abs(left), abs(right)) or apart <= EVALUATION * size()


def at_most(left: float, right: float, size: Callable[[], float] = no_terms) -> bool:
    """``left <= right`` within the tolerance."""
    return left <= right or same(left, right, size)


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
TOLERANT: dict[str, CompareTerms] = {
    "<=": at_most,
    ">=": lambda a, b, size: at_most(b, a, size),
    "<": lambda a, b, size: a < b and not same(a, b, size),
    ">": lambda a, b, size: a > b and not same(a, b, size),
    "==": same,
    "!=": lambda a, b, size: _differ(a, b) and not same(a, b, size),
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
