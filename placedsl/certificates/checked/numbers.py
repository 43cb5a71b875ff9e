"""Numbers of a certificate, each as the fraction that it is."""

from __future__ import annotations

from fractions import Fraction

#: How near the value of an answer is to that of its placement, and a claimed bound to the one that is proven: sums of
#: doubles in another order.
SAME = Fraction(1, 10**9)


class RefusedError(Exception):
    """The certificate, or the answer, is not what it says."""


def number(value: object, what: str) -> Fraction:
    """A finite number; RefusedError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(f"{what} is no number")
    try:
        return Fraction(value)
    except (OverflowError, ValueError):
        raise RefusedError(f"{what} is not finite") from None


def amount(value: object, what: str) -> Fraction:
    """A number that is not negative."""
    found = number(value, what)
    if found < 0:
        raise RefusedError(f"{what} is negative")
    return found


def position(value: object, end: int, what: str) -> int:
    """A whole number from 0, below ``end``; RefusedError where it is none."""
    if type(value) is not int or not 0 <= value < end:
        raise RefusedError(f"{what} is none")
    return value


def denominator(values: list[Fraction]) -> int:
    """What all of them are whole multiples of one over."""
    out = 1
    for value in values:
        own = value.denominator
        if out % own:
            out = out // _common(out, own) * own
    return out


def _common(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a
