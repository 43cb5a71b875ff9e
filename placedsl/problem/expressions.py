"""The resolved expression language: names bound, types checked, units normalised.

One tree, two meanings.  :mod:`placedsl.grounding` grounds it over decision variables, giving rows;
:mod:`placedsl.evaluation` evaluates it on a finished placement, giving a number or a truth.  The two
share this tree and nothing else.

Elements are positions: nodes, devices and tensors in the order of the problem, parts
(0 forward, 1 backward), groups of a partition; an integer is its own position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placedsl.diagnostics import Span
from placedsl.units import NUMBER, Dimension

#: What an element can be: node, device, tensor, part, integer; ``group:NAME`` is a class of ``partition(nodes, NAME)``.
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
class Listed:
    """Elements written one by one: ``{forward, backward}``, ``{gpu[1], cpu}``, ``{(a, b), (b, c)}``, ``{1, 2, 4}``."""

    items: tuple[tuple[Expression, ...], ...]
    sorts: tuple[Sort, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Range:
    """``low..high``: whole numbers, both ends included; none where ``high`` is below ``low``."""

    low: Expression
    high: Expression
    span: Span

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """Whole numbers."""
        return ("integer",)


@dataclass(frozen=True, slots=True)
class Combined:
    """``union``, ``intersect`` or ``except`` of two sets of one sort."""

    operator: str
    left: SetExpression
    right: SetExpression
    span: Span

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """Those of either side."""
        return self.left.sorts


@dataclass(frozen=True, slots=True)
class Comprehension:
    """``{v in nodes, d in devices: condition}``: the combinations that pass; the conditions are in the binders."""

    binders: tuple[Binder, ...]
    span: Span

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """Those of all binders."""
        return tuple(sort for binder in self.binders for sort in binder.sorts)


SetExpression = NamedSet | Members | Listed | Range | Combined | Comprehension


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
    """The ``index``-th element (from 1) of a set: ``heavy[1]``, ``gpu[i]``."""

    set: SetExpression
    index: Expression
    sort: Sort
    span: Span


@dataclass(frozen=True, slots=True)
class Attribute:
    """A datum of an element: ``v.memory``, ``v.time[d]`` (with a device), ``t.move[d, e]`` (with two)."""

    name: str
    sort: Sort
    owner: Expression
    device: Expression | None
    span: Span
    target: Expression | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision variable of a formulation, or of the spec: ``x[v, d]``."""

    variable: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    """A value of an indexed parameter: ``weight[v]``."""

    name: str
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
    """``sum``, ``count``, ``mean``, ``max`` or ``min`` of a body over binders."""

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
    """``<= >= == != < >`` of two numbers, texts or elements, or ``==``/``!=`` of two truths.

    ``dimension``: that of the numbers, for messages.
    """

    operator: str
    left: Expression
    right: Expression
    span: Span
    of: str = "number"
    dimension: Dimension = NUMBER


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
    """``element in set``, or ``(u, v) in set``."""

    elements: tuple[Expression, ...]
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


@dataclass(frozen=True, slots=True)
class NoOverlap:
    """``no_overlap(v in nodes: v on d => start(v)..finish(v))``: of the intervals that are there, no two overlap.

    ``presence`` says whether an interval is there (None: it always is).  One of no length overlaps nothing.
    """

    binders: tuple[Binder, ...]
    presence: Expression | None
    start: Expression
    finish: Expression
    span: Span
    dimension: Dimension = NUMBER


Expression = (
    Constant | Slot | Element | Pick | Attribute | Decision | Table | Provided | Aggregate | Largest | Forall
    | Arithmetic | Comparison | Logic | Not | Within | Glob | Conditional | SetProperty | NoOverlap
)  # fmt: skip


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
