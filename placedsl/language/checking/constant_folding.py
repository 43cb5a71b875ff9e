"""Numbers known while checking: folding, and the zero that fits any dimension."""

from __future__ import annotations

import operator

from placedsl.diagnostics import Span
from placedsl.language.checking.vocabulary import Type
from placedsl.problem import expressions as core

_OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "mod": operator.mod,
}  # fmt: skip


def fold(op: str, left: core.Expression, right: core.Expression, span: Span) -> core.Expression:
    """``left op right``, computed when both are known (a known divisor is not zero)."""
    if isinstance(left, core.Constant) and isinstance(right, core.Constant):
        a, b = float(left.value), float(right.value)
        return core.Constant(_OPERATIONS[op](a, b), span)
    return core.Arithmetic(op, left, right, span)


def known_number(node: core.Expression) -> float | None:
    """The number that an expression is, if it is known."""
    if isinstance(node, core.Constant) and not isinstance(node.value, bool | str):
        return float(node.value)
    return None


def is_zero(node: core.Expression) -> bool:
    """Whether an expression is the number zero."""
    return isinstance(node, core.Constant) and not isinstance(node.value, str) and float(node.value) == 0.0


def same_dimension(left: core.Expression, a: Type, right: core.Expression, b: Type) -> bool:
    """Zero may stand for zero of any dimension."""
    return a.dimension == b.dimension or is_zero(left) or is_zero(right)
