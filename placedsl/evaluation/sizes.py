"""The size of the terms of a number, which rounding is measured by: terms may cancel, their sizes add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from placedsl.evaluation.binder_loops import Env
from placedsl.evaluation.tolerance import product, total
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core

if TYPE_CHECKING:
    from placedsl.evaluation.expressions import Compiler

#: Attributes of nodes, tensors and devices that are never negative.
_NOT_NEGATIVE = frozenset({"memory", "time", "size", "number", "supported", "synchronisation", "backward"})


def size(
    node: core.Expression, compiler: Compiler, known: Callable[[Env], float] | None = None
) -> Callable[[Env], float]:
    """The size of the terms of a number; where none cancel, that of the number itself.

    ``known``: the number, where it is compiled already.
    """
    if cancels(node, compiler):
        match node:
            case core.Arithmetic(operator=operator) if operator != "mod":
                left, right = size(node.left, compiler), size(node.right, compiler)
                if operator in "+-":
                    return lambda env: left(env) + right(env)
                if operator == "*":
                    return lambda env: product(left(env), right(env))
                divisor = compiler.number(node.right)
                return lambda env: left(env) / abs(divisor(env))
            case core.Aggregate(operator=operator) if operator != "count":
                with compiler.bound(node.binders) as loop:
                    body = size(node.body, compiler)
                if operator == "sum":
                    return lambda env: total(body(env) for _ in loop(env))
                return lambda env: max((body(env) for _ in loop(env)), default=0.0)
            case core.Largest(items=items):
                listed = [size(item, compiler) for item in items]
                return lambda env: max(item(env) for item in listed)
            case core.Absolute(part=part):
                return size(part, compiler)
            case core.Conditional(condition=condition, then=then, otherwise=otherwise):
                holds, yes, no = compiler.truth(condition), size(then, compiler), size(otherwise, compiler)
                return lambda env: yes(env) if holds(env) else no(env)
    value = compiler.number(node) if known is None else known
    return lambda env: abs(value(env))


def cancels(node: core.Expression, compiler: Compiler) -> bool:
    """Whether terms of different signs may meet in a number."""
    return any(_negative(part, compiler) for part in walks.every(node))


def _negative(part: object, compiler: Compiler) -> bool:
    """Whether a part of a number subtracts, or may be negative itself."""
    problem = compiler.data.problem
    match part:
        case core.Arithmetic(operator=operator):
            return operator == "-"
        case core.Constant(value=float() | int() as value):
            return value < 0
        case core.Table(name=name):
            return any(isinstance(v, float | int) and v < 0 for v in problem.tables[name].values.values())
        case core.Attribute(name=name):
            return name not in _NOT_NEGATIVE
        case core.Decision(variable=name):
            return name in problem.variables and problem.variables[name].low < 0.0
    return False
