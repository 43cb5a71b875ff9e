"""Conditions compiled: logic, comparisons, membership in sets, and properties of sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from placedsl.evaluation.binder_loops import Env, Truth, as_element
from placedsl.evaluation.quantities import RUN_QUANTITIES
from placedsl.evaluation.set_properties import property_witness
from placedsl.evaluation.sizes import size
from placedsl.evaluation.tolerance import EXACT, TOLERANT, loosely
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core

if TYPE_CHECKING:
    from placedsl.evaluation.expressions import Compiler


def logic(node: core.Logic, compiler: Compiler) -> Truth:
    """``and``, ``or`` and ``=>``."""
    parts = [compiler.truth(part) for part in node.parts]
    if node.operator == "and":
        return lambda env: all(part(env) for part in parts)
    if node.operator == "or":
        return lambda env: any(part(env) for part in parts)
    left, right = parts
    return lambda env: not left(env) or right(env)


def comparison(node: core.Comparison, compiler: Compiler) -> Truth:
    """A comparison; numbers that depend on the placement are compared within a tolerance."""
    if node.of == "number":
        if approximate(node, compiler):
            return _loose_comparison(node, compiler)
        left, right = compiler.number(node.left), compiler.number(node.right)
        if not walks.decided(node):
            exact = EXACT[node.operator]
            return lambda env: exact(left(env), right(env))
        compare, terms = TOLERANT[node.operator], size_of_terms(node, compiler, left, right)
        return lambda env: compare(left(env), right(env), lambda: terms(env))
    read: Callable[[core.Expression], Callable[[Env], object]]
    read = {"text": compiler.text, "element": compiler.position, "truth": compiler.truth}[node.of]
    a, b = read(node.left), read(node.right)
    if node.of == "text":
        equal = node.operator == "=="

        def compared(env: Env) -> bool:
            """An attribute that an element does not have is neither equal to a text nor different from it."""
            left, right = a(env), b(env)
            return left is not None and right is not None and (left == right) == equal

        return compared
    if node.operator == "==":
        return lambda env: a(env) == b(env)
    return lambda env: a(env) != b(env)


def size_of_terms(
    node: core.Comparison, compiler: Compiler, left: Callable[[Env], float], right: Callable[[Env], float]
) -> Callable[[Env], float]:
    """The size of the terms of both sides of a comparison, which are compiled already, however many cancel.

    It is seldom asked for, and compiled then: within the binders of now.
    """
    registers = dict(compiler.registers)
    made: list[Callable[[Env], float]] = []

    def largest(env: Env) -> float:
        if not made:
            now, compiler.registers = compiler.registers, registers
            made.extend((size(node.left, compiler, left), size(node.right, compiler, right)))
            compiler.registers = now
        env.extend([-1] * (compiler.count - len(env)))
        return max(terms(env) for terms in made)

    return largest


def approximate(node: core.Expression, compiler: Compiler) -> bool:
    """Whether a real variable of the spec, or a given time, occurs: solvers give those within a tolerance only."""
    own, given = compiler.data.problem.variables, compiler.quantities.not_before
    if given and any(isinstance(p, core.Provided) and p.name in RUN_QUANTITIES for p in walks.every(node)):
        return True
    return any(isinstance(p, core.Decision) and p.variable in own and not own[p.variable].integer
               for p in walks.every(node))  # fmt: skip


def _loose_comparison(node: core.Comparison, compiler: Compiler) -> Truth:
    """A comparison within what solvers leave open, measured by the terms of both sides."""
    left, right, operator = compiler.number(node.left), compiler.number(node.right), node.operator
    terms = size_of_terms(node, compiler, left, right)
    return lambda env: loosely(operator, left(env), right(env), terms(env))


def membership(node: core.Within, compiler: Compiler) -> Truth:
    """``element in set``."""
    parts, of = [compiler.position(e) for e in node.elements], node.set
    if isinstance(of, core.Members):
        each = [frozenset(members) for members in compiler.data.members[of.owner_sort]]
        owner, (element,) = compiler.position(of.owner), parts
        return lambda env: element(env) in each[owner(env)]
    elements = compiler.elements(of)
    fixed: list[frozenset[Any]] = []
    static = not walks.free_slots(of)

    def contains(env: Env) -> bool:
        if not static:
            return as_element(tuple(part(env) for part in parts)) in elements(env)
        if not fixed:
            fixed.append(frozenset(elements(env)))
        return as_element(tuple(part(env) for part in parts)) in fixed[0]

    return contains


def witness(node: core.SetProperty, compiler: Compiler) -> Callable[[Env], str]:
    """What breaks ``convex`` or ``pipeline``, or an empty text."""
    with compiler.bound(node.outer) as outer:
        slots = [(compiler.registers[s], sort) for b in node.outer for s, sort in zip(b.slots, b.sorts, strict=True)]
        with compiler.bound((node.inner,)) as loop:
            register, member = compiler.registers[node.inner.slots[0]], compiler.truth(node.membership)
    return property_witness(compiler.data, node.property, outer, slots, loop, register, member)
