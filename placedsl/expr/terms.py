"""Terms: expressions of the language as Python objects that print as its text."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from numbers import Integral, Real
from types import GeneratorType
from typing import Any, NoReturn

from placedsl.diagnostics import UsageError

# How tightly what is printed binds, as in placedsl.language.syntax.printer: 0 is loosest, atoms are 9.
LOOSE, IMPLIES, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(10)
_PLAIN = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?[ \t]*(%|[A-Za-z]+(/[A-Za-z]+)?)?$|[^\W\d]\w*$|\"(?:[^\"\\\n]|\\.)*\"$")

#: Names of bound variables by identity; an empty name is that of the element that a ``where`` leaves unnamed.
Names = dict[int, str]
#: A Python file and a line of it.
Place = tuple[str, int]


def place_of_caller() -> Place:
    """File and line of the nearest caller outside of placedsl."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "placedsl":
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class ExpressionError(UsageError, TypeError):
    """What cannot stand in an expression, or cannot be done with one in Python."""


class Term:
    """An expression.  ``str()`` gives its text; operators give larger ones; it has no truth value in Python.

    ``& | ~`` are ``and``, ``or``, ``not``; ``implies`` is ``=>``.  ``built_at`` is the Python file and line.
    """

    __array_ufunc__ = None  # numpy's numbers leave the operators to us
    __hash__ = object.__hash__

    def __init__(self, level: int, *parts: str | tuple[Term, int], condition: bool | None = False) -> None:
        self._level, self._parts = level, parts
        #: Whether it is a condition (None: that only the language knows).
        self._condition = condition
        self.built_at = place_of_caller()

    # text

    def _render(self, names: Names) -> str:
        return "".join(p if isinstance(p, str) else p[0]._within(p[1], names) for p in self._parts)

    def _within(self, level: int, names: Names) -> str:
        inner = self._render(names)
        return f"({inner})" if self._level < level else inner

    def _words(self) -> Iterator[str]:
        """The names that it refers to, which no bound variable within may hide."""
        for part in self._parts:
            if not isinstance(part, str):
                yield from part[0]._words()

    def __str__(self) -> str:
        return self._render({})

    def __repr__(self) -> str:
        try:
            return f"<{self}>"
        except TypeError:  # a variable whose generator is still running
            return f"<{type(self).__name__}>"

    # what Python would get wrong

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            f"{self!r} has no truth value before a placement is known. A chain a <= b <= c would lose a part: write "
            "(a <= b) & (b <= c), or the text \"a <= b <= c\". For 'and', 'or', 'not' write & | ~ with brackets around "
            "comparisons, for an 'if' in a generator write set.where(lambda v: …)"
        )

    def __iter__(self) -> Iterator[Any]:
        raise ExpressionError(f"{self!r} is nothing to range over; sets are, as in forall(… for d in devices)")

    def __contains__(self, item: object) -> bool:
        raise ExpressionError(f"'in' gives a truth value in Python: write element.isin({self})")

    # operators

    def __add__(self, other: Any) -> Term:
        return _binary("+", SUM, self, other)

    def __radd__(self, other: Any) -> Term:
        return _binary("+", SUM, other, self)

    def __sub__(self, other: Any) -> Term:
        return _binary("-", SUM, self, other)

    def __rsub__(self, other: Any) -> Term:
        return _binary("-", SUM, other, self)

    def __mul__(self, other: Any) -> Term:
        return _binary("*", PRODUCT, self, other)

    def __rmul__(self, other: Any) -> Term:
        return _binary("*", PRODUCT, other, self)

    def __truediv__(self, other: Any) -> Term:
        return _binary("/", PRODUCT, self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return _binary("/", PRODUCT, other, self)

    def __mod__(self, other: Any) -> Term:
        return _binary("mod", PRODUCT, self, other)

    def __rmod__(self, other: Any) -> Term:
        return _binary("mod", PRODUCT, other, self)

    def __neg__(self) -> Term:
        return Term(SIGN, "-", (self, SIGN))

    def __pos__(self) -> Term:
        return self

    def __le__(self, other: Any) -> Term:
        return _compare("<=", self, other)

    def __ge__(self, other: Any) -> Term:
        return _compare(">=", self, other)

    def __lt__(self, other: Any) -> Term:
        return _compare("<", self, other)

    def __gt__(self, other: Any) -> Term:
        return _compare(">", self, other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return _compare("==", self, other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return _compare("!=", self, other)

    def __and__(self, other: Any) -> Term:
        return logic("and", AND, self, other)

    def __rand__(self, other: Any) -> Term:
        return logic("and", AND, other, self)

    def __or__(self, other: Any) -> Term:
        return logic("or", OR, self, other)

    def __ror__(self, other: Any) -> Term:
        return logic("or", OR, other, self)

    def __invert__(self) -> Term:
        return Term(NOT, "not ", (as_condition("~", self), NOT), condition=True)

    def implies(self, other: Any) -> Term:
        """``self => other``."""
        left, right = as_condition("implies", self), as_condition("implies", other)
        return Term(IMPLIES, (left, OR), " => ", (right, OR), condition=True)

    def like(self, pattern: str) -> Term:
        """``self ~ "pattern"`` of a text, with ``*``, ``?`` and ``[ab]``."""
        return Term(COMPARISON, (self, SUM), " ~ " + json.dumps(pattern, ensure_ascii=False), condition=True)


def term(value: Any) -> Term:
    """Whatever may stand for an expression: a Term, a number, a truth, or a str in the language."""
    if isinstance(value, Term):
        return value
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return Term(ATOM, "true" if value else "false", condition=True)
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise ExpressionError(f"{value} cannot stand in an expression: leave a limit out instead")
        number = int(value) if isinstance(value, Integral) else float(value)
        return Term(ATOM if number >= 0 else SIGN, repr(number).removesuffix(".0"))
    if isinstance(value, str):
        written = value.strip()
        if not written:
            raise ExpressionError("an empty text is no expression")
        if "\n" in written or "#" in written:
            # Within brackets line ends mean nothing, and a comment ends before the closing one.
            return Term(ATOM, f"({written}\n)", condition=None)
        return Term(ATOM if _PLAIN.match(written) else LOOSE, written, condition=None)
    if isinstance(value, GeneratorType):
        raise ExpressionError("a generator is ranged over by forall(…), total(…), count(…), largest(…) or smallest(…)")
    raise ExpressionError(f"{value!r} is no expression: a number, a text such as '16 GiB', or what placedsl.expr makes")


def text(value: str) -> Term:
    """A text value, in quotes: ``v.kind_of == text("conv")``."""
    return Term(ATOM, json.dumps(value, ensure_ascii=False))


class Named(Term):
    """A name."""

    def _words(self) -> Iterator[str]:
        yield from (p for p in self._parts if isinstance(p, str))


def named(name: str) -> Term:
    """A name of the spec: a parameter, a set, a device, a quantity."""
    return Named(ATOM, name, condition=None)


def _binary(operator: str, level: int, left: Any, right: Any) -> Term:
    return Term(level, (term(left), level), f" {operator} ", (term(right), level + 1))


def _compare(operator: str, left: Any, right: Any) -> Term:
    return Term(COMPARISON, (term(left), SUM), f" {operator} ", (term(right), SUM), condition=True)


def logic(operator: str, level: int, left: Any, right: Any) -> Term:
    """``and`` or ``or`` of two conditions."""
    sign = {"and": "&", "or": "|"}[operator]
    parts = as_condition(sign, left), as_condition(sign, right)
    return Term(level, (parts[0], level), f" {operator} ", (parts[1], level + 1), condition=True)


def as_condition(sign: str, value: Any) -> Term:
    """The term of a value that stands where ``sign`` takes a condition; TypeError when it is none for sure."""
    out = term(value)
    if out._condition is False:
        raise ExpressionError(
            f"'{sign}' takes conditions, {out!r} is none: put brackets around comparisons, (a <= b) & (c <= d)"
        )
    return out
