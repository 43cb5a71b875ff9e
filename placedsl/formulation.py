"""A formulation: decision variables, what they provide, and rows, before it meets a problem.

Read from the files in ``models/``; grounded by :mod:`placedsl.program`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placedsl.diagnostics import Span
from placedsl.expressions import Binder, Expression, Sort


@dataclass(frozen=True)
class Variable:
    """``var name[binders]``: one column for each combination that passes the binders' conditions."""

    name: str
    binders: tuple[Binder, ...]
    integer: bool
    low: float
    high: float
    span: Span


@dataclass(frozen=True)
class Definition:
    """``provides name(slots) = body``."""

    name: str
    slots: tuple[str, ...]
    sorts: tuple[Sort, ...]
    body: Expression
    span: Span


@dataclass(frozen=True)
class NamedRule:
    """A row family of the formulation; ``label`` is its number in the paper."""

    name: str
    label: str
    body: Expression
    span: Span


@dataclass(frozen=True)
class Formulation:
    """One program of a paper.

    ``tight`` holds, by variable, the rows that keep it from being larger than its meaning; they are
    added only where some other row or an objective would reward a larger value.
    """

    name: str
    schedules: tuple[str, ...]
    variables: Mapping[str, Variable]
    provides: Mapping[str, Definition]
    rules: tuple[NamedRule, ...]
    tight: Mapping[str, tuple[NamedRule, ...]]
    span: Span
