"""The units in which a spec writes its quantities, so that answers are given in the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

from placedsl.language.syntax import expressions, statements
from placedsl.units import DATA, NUMBER, TIME, Dimension

#: Answers choose the unit of these by the size of the value; nodes of a graph are many, and have hardly any other.
_BY_SIZE = (NUMBER, TIME, DATA)
_LEFT_OUT = (statements.GraphInline, statements.GraphFile)


def written_units(spec: Iterable[statements.Statement]) -> Mapping[Dimension, str]:
    """The unit that the statements use most often for a dimension (the first of those used equally often)."""
    counts = Counter(
        (number.dimension, number.unit)
        for statement in spec
        if not isinstance(statement, _LEFT_OUT)
        for number in _numbers(statement)
        if number.unit and number.dimension not in _BY_SIZE
    )
    out: dict[Dimension, str] = {}
    for (dimension, unit), _ in counts.most_common():
        out.setdefault(dimension, unit)
    return out


def _numbers(piece: object) -> Iterator[expressions.Number]:
    """The numbers that are written within a piece of syntax."""
    waiting = [piece]
    while waiting:
        one = waiting.pop()
        if isinstance(one, expressions.Number):
            yield one
        elif isinstance(one, expressions.At):
            continue
        elif isinstance(one, tuple | list):
            waiting += reversed(one)
        elif is_dataclass(one):
            waiting += [getattr(one, field.name) for field in reversed(fields(one))]
