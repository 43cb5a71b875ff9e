"""The syntax tree of the .place language: what was written, nothing resolved."""

from __future__ import annotations

from placedsl.diagnostics import Source
from placedsl.language.syntax.expressions import (
    Aggregate,
    At,
    Attribute,
    Binary,
    Braces,
    Call,
    Compare,
    Conditional,
    Expression,
    Forall,
    Index,
    Match,
    Name,
    Number,
    Range,
    Text,
    TupleOf,
    Unary,
    Where,
)  # fmt: skip
from placedsl.records import dataclass

__all__ = (
    "Aggregate", "Alias", "At", "Attribute", "Binary", "Block", "Braces", "Call", "Chain", "Clause", "Cluster",
    "Compare", "Condition", "Conditional", "ConstraintDefinition", "Define", "DeviceFamily", "Endpoint", "Entry",
    "Expression", "Forall",
    "Formulation", "Fuse", "GraphFile", "GraphInline", "Import", "Index", "Interconnect", "LinkBetween", "Match",
    "Minimize", "Module", "Name", "Node", "Number", "Option", "Parallel", "Parallelism", "Param", "Parameter", "Part",
    "Provides", "Range", "Rule", "Schedule",
    "SetOf", "Solve", "Statement", "Subject", "Text", "Tight", "TupleOf", "Unary",
    "Under", "Use", "Variable", "Where", "Word",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A name with its place; quoted names come without their quotes."""

    at: At
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """``name = value`` in a block."""

    at: At
    name: Word
    value: Expression


Block = tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GraphFile:
    """``graph from "file" { … }``."""

    at: At
    path: Word
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """``node name { … }`` in an inline graph."""

    at: At
    name: Word
    block: Block
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """``a -> b -> c { … }`` in an inline graph."""

    at: At
    names: tuple[Word, ...]
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class GraphInline:
    """``graph { … }``."""

    at: At
    items: tuple[Node | Chain, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fuse:
    """``fuse conv + bn``: operators of these types run as one; ``fuse by layer``: those of one value."""

    at: At
    types: tuple[Word, ...]
    by: Word | None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFamily:
    """``device name[count]: kind { … }``."""

    at: At
    name: Word
    count: Expression | None
    kind: Word | None
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """``cluster name[count] { … }``: devices, clusters and an interconnect of their own."""

    at: At
    name: Word
    count: Expression | None
    items: tuple[DeviceFamily | Cluster | Interconnect, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """One end of a link: a family, or one device of it."""

    at: At
    name: Word
    index: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class LinkBetween:
    """``link a <-> b { … }`` (both ways) or ``link a -> b { … }``."""

    at: At
    source: Endpoint
    target: Endpoint
    both: bool
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Interconnect:
    """``interconnect name { … }``: the link of every pair that has none of its own."""

    at: At
    name: Word | None
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Param:
    """``param name: type = value``, or ``param name[v in nodes]: type = value``."""

    at: At
    name: Word
    items: tuple[Expression, ...]
    type: Word | None
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Import:
    """``import "file"``: the statements of that file, as if they stood here."""

    at: At
    path: Word


@dataclass(frozen=True, slots=True, eq=False)
class SetOf:
    """``set name = items``."""

    at: At
    name: Word
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """``schedule name { communication = overlapped }``."""

    at: At
    name: Word
    block: Block = ()


@dataclass(frozen=True, slots=True, eq=False)
class Parallelism:
    """``parallelism { data = 1..4 }``."""

    at: At
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """``option name(v in nodes, t in {2, 4}) { tensor = t, … }``; without ``items``, in a node: a way to run these."""

    at: At
    name: Word
    items: tuple[Expression, ...]
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Parallel:
    """``parallelism data`` in a formulation: the kind of parallelism that it is for."""

    at: At
    name: Word


@dataclass(frozen=True, slots=True, eq=False)
class Minimize:
    """``minimize a then b``."""

    at: At
    objectives: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """``subject to`` and the rules under it."""

    at: At
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tight:
    """``tight variable, …`` and its rules (formulations only); without rules, those of its parts always hold."""

    at: At
    variables: tuple[Word, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Solve:
    """``solve { … }``."""

    at: At
    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """What a definition is given: ``v in nodes``, ``limit: time``, ``group: nodes`` (a set of nodes)."""

    at: At
    name: Word
    set: Expression | None
    type: Word | None


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintDefinition:
    """``constraint name by key (parameters) (label) = body``."""

    at: At
    name: Word
    by: Word | None
    parameters: tuple[Parameter, ...]
    label: str
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Define:
    """``define name(parameters) = body``: a name for an expression."""

    at: At
    name: Word
    parameters: tuple[Parameter, ...]
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """``var name[v in nodes, …]: binary`` or ``in low..high``."""

    at: At
    name: Word
    items: tuple[Expression, ...]
    type: Word | None
    low: Expression | None
    high: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Provides:
    """``provides pattern = value`` (formulations only); ``replaces`` what the extended formulation says."""

    at: At
    pattern: Expression
    value: Expression
    replaces: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """``use a, b { row = "4c" }``: the clauses of these parts; ``block``: equation numbers of some of their rows."""

    at: At
    names: tuple[Word, ...]
    block: Block = ()


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """``communication overlapped or full_duplex``: a choice of the execution model, and what it may be."""

    at: At
    axis: Word
    values: tuple[Word, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Under:
    """``under condition, …: clause``; without a clause, which execution models the whole formulation is for."""

    at: At
    conditions: tuple[Condition, ...]
    clause: Variable | Provides | Use | Define | None


Clause = Variable | Provides | Minimize | Schedule | Parallel | Subject | Tight | Use | Under | Define


@dataclass(frozen=True, slots=True, eq=False)
class Formulation:
    """``formulation name { … }``; ``extends``: ``extend name { … }``, more clauses for the one of that name."""

    at: At
    name: Word
    clauses: tuple[Clause, ...]
    extends: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """``part name { … }``: clauses that formulations share by ``use name``."""

    at: At
    name: Word
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alias:
    """``formulation name = other under …``: another name for a formulation, under these conditions alone."""

    at: At
    name: Word
    of: Word
    conditions: tuple[Condition, ...]


Statement = (
    GraphFile | GraphInline | Fuse | DeviceFamily | LinkBetween | Interconnect | Param | SetOf | Schedule
    | Cluster | Parallelism | Minimize | Subject | Solve | ConstraintDefinition | Define | Formulation | Variable
    | Import | Part | Alias | Option
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Module:
    """One parsed text."""

    source: Source
    statements: tuple[Statement, ...]
