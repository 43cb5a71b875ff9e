"""Walks over the resolved expression language: parts, free variables, and what an expression depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from placedsl.problem.expressions import (
    Absolute,
    Aggregate,
    Arithmetic,
    Attribute,
    Binder,
    Combined,
    Comparison,
    Comprehension,
    Conditional,
    Decision,
    Expression,
    Forall,
    Glob,
    Largest,
    Listed,
    Logic,
    Members,
    NamedSet,
    NoOverlap,
    Not,
    Pick,
    Provided,
    Range,
    SetExpression,
    SetProperty,
    Slot,
    Table,
    Within,
)

Part: TypeAlias = Expression | SetExpression | Binder
Parts: TypeAlias = tuple[Part, ...]
#: The direct parts of a node, by its class; those of other classes have none.
_PARTS: dict[type, Callable[[Any], Parts]] = {
    Members: lambda node: (node.owner,),
    Binder: lambda node: (node.set,) if node.condition is None else (node.set, node.condition),
    Listed: lambda node: tuple(e for item in node.items for e in item),
    Range: lambda node: (node.low, node.high),
    Combined: lambda node: (node.left, node.right),
    Comprehension: lambda node: node.binders,
    Pick: lambda node: (node.set, node.index),
    Attribute: lambda node: tuple(part for part in (node.owner, node.device, node.target) if part is not None),
    Decision: lambda node: node.arguments,
    Table: lambda node: node.arguments,
    Provided: lambda node: node.arguments,
    Largest: lambda node: node.items,
    Logic: lambda node: node.parts,
    Aggregate: lambda node: (*node.binders, node.body),
    Forall: lambda node: (*node.binders, node.body),
    Arithmetic: lambda node: (node.left, node.right),
    Comparison: lambda node: (node.left, node.right),
    Not: lambda node: (node.part,),
    Absolute: lambda node: (node.part,),
    Within: lambda node: (*node.elements, node.set),
    Glob: lambda node: (node.subject,),
    Conditional: lambda node: (node.condition, node.then, node.otherwise),
    SetProperty: lambda node: (*node.outer, node.inner, node.membership),
    NoOverlap: lambda node: (*node.binders, *interval(node)),
}


def children(node: Part) -> Parts:
    """The direct parts of a node, for walks over the tree."""
    parts = _PARTS.get(type(node))
    return () if parts is None else parts(node)


def interval(node: NoOverlap) -> tuple[Expression, ...]:
    """What an interval is made of: whether it is there (where that is said), its start and its finish."""
    ends = (node.start, node.finish)
    return ends if node.presence is None else (node.presence, *ends)


def every(node: Part) -> Iterator[Part]:
    """An expression and all its parts."""
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(children(part))


def named_sets(sets: Mapping[str, SetExpression], name: str) -> list[str]:
    """A set of a problem and those that it is made of, each after those that it is made of itself."""
    out: dict[str, None] = {}
    stack = [name]
    while stack:
        top = stack[-1]
        inner = (part.name for part in every(sets[top]) if isinstance(part, NamedSet))
        unknown = [other for other in inner if other in sets and other not in out]
        if unknown:
            stack += unknown
        else:
            out[stack.pop()] = None
    return list(out)


def provided_names(node: Expression) -> set[str]:
    """The names of all quantities of the vocabulary that an expression mentions."""
    return {part.name for part in every(node) if isinstance(part, Provided)}


def decided(node: Expression) -> bool:
    """Whether an expression depends on decisions (the others are known beforehand)."""
    return any(isinstance(part, Provided | Decision | SetProperty | NoOverlap) for part in every(node))


def free_slots(node: Part) -> frozenset[str]:
    """The bound variables that an expression uses and does not bind itself."""
    match node:
        case Slot(name=name):
            return frozenset((name,))
        case Aggregate(binders=binders, body=body) | Forall(binders=binders, body=body):
            return _outside(binders, (body,))
        case SetProperty(outer=outer, inner=inner, membership=membership):
            return _outside((*outer, inner), (membership,))
        case NoOverlap(binders=binders):
            return _outside(binders, interval(node))
        case Comprehension(binders=binders):
            return _outside(binders, ())
        case Binder():
            return _outside((node,), ())
    return frozenset().union(*map(free_slots, children(node)))


def _outside(binders: tuple[Binder, ...], bodies: tuple[Expression, ...]) -> frozenset[str]:
    """What is free in binders and in bodies under them."""
    bound: set[str] = set()
    out: set[str] = set()
    for binder in binders:
        out |= free_slots(binder.set) - bound
        bound |= set(binder.slots)
        if binder.condition is not None:
            out |= free_slots(binder.condition) - bound
    for body in bodies:
        out |= free_slots(body) - bound
    return frozenset(out)
