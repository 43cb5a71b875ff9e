"""A program over integers as CP-SAT takes it: rows under conditions, and sets of literals of which one must be true.

Continuous columns with bounds 0 and 1 that some row of integers defines (``crosses >= x[u] - x[v]``) are Booleans here:
the formulations of this package declare only such columns that way, where 0/1 values of the decisions make them 0/1.
How real data become integers stands in :mod:`placedsl.solvers.integer_scaling`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.ir.affine import merged
from placedsl.ir.program import (
    GlobalConstraint,
    Implication,
    LinearProgram,
    Maximum,
    NoOverlap,
    Origin,
    Product,
    RowBlock,
)
from placedsl.ir.row_meaning import meaning
from placedsl.solvers.integer_scaling import Grid, IntegerRows, integer_rows
from placedsl.solvers.outcome import row_of_entry

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
class Intervals:
    """Of the intervals of each group that are there, no two overlap.

    Interval i begins at ``factor[i]`` times unknown ``start[i]``, lasts ``size[i]`` and is there where the literal
    ``present[i]`` (-1: always) is true.
    """

    origin: Origin
    group: Integers
    present: Integers
    start: Integers
    factor: Integers
    size: Integers


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
    intervals: tuple[Intervals, ...] = ()


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
    intervals: list[Intervals] = []
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
            blocks += _chosen(constraint, unknowns, chosen)
        elif isinstance(constraint, NoOverlap):
            intervals.append(_intervals(constraint, unknowns))
        else:
            blocks += _native(constraint, unknowns)
    return IntegerProgram(unknowns, tuple(blocks), tuple(selectors), np.array(start), tuple(choices), tuple(intervals))


def differing(program: LinearProgram, whole: Booleans) -> tuple[Integers, Integers]:
    """Pairs of continuous columns that stand in one row with opposite coefficients."""
    parts = [(row_of_entry(program), program.column, program.coefficient, program.rows)]
    for constraint in program.native:
        if isinstance(constraint, Implication):
            rows = constraint.rows
            parts.append((rows.row, rows.column, rows.coefficient, rows.rows))
        elif isinstance(constraint, Maximum):
            result = constraint.result[constraint.group[constraint.term]]
            column = np.concatenate((result, constraint.column))
            coefficient = np.concatenate((-np.ones(len(result)), constraint.coefficient))
            parts.append((np.tile(constraint.term, 2), column, coefficient, len(constraint.group)))
    one, other = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for row, column, coefficient, count in parts:
        kept = ~whole[column] & (np.abs(coefficient) == 1.0)
        ends = np.full((2, count), -1)
        for sign, side in ((1.0, 0), (-1.0, 1)):
            some = kept & (coefficient == sign)
            ends[side, row[some]] = column[some]
        both = (ends >= 0).all(axis=0)
        one.append(ends[0, both])
        other.append(ends[1, both])
    return np.concatenate(one), np.concatenate(other)


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


def _rows(block: RowBlock, unknowns: Grid, conditions: list[list[int]] | None = None) -> IntegerBlock:
    row, column, coefficient = merged(block.row, block.column, block.coefficient, len(unknowns.low))
    start = np.searchsorted(row, np.arange(block.rows + 1))
    whole = np.array([0, block.rows])
    return _block(start, column, coefficient, block.lower, block.upper, unknowns, conditions, (block.origin,), whole)


def _native(constraint: GlobalConstraint, unknowns: Grid) -> list[IntegerBlock]:
    known = meaning(constraint)
    plain, under = known.unconditional(constraint), known.conditional(constraint)
    if not plain and not under:
        raise TypeError(f"a {type(constraint).__name__} has no form over integers here")
    return [*(_rows(block, unknowns) for block in plain), *(_under_literals(part, unknowns) for part in under)]


def _under_literals(part: Implication, unknowns: Grid) -> IntegerBlock:
    order = np.argsort(part.literal_row, kind="stable")
    column, true = part.literal_column[order], part.literal_value[order]
    literal = np.where(true, column, -column - 1).tolist()
    begins = np.searchsorted(part.literal_row[order], np.arange(part.rows.rows + 1)).tolist()
    conditions = [literal[begins[i] : begins[i + 1]] for i in range(part.rows.rows)]
    return _rows(replace(part.rows, origin=part.origin), unknowns, conditions)


def _intervals(constraint: NoOverlap, unknowns: Grid) -> Intervals:
    """Intervals in the finest unit of their starts; each is shorter by as much as rounding may move two starts.

    What does not overlap over the reals then does not overlap on the grid either, so that a bound stays proven.  What
    overlaps by such a step is an order of the intervals still, and the times follow from that.
    """
    # A start that is fixed to zero is there on any grid; its own would be as fine as numbers go.
    factor = np.where(unknowns.largest[constraint.start] > 0, 1.0 / unknowns.scale[constraint.start], 0.0)
    unit = 1.0 / float(factor[factor > 0.0].min(initial=1.0))
    moved = float(unknowns.half_step[constraint.start].max(initial=0.0))
    if moved:
        size = np.floor(unit * (constraint.constant - 2.0 * moved) * (1.0 - 1e-15))
    else:
        size = np.ceil(constraint.constant - 1e-9)  # starts are whole numbers
    # One that is longer than all starts lie apart keeps every other away, however long it is.
    ends = np.stack((unknowns.low, unknowns.high))[:, constraint.start] * unit * factor
    size = np.minimum(size, 1.0 + float(np.ptp(ends)) if ends.size else 1.0)
    kept = np.flatnonzero(size > 0.0)
    return Intervals(
        constraint.origin.take(kept), constraint.group[kept], constraint.present[kept], constraint.start[kept],
        np.rint(unit * factor[kept]).astype(np.int64), size[kept].astype(np.int64),
    )  # fmt: skip


def _chosen(constraint: Maximum, unknowns: Grid, chosen: Integers) -> list[IntegerBlock]:
    """``result >= term``, and ``result <= term`` for what is chosen."""
    known = meaning(constraint)
    conditions = [[literal] for literal in chosen.tolist()]
    return [
        *(_rows(block, unknowns) for block in known.unconditional(constraint)),
        *(_rows(block, unknowns, conditions) for block in known.alternatives(constraint)),
    ]
