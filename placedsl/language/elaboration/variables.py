"""``var name[v in nodes, …]: type in low..high``: decision variables of a formulation or of a spec."""

from __future__ import annotations

import math
from collections.abc import Mapping

from placedsl.diagnostics import nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.vocabulary import PLAIN, Family, Type
from placedsl.language.syntax import statements as syntax
from placedsl.problem.problem import Variable
from placedsl.units import NUMBER


def type_words(known: Mapping[str, Type]) -> list[str]:
    """The words that may stand after the colon of a variable, of all types by name."""
    return ["binary", "integer", "real", *(name for name, t in known.items() if t.kind == "number" and t != PLAIN)]


def variable(checker: Checker, clause: syntax.Variable) -> tuple[Variable, Family]:
    """A variable and how it may be used; what is wrong is reported."""
    with checker.bound():
        binders = checker.binders(clause.items)
    kind, low, high, integer = PLAIN, 0.0, math.inf, False
    binary = clause.type is not None and clause.type.text == "binary"
    if clause.type is not None:
        word = clause.type.text
        numbers = {name: t for name, t in checker.vocabulary.types.items() if t.kind == "number" and t != PLAIN}
        if word == "binary":
            high, integer = 1.0, True
        elif word in ("integer", "int"):
            integer = True
        elif word in numbers:
            kind = numbers[word]
        elif word not in ("real", "time"):
            known = type_words(checker.vocabulary.types)
            checker.error(clause.type, f"'{word}' is no type of a variable", nearest(word, known))
    said = clause.type is not None
    for bound, which in ((clause.low, "low"), (clause.high, "high")):
        if bound is None:
            continue
        value, given = _bound(checker, bound)
        if value is None:
            continue
        if not said and given.dimension != NUMBER:
            kind, said = given, True
        elif given.dimension != kind.dimension and value != 0.0:
            checker.error(bound, f"this variable is {kind}, this bound is {given}")
        if integer and not value.is_integer():
            checker.error(bound, "the bounds of a whole number are whole numbers")
        low, high = (value, high) if which == "low" else (low, value)
    if low > high:
        checker.error(clause.name, f"no value of '{clause.name.text}' lies between its bounds")
    if binary and clause.low is not None:
        checker.error(clause.low, "a binary variable is 0 or 1", "leave the bounds out")
    family = Family(tuple(s for b in binders for s in b.sorts), kind, binary)
    dimension = checker.vocabulary.as_written(kind.dimension)
    made = Variable(clause.name.text, binders, integer, low, high, clause.at.span, dimension)
    return made, family


def _bound(checker: Checker, node: syntax.Expression) -> tuple[float | None, Type]:
    out, kind = checker.number(node)
    value = known_number(out)
    if kind.kind == "error":
        return None, kind
    if value is None:
        checker.error(node, "a value known beforehand is expected here")
    return value, kind
