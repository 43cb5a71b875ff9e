"""Constraints that the user wrote: which of their instances fail, and with what values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from placedsl.evaluation import conditions
from placedsl.evaluation.binder_loops import Env
from placedsl.evaluation.built_in_constraints import SHOWN
from placedsl.evaluation.evaluation import Violation
from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.overlap import overlaps
from placedsl.problem import expressions as core
from placedsl.problem.problem import Constraint
from placedsl.records import dataclass
from placedsl.units import NUMBER, Dimension, show, shown_in

#: Bound variables in scope: name, sort, register.
Scope = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """One instance that fails; ``describe`` reads the environment and must be called at once."""

    amount: float
    describe: Callable[[], str]


Failures = Callable[[Env], Iterator[Failure]]


def check(rule: Constraint, compiler: Compiler) -> Violation | None:
    """Evaluate a rule; a violation names the first few instances that fail, and how many there are."""
    failures = _failures(rule.body, (), compiler)
    shown: list[str] = []
    count, amount = 0, 0.0
    for failure in failures(compiler.environment()):
        count += 1
        amount = max(amount, failure.amount)
        if len(shown) < SHOWN:
            shown.append(failure.describe())
    if not count:
        return None
    message = "; ".join(shown)
    if count > len(shown):
        message += f"; and {count - len(shown)} more"
    if count > 1:
        message = f"{count} instances fail: {message}"
    return Violation(rule.name, message, rule.span, amount)


def _failures(node: core.Expression, scope: Scope, compiler: Compiler) -> Failures:
    """The failing instances, through ``forall``, ``and`` and the right side of ``=>``."""
    match node:
        case core.Forall(binders=binders, body=body):
            with compiler.bound(binders) as loop:
                named = tuple(
                    (slot, sort, compiler.registers[slot])
                    for binder in binders
                    for slot, sort in zip(binder.slots, binder.sorts, strict=True)
                )
                hidden = {slot for slot, _, _ in named}
                kept = tuple(entry for entry in scope if entry[0] not in hidden)
                inner = _failures(body, kept + named, compiler)

            def over_all(env: Env) -> Iterator[Failure]:
                for _ in loop(env):
                    yield from inner(env)

            return over_all
        case core.Logic(operator="and", parts=parts):
            each = [_failures(part, scope, compiler) for part in parts]

            def over_parts(env: Env) -> Iterator[Failure]:
                for part in each:
                    yield from part(env)

            return over_parts
        case core.NoOverlap():
            return _overlaps(node, scope, compiler)
        case core.Logic(operator="=>", parts=(left, right)):
            applies, then = compiler.truth(left), _failures(right, scope, compiler)
            return lambda env: then(env) if applies(env) else iter(())
    return _leaf(node, scope, compiler)


def _overlaps(node: core.NoOverlap, scope: Scope, compiler: Compiler) -> Failures:
    """Each pair of intervals that overlap."""
    found = overlaps(node, compiler)

    def run(env: Env) -> Iterator[Failure]:
        for overlap in found(env):
            yield Failure(overlap.amount, partial(_within, scope, compiler, env, overlap.text(node.dimension)))

    return run


def _within(scope: Scope, compiler: Compiler, env: Env, reason: str) -> str:
    """What is said of an instance, after the values of the bound variables."""
    label = compiler.data.label
    bound = ", ".join(f"{name.partition(chr(39))[0]}={label(sort, env[register])}" for name, sort, register in scope)
    return ": ".join(text for text in (bound, reason) if text)


def _leaf(node: core.Expression, scope: Scope, compiler: Compiler) -> Failures:
    """A single condition, with the values of both sides when it is a comparison."""
    detail, amount = _detail(node, compiler), _amount(node, compiler)
    witness = conditions.witness(node, compiler) if isinstance(node, core.SetProperty) else None
    truth = compiler.truth(node) if witness is None else None

    def run(env: Env) -> Iterator[Failure]:
        reason = ""
        if truth is not None:
            if truth(env):
                return
        elif witness is not None:
            reason = witness(env)
            if not reason:
                return

        def describe() -> str:
            return _within(scope, compiler, env, reason or detail(env))

        yield Failure(amount(env), describe)

    return run


def _detail(node: core.Expression, compiler: Compiler) -> Callable[[Env], str]:
    """What is said of a condition that fails."""
    if not isinstance(node, core.Comparison):
        return lambda _: "does not hold"
    operator = node.operator
    if node.of == "number":
        first, second = compiler.number(node.left), compiler.number(node.right)
        return lambda env: " ".join((*_shown_apart(first(env), operator, second(env), node.dimension), "does not hold"))
    left, right = _shown(node.left, node.of, compiler), _shown(node.right, node.of, compiler)
    return lambda env: f"{left(env)} {operator} {right(env)} does not hold"


def _shown_apart(left: float, operator: str, right: float, dimension: Dimension) -> tuple[str, str, str]:
    """Both numbers with their unit, and with more digits where they would look the same."""
    texts = amount(left, dimension), amount(right, dimension)
    if texts[0] == texts[1] and left != right:
        unit, size = shown_in(dimension)
        texts = f"{left / size:.12g} {unit}".rstrip(), f"{right / size:.12g} {unit}".rstrip()
    return texts[0], operator, texts[1]


def amount(value: float, dimension: Dimension) -> str:
    """A number with its unit."""
    return f"{value:.10g}" if dimension == NUMBER or not math.isfinite(value) else show(value, dimension)


def _shown(node: core.Expression, of: str, compiler: Compiler) -> Callable[[Env], str]:
    """The value of a side of a comparison as text."""
    if of == "text":
        text = compiler.text(node)
        return lambda env: "nothing" if text(env) is None else f'"{text(env)}"'
    if of == "element":
        position, sort = compiler.position(node), _sort(node)
        return lambda env: compiler.data.label(sort, position(env))
    truth = compiler.truth(node)
    return lambda env: "true" if truth(env) else "false"


def _sort(node: core.Expression) -> str:
    """The sort of an element; attributes that are elements are nodes."""
    return node.sort if isinstance(node, core.Slot | core.Element | core.Pick) else "node"


def _amount(node: core.Expression, compiler: Compiler) -> Callable[[Env], float]:
    """How far apart the sides of a comparison of numbers are."""
    if not isinstance(node, core.Comparison) or node.of != "number":
        return lambda _: 0.0
    left, right = compiler.number(node.left), compiler.number(node.right)

    def apart(env: Env) -> float:
        out = abs(left(env) - right(env))
        return 0.0 if math.isnan(out) else out

    return apart
