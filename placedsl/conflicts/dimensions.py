"""The dimension of the numbers that a checked comparison compares, for messages."""

from __future__ import annotations

from placedsl import expressions as core
from placedsl.language.vocabulary import DEVICE_ATTRIBUTES, vocabulary
from placedsl.problem import Problem
from placedsl.units import NUMBER, Dimension, UnitError, parse_quantity


def dimension_of(comparison: core.Comparison, problem: Problem) -> Dimension:
    """The dimension of both sides; that of a plain number where it cannot be told (a product with a parameter)."""
    known = {k: DEVICE_ATTRIBUTES[k] for d in problem.machine.devices for k in d.attributes if k in DEVICE_ATTRIBUTES}
    words = vocabulary(problem.graph, problem.machine, known)

    def of(part: core.Expression) -> Dimension | None:
        match part:
            case core.Constant(span=span):
                line = span.source.line(span.line)
                try:
                    return parse_quantity(line[span.column - 1 : span.column - 1 + span.length]).dimension
                except UnitError:
                    return None  # a parameter, or a sum that was computed beforehand
            case core.Provided(name=name) if name in words.quantities:
                return words.quantities[name].type.dimension
            case core.Attribute(name=name, sort=sort) if name in words.attributes.get(sort, {}):
                return words.attributes[sort][name].type.dimension
            case core.Aggregate(operator=operator, body=body) if operator != "count":
                return of(body)
            case core.Largest(items=items):
                return next((d for d in map(of, items) if d is not None), None)
            case core.Conditional(then=then, otherwise=otherwise):
                return of(then) or of(otherwise)
            case core.Arithmetic(operator=operator, left=left, right=right):
                first, second = of(left), of(right)
                if operator in ("+", "-"):
                    return first or second
                if first is None or second is None:
                    return None
                return first * second if operator == "*" else first / second
        return NUMBER

    return of(comparison.left) or of(comparison.right) or NUMBER
