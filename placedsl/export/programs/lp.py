"""The LP format of CPLEX, as CBC, CPLEX, GLPK, Gurobi, HiGHS, SCIP and Xpress read it.

The first objective and all rows.  A constant of the objective stands as a column that is fixed to one, for not every
reader takes a constant there, and a row with two sides stands as two rows.  A column of no row stands in the objective.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.export.programs.legal_names import LP
from placedsl.export.programs.named_program import NamedProgram, named_program
from placedsl.export.programs.text import comments, number, numbers, title
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem

#: CPLEX ends a line after 560 characters, other readers earlier.
_WIDTH = 120
_CONSTANT = "objective_constant"


def write(problem: Problem, formulation: Formulation) -> Iterator[str]:
    """The lines of the file."""
    return lines(named_program(problem, formulation))


def lines(named: NamedProgram) -> Iterator[str]:
    """The lines of the file of a program whose rows have one side, or two that are equal."""
    linear, goal = named.linear, named.goals[0]
    columns, rows = named.names(LP, "{}.{}", ".")
    constant = _CONSTANT
    while constant in columns:
        constant += "_"
    yield from comments(named.header(only_first=True), "\\", plain=True)
    yield "Minimize"
    # SCIP does not know a column that stands in its bounds alone.
    nowhere = np.bincount(linear.column, minlength=linear.columns) == 0
    used = np.flatnonzero((goal.cost != 0.0) | nowhere)
    cost = _terms([columns[j] for j in used.tolist()], numbers(goal.cost[used]))
    constants = [constant] if goal.constant or not cost else []
    if constants:
        cost += _terms([constant], [number(goal.constant)])
    yield from _wrapped([" obj:", *cost])
    yield "Subject To"
    names, start = [columns[j] for j in linear.column.tolist()], linear.start.tolist()
    coefficients, low, high = numbers(linear.coefficient), numbers(linear.row_lower), numbers(linear.row_upper)
    for family in named.rows:
        yield from comments([title(family)], "\\", plain=True)
        for i in range(family.start, family.stop):
            terms = _terms(names[start[i] : start[i + 1]], coefficients[start[i] : start[i + 1]])
            yield from _wrapped([f" {rows[i]}:", *terms, _side(low[i], high[i])])
    yield from _columns(named, columns, constants)
    yield "End"


def _side(low: str, high: str) -> str:
    return f"= {low}" if low == high else f">= {low}" if high == "inf" else f"<= {high}"


def _terms(names: list[str], coefficients: list[str]) -> list[str]:
    """``+ 2 x``, ``- y`` …"""
    out = []
    for name, text in zip(names, coefficients, strict=True):
        sign, size = ("- ", text[1:]) if text[0] == "-" else ("+ ", text)
        out.append(sign + name if size == "1" else f"{sign}{size} {name}")
    return out


def _wrapped(words: list[str]) -> Iterator[str]:
    """The words in lines of bounded length."""
    line, length = [words[0]], len(words[0])
    for word in words[1:]:
        if length + len(word) >= _WIDTH:
            yield " ".join(line)
            line, length = [" "], 1
        line.append(word)
        length += len(word) + 1
    yield " ".join(line)


def _columns(named: NamedProgram, names: list[str], constants: list[str]) -> Iterator[str]:
    """Bounds, then which columns are binary and which are whole."""
    linear = named.linear
    binary = (linear.integer & (linear.lower == 0.0) & (linear.upper == 1.0)).tolist()
    low, high = numbers(linear.lower), numbers(linear.upper)
    yield "Bounds"
    for family in named.columns:
        if all(binary[family.start : family.stop]):
            continue
        yield from comments([title(family)], "\\", plain=True)
        yield from (" " + _bounds(names[j], low[j], high[j]) for j in range(family.start, family.stop) if not binary[j])
    yield from (f" {name} = 1" for name in constants)
    whole = linear.integer.tolist()
    for section, wanted in (("Binaries", True), ("Generals", False)):
        members = [name for name, b, i in zip(names, binary, whole, strict=True) if i and b == wanted]
        if members:
            yield section
            yield from _wrapped(["", *members])


def _bounds(name: str, low: str, high: str) -> str:
    if (low, high) == ("-inf", "inf"):
        return f"{name} free"
    if low == high:
        return f"{name} = {low}"
    return f"{name} >= {low}" if high == "inf" else f"{low} <= {name} <= {high}"
