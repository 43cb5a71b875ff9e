"""Free MPS, which every solver reads.

The first objective and all rows.  The objective's constant is its right-hand side with the sign turned, as readers
take it.  Every column's bounds are written where they are not the default, and all of an integer column's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.export.programs.legal_names import MPS
from placedsl.export.programs.named_program import NamedProgram, named_program
from placedsl.export.programs.text import comments, number, numbers, title
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem

_OBJECTIVE = "obj"


def write(problem: Problem, formulation: Formulation) -> Iterator[str]:
    """The lines of the file."""
    return lines(named_program(problem, formulation, ranges=True))


def lines(named: NamedProgram) -> Iterator[str]:
    """The lines of the file of a program."""
    linear = named.linear
    columns, rows = named.names(MPS, "{}[{}]", ",")
    yield from comments(named.header(only_first=True), "*", plain=True)
    yield "NAME placedsl"
    yield "ROWS"
    yield f" N {_OBJECTIVE}"
    low, high = linear.row_lower, linear.row_upper
    kinds = np.where(low == high, "E", np.where(low > -np.inf, "G", "L")).tolist()
    for family in named.rows:
        yield from comments([title(family)], "*", plain=True)
        yield from (f" {kinds[i]} {rows[i]}" for i in range(family.start, family.stop))
    yield "COLUMNS"
    yield from _entries(named, columns, rows)
    yield "RHS"
    if named.goals[0].constant:
        yield f" RHS {_OBJECTIVE} {number(-named.goals[0].constant)}"
    sides = np.where(low > -np.inf, low, high)
    texts = numbers(sides)
    yield from (f" RHS {rows[i]} {texts[i]}" for i in np.flatnonzero(sides).tolist())
    between = np.flatnonzero((low > -np.inf) & (high < np.inf) & (low != high))
    if len(between):
        yield "RANGES"
        widths = numbers(high[between] - low[between])
        yield from (f" RANGE {rows[i]} {width}" for i, width in zip(between.tolist(), widths, strict=True))
    yield "BOUNDS"
    yield from _bounds(named, columns)
    yield "ENDATA"


def _entries(named: NamedProgram, columns: list[str], rows: list[str]) -> Iterator[str]:
    """Column by column, its cost and its entries; markers around integer columns."""
    linear = named.linear
    row = np.repeat(np.arange(linear.rows), np.diff(linear.start))
    order = np.argsort(linear.column, kind="stable")
    start = np.searchsorted(linear.column[order], np.arange(linear.columns + 1)).tolist()
    coefficients = numbers(linear.coefficient[order])
    of_row = [rows[i] for i in row[order].tolist()]
    cost, whole, marked = numbers(linear.cost), linear.integer.tolist(), False
    for j, name in enumerate(columns):
        if whole[j] != marked:
            marked = whole[j]
            yield f" MARKER 'MARKER' '{'INTORG' if marked else 'INTEND'}'"
        if cost[j] != "0" or start[j] == start[j + 1]:
            yield f" {name} {_OBJECTIVE} {cost[j]}"
        yield from (f" {name} {of_row[k]} {coefficients[k]}" for k in range(start[j], start[j + 1]))
    if marked:
        yield " MARKER 'MARKER' 'INTEND'"


def _bounds(named: NamedProgram, columns: list[str]) -> Iterator[str]:
    linear = named.linear
    low, high, whole = numbers(linear.lower), numbers(linear.upper), linear.integer.tolist()
    for name, least, most, integer in zip(columns, low, high, whole, strict=True):
        if integer and (least, most) == ("0", "1"):
            yield f" BV BOUND {name}"
        elif (least, most) == ("-inf", "inf"):
            yield f" FR BOUND {name}"
        elif least == most:
            yield f" FX BOUND {name} {least}"
        else:
            if least == "-inf":
                yield f" MI BOUND {name}"
            elif least != "0" or integer:
                yield f" LO BOUND {name} {least}"
            if most != "inf":
                yield f" UP BOUND {name} {most}"
            elif integer:
                yield f" PL BOUND {name}"
