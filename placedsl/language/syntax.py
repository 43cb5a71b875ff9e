"""The syntax tree of the .place language: what was written, nothing resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from placedsl.diagnostics import Source, Span
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


@dataclass(frozen=True, slots=True)
class Number:
    """A number in SI units with its dimension; ``unit`` as written, ``problem`` what is wrong with that."""

    at: At
    value: float
    dimension: Dimension
    unit: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted text."""

    at: At
    value: str


@dataclass(frozen=True, slots=True)
class Name:
    """A bare word."""

    at: At
    name: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """``base.name``."""

    at: At
    base: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """``base[a, b]``."""

    at: At
    base: Expression
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """``name(a, b)``, or ``name(a in s: body)``."""

    at: At
    name: str
    arguments: tuple[Expression, ...]
    body: Expression | None


@dataclass(frozen=True, slots=True)
class TupleOf:
    """``(a, b)``."""

    at: At
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Braces:
    """``{a, b}``, ``{k: v}`` or ``{v in set: condition}``: pairs of an item and what follows its colon."""

    at: At
    pairs: tuple[tuple[Expression, Expression | None], ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """``-a`` or ``not a``."""

    at: At
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * /``, ``and or => <=>``, ``on``, ``in``, ``union intersect except``."""

    at: At
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Compare:
    """``a <= b <= c``: one operand more than operators."""

    at: At
    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """``low..high``, both ends included."""

    at: At
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Match:
    """``name ~ "glob"``."""

    at: At
    subject: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Where:
    """``item where condition``."""

    at: At
    item: Expression
    condition: Expression


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``sum(v in nodes: body)``; without a body the items are plain arguments (``max(a, b)``)."""

    at: At
    operator: str
    items: tuple[Expression, ...]
    body: Expression | None


@dataclass(frozen=True, slots=True)
class Forall:
    """``forall v in nodes, d in devices: body``, or ``exists …``."""

    at: At
    items: tuple[Expression, ...]
    body: Expression
    quantifier: str = "forall"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Word:
    """A name with its place; quoted names come without their quotes."""

    at: At
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """``name = value`` in a block."""

    at: At
    name: Word
    value: Expression


Block = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class GraphFile:
    """``graph from "file" { … }``."""

    at: At
    path: Word
    block: Block


@dataclass(frozen=True, slots=True)
class Node:
    """``node name { … }`` in an inline graph."""

    at: At
    name: Word
    block: Block


@dataclass(frozen=True, slots=True)
class Chain:
    """``a -> b -> c { … }`` in an inline graph."""

    at: At
    names: tuple[Word, ...]
    block: Block


@dataclass(frozen=True, slots=True)
class GraphInline:
    """``graph { … }``."""

    at: At
    items: tuple[Node | Chain, ...]


@dataclass(frozen=True, slots=True)
class DeviceFamily:
    """``device name[count]: kind { … }``."""

    at: At
    name: Word
    count: Expression | None
    kind: Word | None
    block: Block


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a link: a family, or one device of it."""

    at: At
    name: Word
    index: Expression | None


@dataclass(frozen=True, slots=True)
class LinkBetween:
    """``link a <-> b { … }`` (both ways) or ``link a -> b { … }``."""

    at: At
    source: Endpoint
    target: Endpoint
    both: bool
    block: Block


@dataclass(frozen=True, slots=True)
class Interconnect:
    """``interconnect name { … }``: the link of every pair that has none of its own."""

    at: At
    name: Word | None
    block: Block


@dataclass(frozen=True, slots=True)
class Param:
    """``param name: type = value``, or ``param name[v in nodes]: type = value``."""

    at: At
    name: Word
    items: tuple[Expression, ...]
    type: Word | None
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Import:
    """``import "file"``: the statements of that file, as if they stood here."""

    at: At
    path: Word


@dataclass(frozen=True, slots=True)
class SetOf:
    """``set name = items``."""

    at: At
    name: Word
    value: Expression


@dataclass(frozen=True, slots=True)
class Schedule:
    """``schedule name``."""

    at: At
    name: Word


@dataclass(frozen=True, slots=True)
class Minimize:
    """``minimize a then b``."""

    at: At
    objectives: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """``name by attribute (label): body``, or ``name(arguments)`` where a constraint is defined by that name.

    ``price``: the constraint is soft and costs that much where it is broken; ``replaces``: it stands for the one of
    that name in the formulation that is extended.
    """

    at: At
    name: Word
    by: Word | None
    label: str
    body: Expression | None
    arguments: tuple[Expression, ...] = ()
    price: Expression | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """``subject to`` and the rules under it."""

    at: At
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Tight:
    """``tight variable`` and the rules under it (formulations only)."""

    at: At
    variable: Word
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Solve:
    """``solve { … }``."""

    at: At
    block: Block


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a definition is given: ``v in nodes``, ``limit: time``, ``group: nodes`` (a set of nodes)."""

    at: At
    name: Word
    set: Expression | None
    type: Word | None


@dataclass(frozen=True, slots=True)
class ConstraintDefinition:
    """``constraint name by key (parameters) (label) = body``."""

    at: At
    name: Word
    by: Word | None
    parameters: tuple[Parameter, ...]
    label: str
    body: Expression


@dataclass(frozen=True, slots=True)
class Define:
    """``define name(parameters) = body``: a name for an expression."""

    at: At
    name: Word
    parameters: tuple[Parameter, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Variable:
    """``var name[v in nodes, …]: binary`` or ``in low..high``."""

    at: At
    name: Word
    items: tuple[Expression, ...]
    type: Word | None
    low: Expression | None
    high: Expression | None


@dataclass(frozen=True, slots=True)
class Provides:
    """``provides pattern = value`` (formulations only); ``replaces`` what the extended formulation says."""

    at: At
    pattern: Expression
    value: Expression
    replaces: bool = False


Clause = Variable | Provides | Minimize | Schedule | Subject | Tight


@dataclass(frozen=True, slots=True)
class Formulation:
    """``formulation name { … }``; ``extends``: ``extend name { … }``, more clauses for the one of that name."""

    at: At
    name: Word
    clauses: tuple[Clause, ...]
    extends: bool = False


Statement = (
    GraphFile | GraphInline | DeviceFamily | LinkBetween | Interconnect | Param | SetOf | Schedule
    | Minimize | Subject | Solve | ConstraintDefinition | Define | Formulation | Variable | Import
)  # fmt: skip


@dataclass(frozen=True)
class Module:
    """One parsed text."""

    source: Source
    statements: tuple[Statement, ...]
