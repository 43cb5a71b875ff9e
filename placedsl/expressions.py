"""The resolved expression language: names bound, types checked, units normalised.

One tree, two meanings.  :mod:`placedsl.program` grounds it over decision variables, giving rows;
:mod:`placedsl.cost` evaluates it on a finished placement, giving a number or a truth.  The two
share this tree and nothing else.

Elements are positions: nodes, devices and tensors in the order of the problem, parts
(0 forward, 1 backward), groups of a partition, and integers of a range.
"""

from __future__ import annotations

from dataclasses import dataclass

from placedsl.diagnostics import Span

#: What an element can be; ``group:NAME`` is a class of ``partition(nodes, NAME)``.
Sort = str


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A set of the problem by name: ``nodes``, ``gpu``, ``edges``, a user's ``heavy`` …"""

    name: str
    sorts: tuple[Sort, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Members:
    """The elements that belong to ``owner``: nodes of a part or group, readers of a tensor."""

    owner: Expression
    owner_sort: Sort
    sorts: tuple[Sort, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Elements written one by one: ``{forward, backward}``, ``{gpu[1], cpu}``."""

    positions: tuple[int, ...]
    sorts: tuple[Sort, ...]
    span: Span


SetExpression = NamedSet | Members | Enumerated


@dataclass(frozen=True, slots=True)
class Binder:
    """``v in nodes where condition``: slots bound to the elements of a set that pass the condition."""

    slots: tuple[str, ...]
    set: SetExpression
    condition: Expression | None
    span: Span

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """The sort of each slot."""
        return self.set.sorts


@dataclass(frozen=True, slots=True)
class Constant:
    """A number (SI), a truth or a text known when the spec is read."""

    value: float | bool | str
    span: Span


@dataclass(frozen=True, slots=True)
class Slot:
    """A bound variable."""

    name: str
    sort: Sort
    span: Span


@dataclass(frozen=True, slots=True)
class Element:
    """One element named outright: ``gpu[1]``, a node by its id."""

    sort: Sort
    position: int
    span: Span


@dataclass(frozen=True, slots=True)
class Pick:
    """The ``index``-th element (from 1) of a named set: ``heavy[1]``."""

    set: NamedSet
    index: int
    sort: Sort
    span: Span


@dataclass(frozen=True, slots=True)
class Attribute:
    """A datum of an element: ``v.memory``, ``v.time[d]`` (with a device), ``t.producer``."""

    name: str
    sort: Sort
    owner: Expression
    device: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision variable of a formulation: ``x[v, d]``."""

    variable: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Provided:
    """A quantity that the formulation provides: ``load(d)``, ``v on d`` (named ``on``)."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``sum``, ``count``, ``max`` or ``min`` of a body over binders."""

    operator: str
    binders: tuple[Binder, ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Largest:
    """``max`` or ``min`` of listed expressions."""

    operator: str
    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Forall:
    """The body holds for all elements; an empty range holds."""

    binders: tuple[Binder, ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+ - * /`` of two numbers."""

    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """``<= >= == != < >`` of two numbers, texts or elements, or ``==``/``!=`` of two truths."""

    operator: str
    left: Expression
    right: Expression
    span: Span
    of: str = "number"


@dataclass(frozen=True, slots=True)
class Logic:
    """``and``, ``or``, ``=>`` (two parts or more; ``=>`` exactly two)."""

    operator: str
    parts: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Not:
    """``not part``."""

    part: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Within:
    """``element in set``."""

    element: Expression
    set: SetExpression
    span: Span


@dataclass(frozen=True, slots=True)
class Glob:
    """A text attribute matches a pattern with ``*`` and ``?``."""

    subject: Expression
    pattern: str
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """``if condition then … else …`` on data."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class SetProperty:
    """``convex({v in set: membership})`` or ``pipeline(d in devices: {v in set: membership})``.

    ``outer`` binds the sets of a pipeline (empty for ``convex``), ``inner`` the nodes.
    """

    property: str
    outer: tuple[Binder, ...]
    inner: Binder
    membership: Expression
    span: Span


Expression = (
    Constant | Slot | Element | Pick | Attribute | Decision | Provided | Aggregate | Largest | Forall
    | Arithmetic | Comparison | Logic | Not | Within | Glob | Conditional | SetProperty
)  # fmt: skip


def children(node: Expression | SetExpression | Binder) -> tuple[Expression | SetExpression | Binder, ...]:
    """The direct parts of a node, for walks over the tree."""
    match node:
        case Members(owner=owner):
            return (owner,)
        case Binder(set=of, condition=condition):
            return (of,) if condition is None else (of, condition)
        case Pick(set=of):
            return (of,)
        case Attribute(owner=owner, device=device):
            return (owner,) if device is None else (owner, device)
        case Decision(arguments=parts) | Provided(arguments=parts) | Largest(items=parts) | Logic(parts=parts):
            return parts
        case Aggregate(binders=binders, body=body) | Forall(binders=binders, body=body):
            return (*binders, body)
        case Arithmetic(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
        case Not(part=part):
            return (part,)
        case Within(element=element, set=of):
            return (element, of)
        case Glob(subject=subject):
            return (subject,)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case SetProperty(outer=outer, inner=inner, membership=membership):
            return (*outer, inner, membership)
    return ()


def provided_names(node: Expression) -> set[str]:
    """The names of all quantities of the vocabulary that an expression mentions."""
    found: set[str] = set()
    stack: list[Expression | SetExpression | Binder] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, Provided):
            found.add(part.name)
        stack.extend(children(part))
    return found
