"""Programs whose rules may give way: by an amount that is minimised, or altogether where a 0/1 column says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from placedsl.arrays import Integers
from placedsl.evaluation.constraint_instances import Instance
from placedsl.ir.affine import activity
from placedsl.ir.program import GlobalConstraint, Implication, Objective, Program, RowBlock
from placedsl.lowering.bound_tightening import tighten
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core

#: By this share, at most, a later instance is dearer than the first.
_NUDGE = 2e-5


def is_amount(body: core.Expression) -> bool:
    """A comparison of numbers that can be missed by an amount."""
    return (
        isinstance(body, core.Comparison)
        and body.of == "number"
        and body.operator in ("<=", ">=", "==")
        and walks.decided(body)
    )


def is_structure(body: core.Expression) -> bool:
    """Contiguity, convexity and intervals that do not overlap, of which there is no more and less."""
    return any(isinstance(part, core.SetProperty | core.NoOverlap) for part in walks.every(body))


def softened(program: Program, parts: dict[str, Instance]) -> Program | None:
    """The program in which the instances by these names are elastic, and how much they give is minimised.

    None when there is nothing in it that could give way.
    """
    rigid = [b for b in program.rows if b.origin.name not in parts]
    lower_bound, upper_bound = tighten(program.lower, program.upper, program.integer, rigid)
    count = program.columns
    low, high, integer = [program.lower], [program.upper], [program.integer]
    column: list[int] = []
    weight: list[float] = []

    def add(most: float, whole: bool, cost: float) -> int:
        nonlocal count
        low.append(np.zeros(1))
        high.append(np.full(1, most))
        integer.append(np.full(1, whole))
        column.append(count)
        # Of amounts that are as small, those of the first instances: every solver then says the same.
        weight.append(cost * (1.0 + _NUDGE * len(weight) / len(parts)))
        count += 1
        return count - 1

    last = {b.origin.name: i for i, b in enumerate(program.rows) if b.origin.name in parts}
    slack = {name: i for name, i in last.items() if is_amount(parts[name].body) and program.rows[i].rows == 1}
    largest = max((_scale(program.rows[i]) for i in slack.values()), default=1.0)
    dropping = {name: add(1.0, True, 1.0) for name in parts if name not in slack}
    rows = list(program.rows)
    for i in slack.values():
        least, most = activity(rows[i].row, rows[i].column, rows[i].coefficient, 1, lower_bound, upper_bound)
        for sign, bound, end in ((-1.0, rows[i].upper, most), (1.0, rows[i].lower, least)):
            if np.isfinite(bound[0]) and (end - bound)[0] * sign < 0:
                rows[i] = _with(rows[i], add(abs(float((end - bound)[0])), False, 1.0 / largest), sign)
    if not column:
        return None
    goal = Objective("repair", np.array(column, dtype=np.int64), np.array(weight))
    wider = replace(
        program, lower=np.concatenate(low), upper=np.concatenate(high), integer=np.concatenate(integer),
        rows=tuple(rows), objectives=(goal,),
    )  # fmt: skip
    return _giving_way(wider, dropping)


def guarded(program: Program, names: Sequence[str]) -> tuple[Program, dict[str, int]]:
    """The program in which the rules by these names hold where a 0/1 column of each is zero, and these columns."""
    columns = {name: program.columns + i for i, name in enumerate(names)}
    wider = replace(
        program, lower=np.append(program.lower, np.zeros(len(names))),
        upper=np.append(program.upper, np.ones(len(names))),
        integer=np.append(program.integer, np.ones(len(names), dtype=bool)),
    )  # fmt: skip
    return _giving_way(wider, columns), columns


def _giving_way(program: Program, columns: Mapping[str, int]) -> Program:
    """Rows and implications of the rules by these names hold only where the column beside the name is zero."""
    rows, constraints = [], list[GlobalConstraint]()
    for block in program.rows:
        if block.origin.name in columns:
            constraints.append(_under(block, columns[block.origin.name]))
        else:
            rows.append(block)
    for constraint in program.constraints:
        name = constraint.origin.name
        known = name in columns and isinstance(constraint, Implication)
        constraints.append(_also_under(constraint, columns[name]) if known else constraint)
    return replace(program, rows=tuple(rows), constraints=tuple(constraints))


def _scale(block: RowBlock) -> float:
    bounds = np.concatenate((block.lower, block.upper))
    return max(float(np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0)), float(np.abs(block.coefficient).max()))


def _with(block: RowBlock, column: int, coefficient: float) -> RowBlock:
    """A block of one row with a further column."""
    return replace(
        block, row=_more(block.row, 0), column=_more(block.column, column),
        coefficient=np.concatenate((block.coefficient, np.full(1, coefficient))),
    )  # fmt: skip


def _more(values: Integers, value: int) -> Integers:
    return np.concatenate((values, np.full(1, value, dtype=np.int64)))


def _under(block: RowBlock, column: int) -> Implication:
    """The rows of a block hold where a 0/1 column is zero."""
    every = np.arange(block.rows)
    return Implication(block.origin, every, np.full(block.rows, column), np.zeros(block.rows, dtype=bool), block)


def _also_under(constraint: GlobalConstraint, column: int) -> GlobalConstraint:
    """An implication whose rows hold only where, further, a 0/1 column is zero."""
    assert isinstance(constraint, Implication)
    every = np.arange(constraint.rows.rows)
    return replace(
        constraint, literal_row=np.concatenate((constraint.literal_row, every)),
        literal_column=np.concatenate((constraint.literal_column, np.full(len(every), column))),
        literal_value=np.concatenate((constraint.literal_value, np.zeros(len(every), dtype=bool))),
    )  # fmt: skip
