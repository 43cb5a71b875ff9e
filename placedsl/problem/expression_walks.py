"""Walks over the resolved expression language: parts, free variables, and what an expression depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placedsl.problem.expressions import (
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


def children(node: Expression | SetExpression | Binder) -> tuple[Expression | SetExpression | Binder, ...]:
    """The direct parts of a node, for walks over the tree."""
    match node:
        case Members(owner=owner):
            return (owner,)
        case Binder(set=of, condition=condition):
            return (of,) if condition is None else (of, condition)
        case Listed(items=items):
            return tuple(e for item in items for e in item)
        case Range(low=low, high=high):
            return (low, high)
        case Combined(left=left, right=right):
            return (left, right)
        case Comprehension(binders=binders):
            return binders
        case Pick(set=of, index=index):
            return (of, index)
        case Attribute(owner=owner, device=device, target=target):
            return tuple(part for part in (owner, device, target) if part is not None)
        case (
            Decision(arguments=parts)
            | Table(arguments=parts)
            | Provided(arguments=parts)
            | Largest(items=parts)
            | Logic(parts=parts)
        ):
            return parts
        case Aggregate(binders=binders, body=body) | Forall(binders=binders, body=body):
            return (*binders, body)
        case Arithmetic(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
        case Not(part=part):
            return (part,)
        case Within(elements=elements, set=of):
            return (*elements, of)
        case Glob(subject=subject):
            return (subject,)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case SetProperty(outer=outer, inner=inner, membership=membership):
            return (*outer, inner, membership)
        case NoOverlap(binders=binders):
            return (*binders, *interval(node))
    return ()


def interval(node: NoOverlap) -> tuple[Expression, ...]:
    """What an interval is made of: whether it is there (where that is said), its start and its finish."""
    ends = (node.start, node.finish)
    return ends if node.presence is None else (node.presence, *ends)


def every(node: Expression | SetExpression | Binder) -> Iterator[Expression | SetExpression | Binder]:
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


def free_slots(node: Expression | SetExpression | Binder) -> frozenset[str]:
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
