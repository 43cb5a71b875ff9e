"""A program over integers as CP-SAT takes it: rows under conditions, and sets of literals of which one must be true.

Continuous columns with bounds 0 and 1 that some row of integers defines (``crosses >= x[u] - x[v]``) are Booleans here:
the formulations of this package declare only such columns that way, where 0/1 values of the decisions make them 0/1.
How real data become integers stands in :mod:`placedsl.solvers.scaling`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.program.affine import merged
from placedsl.program.program import (
    Booleans,
    Floats,
    GlobalConstraint,
    Implication,
    Integers,
    LinearProgram,
    Maximum,
    Origin,
    Product,
)
from placedsl.solvers.outcome import row_of_entry
from placedsl.solvers.scaling import Grid, IntegerRows, integer_rows

#: Kinds of rows: a plain one, and those that are sets of literals.
LINEAR, EXACTLY_ONE, AT_MOST_ONE, AT_LEAST_ONE = range(4)


@dataclass(frozen=True, eq=False)
class IntegerBlock:
    """Rows, row i holding whenever all of ``conditions[i]`` are true (None: always).

    A literal is a column, or ``-column - 1`` for its negation.  ``kinds`` says which rows over literals are sets.
    ``origins`` names the rows: block k covers rows ``origin_start[k]:origin_start[k+1]``.
    """

    rows: IntegerRows
    kinds: Integers
    conditions: list[list[int]] | None
    origins: tuple[Origin, ...]
    origin_start: Integers


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """Unknowns on a grid, and after them Booleans that exact maxima need.

    ``selectors`` names those: block k covers ``selector_start[k]:selector_start[k+1]`` of them.  Of each list of
    ``choices`` at least one literal is true; block k of them belongs to block k of the selectors.
    """

    unknowns: Grid
    blocks: tuple[IntegerBlock, ...]
    selectors: tuple[Origin, ...]
    selector_start: Integers
    choices: tuple[list[list[int]], ...]


def integer_program(program: LinearProgram, unknowns: Grid) -> IntegerProgram:
    """The integer program over these unknowns; TypeError for a global constraint that has no such form."""
    blocks = [
        _block(
            program.start, program.column, program.coefficient, program.row_lower, program.row_upper, unknowns,
            None, program.origins, program.origin_start,
        )
    ]  # fmt: skip
    selectors: list[Origin] = []
    start = [0]
    choices: list[list[list[int]]] = []
    for constraint in program.native:
        if isinstance(constraint, Maximum) and constraint.exact:
            first = len(unknowns.low) + start[-1]
            chosen = np.arange(first, first + len(constraint.group))
            named = constraint.origin.take(constraint.group)
            selectors.append(replace(named, name=f"{named.name}_chosen"))
            start.append(start[-1] + len(chosen))
            groups: list[list[int]] = [[] for _ in constraint.result]
            for group, literal in zip(constraint.group.tolist(), chosen.tolist(), strict=True):
                groups[group].append(literal)
            choices.append(groups)
            blocks += _maximum(constraint, unknowns, chosen)
        else:
            blocks += _native(constraint, unknowns)
    return IntegerProgram(unknowns, tuple(blocks), tuple(selectors), np.array(start), tuple(choices))


def booleans(program: LinearProgram) -> Booleans:
    """Continuous columns between 0 and 1 that a row of integers over such columns defines."""
    able = program.integer | ((program.lower == 0.0) & (program.upper == 1.0))
    defined = np.zeros(program.columns, dtype=bool)
    parts = [(row_of_entry(program), program.column, program.coefficient, program.rows)]
    for constraint in program.native:
        if isinstance(constraint, Implication):
            rows = constraint.rows
            parts.append((rows.row, rows.column, rows.coefficient, rows.rows))
        elif isinstance(constraint, Product):
            defined[constraint.result] |= able[constraint.factor]
    for row, column, coefficient, count in parts:
        other = ~able[column] | (coefficient != np.rint(coefficient))
        integral: Booleans = np.bincount(row, other, count) == 0
        defined[column[integral[row]]] = True
    return np.asarray(able & defined & ~program.integer, dtype=np.bool_)


def _block(
    start: Integers, column: Integers, coefficient: Floats, lower: Floats, upper: Floats, unknowns: Grid,
    conditions: list[list[int]] | None, origins: tuple[Origin, ...], origin_start: Integers,
) -> IntegerBlock:  # fmt: skip
    rows = integer_rows(start, column, coefficient, lower, upper, unknowns)
    kinds = _kinds(rows, unknowns) if conditions is None else np.zeros(len(lower), dtype=np.int64)
    return IntegerBlock(rows, kinds, conditions, origins, origin_start)


def _kinds(rows: IntegerRows, unknowns: Grid) -> Integers:
    boolean = (unknowns.low >= 0) & (unknowns.high <= 1) & unknowns.exact
    count, size = len(rows.lower), np.diff(rows.start)
    row = np.repeat(np.arange(count), size)
    plain = (np.bincount(row, (rows.coefficient != 1) | ~boolean[rows.column], count) == 0) & (size > 1)
    most_one = plain & (rows.upper == 1)
    kinds = np.where(most_one & (rows.lower <= 0), AT_MOST_ONE, LINEAR)
    kinds[most_one & (rows.lower == 1)] = EXACTLY_ONE
    kinds[plain & (rows.lower == 1) & (rows.upper >= size)] = AT_LEAST_ONE
    return kinds


def _triplets(
    origin: Origin, row: Integers, column: Integers, coefficient: Floats, lower: Floats, upper: Floats,
    unknowns: Grid, conditions: list[list[int]] | None = None,
) -> IntegerBlock:  # fmt: skip
    row, column, coefficient = merged(row, column, coefficient, len(unknowns.low))
    start = np.searchsorted(row, np.arange(len(lower) + 1))
    whole = np.array([0, len(lower)])
    return _block(
        start, column, coefficient, np.asarray(lower), np.asarray(upper), unknowns, conditions, (origin,), whole
    )


def _native(constraint: GlobalConstraint, unknowns: Grid) -> list[IntegerBlock]:
    if isinstance(constraint, Implication):
        rows = constraint.rows
        order = np.argsort(constraint.literal_row, kind="stable")
        column, true = constraint.literal_column[order], constraint.literal_value[order]
        literal = np.where(true, column, -column - 1).tolist()
        begins = np.searchsorted(constraint.literal_row[order], np.arange(rows.rows + 1)).tolist()
        conditions = [literal[begins[i] : begins[i + 1]] for i in range(rows.rows)]
        return [
            _triplets(
                constraint.origin, rows.row, rows.column, rows.coefficient, rows.lower, rows.upper, unknowns, conditions
            )
        ]
    if isinstance(constraint, Maximum):
        return _maximum(constraint, unknowns, None)
    if isinstance(constraint, Product):
        count = len(constraint.result)
        every, ones, zero = np.arange(count), np.ones(count), np.zeros(count)
        on = [[int(b)] for b in constraint.binary]
        off = [[-int(b) - 1] for b in constraint.binary]
        both = np.concatenate((every, every)), np.concatenate((constraint.result, constraint.factor))
        return [
            _triplets(constraint.origin, *both, np.concatenate((ones, -ones)), zero, zero, unknowns, on),
            _triplets(constraint.origin, every, constraint.result, ones, zero, zero, unknowns, off),
        ]
    raise TypeError(f"a {type(constraint).__name__} has no form over integers here")


def _maximum(constraint: Maximum, unknowns: Grid, chosen: Integers | None) -> list[IntegerBlock]:
    """``result >= term``; where selectors are given also ``result <= term`` for what is chosen."""
    terms = len(constraint.group)
    every, none = np.arange(terms), np.full(terms, np.inf)
    row = np.concatenate((every, constraint.term))
    column = np.concatenate((constraint.result[constraint.group], constraint.column))
    coefficient = np.concatenate((np.ones(terms), -constraint.coefficient))
    origin = constraint.origin.take(constraint.group)
    blocks = [_triplets(origin, row, column, coefficient, constraint.constant, none, unknowns)]
    if chosen is not None:
        conditions = [[literal] for literal in chosen.tolist()]
        blocks.append(_triplets(origin, row, column, coefficient, -none, constraint.constant, unknowns, conditions))
    return blocks
