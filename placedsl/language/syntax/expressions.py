"""The syntax tree of expressions: what was written, nothing resolved."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.diagnostics import Source, Span
from placedsl.records import dataclass
from placedsl.units import Dimension


class At(NamedTuple):
    """Where a piece stands: from the character offset ``start`` to ``end`` of ``source``."""

    start: int
    end: int
    source: Source

    @property
    def span(self) -> Span:
        """The place as lines and columns."""
        return self.source.span(self.start, self.end)

    @property
    def text(self) -> str:
        """What is written there."""
        return self.source.text[self.start : self.end]


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number in SI units with its dimension; ``unit`` as written, ``problem`` what is wrong with that."""

    at: At
    value: float
    dimension: Dimension
    unit: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A quoted text."""

    at: At
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A bare word."""

    at: At
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """``base.name``."""

    at: At
    base: Expression
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """``base[a, b]``."""

    at: At
    base: Expression
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """``name(a, b)``, or ``name(a in s: body)``."""

    at: At
    name: str
    arguments: tuple[Expression, ...]
    body: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class TupleOf:
    """``(a, b)``."""

    at: At
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Braces:
    """``{a, b}``, ``{k: v}`` or ``{v in set: condition}``: pairs of an item and what follows its colon."""

    at: At
    pairs: tuple[tuple[Expression, Expression | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """``-a`` or ``not a``."""

    at: At
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """``+ - * /``, ``and or => <=>``, ``on``, ``in``, ``union intersect except``."""

    at: At
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """``a <= b <= c``: one operand more than operators."""

    at: At
    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """``low..high``, both ends included."""

    at: At
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """``name ~ "glob"``."""

    at: At
    subject: Expression
    pattern: str


@dataclass(frozen=True, slots=True, eq=False)
class Where:
    """``item where condition``."""

    at: At
    item: Expression
    condition: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """``sum(v in nodes: body)``; without a body the items are plain arguments (``max(a, b)``)."""

    at: At
    operator: str
    items: tuple[Expression, ...]
    body: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Forall:
    """``forall v in nodes, d in devices: body``, or ``exists …``."""

    at: At
    items: tuple[Expression, ...]
    body: Expression
    quantifier: str = "forall"


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """``if condition then a else b``."""

    at: At
    condition: Expression
    then: Expression
    otherwise: Expression


Expression = (
    Number | Text | Name | Attribute | Index | Call | TupleOf | Braces | Unary | Binary
    | Compare | Range | Match | Where | Aggregate | Forall | Conditional
)  # fmt: skip
