"""The resolved expression language: names bound, types checked, units normalised.

One tree, two meanings.  :mod:`placedsl.grounding` grounds it over decision variables, giving rows;
:mod:`placedsl.evaluation` evaluates it on a finished placement, giving a number or a truth.  The two
share this tree and nothing else.

Elements are positions: nodes, devices and tensors in the order of the problem, parts
(0 forward, 1 backward), groups of a partition; an integer is its own position.
"""

from __future__ import annotations

from placedsl.diagnostics import Span
from placedsl.records import dataclass
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


#: The quantities that are conditions, and 0 or 1 as numbers.
CONDITIONS = frozenset({"on", "used", "moved", "takes"})


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
class Absolute:
    """The absolute value of a number; its part stands in it once, so that nested ones do not double."""

    part: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Forall:
    """The body holds for all elements; an empty range holds."""

    binders: tuple[Binder, ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+ - * /`` of two numbers, and ``mod`` of two that no placement decides: 0 or more where the divisor is."""

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
    Constant | Slot | Element | Pick | Attribute | Decision | Table | Provided | Aggregate | Largest | Absolute | Forall
    | Arithmetic | Comparison | Logic | Not | Within | Glob | Conditional | SetProperty | NoOverlap
)  # fmt: skip
