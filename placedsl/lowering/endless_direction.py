"""A point of a program together with a direction along which it may go on for ever, as one program.

An objective without a least value has a point and a direction from it: every row and condition that holds in the point
keeps its sides along the direction.  Bounds of real columns that only hold at vertices (see
:mod:`placedsl.lowering.difference_constraints`) say nothing of such a direction, so that it is asked for by itself: a
program whose objective is how fast the objective falls along the direction.

Only columns without a bound on some side go on for ever.  Of rows a direction keeps the sides, taken as zero; under
conditions those that hold in the point, since 0/1 columns do not go on.  Far along a direction an exact maximum is one
of its terms for good: the same term in the point and in the direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from placedsl.arrays import Integers
from placedsl.ir.program import Implication, Maximum, Objective, Origin, Program, RowBlock
from placedsl.ir.row_meaning import meaning

_ORIGIN = Origin("direction")


def with_direction(program: Program, objective: int, fixed: tuple[int, ...] = ()) -> Program:
    """The program with a direction, which its last objective makes as steep as it can be: below zero, if there is one.

    ``fixed``: earlier objectives, which must not rise along it.  Intervals that may not overlap hold no direction.
    """
    return _Directed(program).made(objective, fixed)


class _Directed:
    """The columns and constraints of a program and of a direction."""

    def __init__(self, program: Program) -> None:
        self.given = program
        self.up, self.down = np.isposinf(program.upper), np.isneginf(program.lower)
        self.goes_on = self.up | self.down
        self.direction = np.full(program.columns, -1)
        self.direction[self.goes_on] = program.columns + np.arange(int(self.goes_on.sum()))
        self.rows: list[RowBlock] = list(program.rows)
        self.implications: list[Implication] = []
        self.selectors = 0

    def made(self, objective: int, fixed: tuple[int, ...]) -> Program:
        """The program of both."""
        given = self.given
        for block in given.rows:
            self.rows += self._along(block)[0]
        for position in fixed:
            goal = given.objectives[position]
            zero, none = np.zeros(len(goal.column), dtype=np.int64), np.array([-np.inf])
            self.rows += self._along(RowBlock(_ORIGIN, zero, goal.column, goal.coefficient, none, np.zeros(1)))[0]
        for constraint in given.constraints:
            for block in meaning(constraint).unconditional(constraint):
                self.rows += self._along(block)[0]
            for part in meaning(constraint).conditional(constraint):
                self.implications += self._under(part)
            if isinstance(constraint, Maximum) and constraint.exact:
                self._one_term(constraint)
        goal, more = given.objectives[objective], int(self.goes_on.sum())
        kept = self.goes_on[goal.column]
        steepest = Objective("direction", self.direction[goal.column[kept]], goal.coefficient[kept])
        low, high = np.where(self.down, -1.0, 0.0)[self.goes_on], np.where(self.up, 1.0, 0.0)[self.goes_on]
        chosen = self.selectors
        return replace(
            given,
            lower=np.concatenate((given.lower, low, np.zeros(chosen))),
            upper=np.concatenate((given.upper, high, np.ones(chosen))),
            integer=np.concatenate((given.integer, np.zeros(more, dtype=bool), np.ones(chosen, dtype=bool))),
            rows=tuple(self.rows),
            constraints=(*given.constraints, *self.implications),
            objectives=(*given.objectives, steepest),
            column_origins=(*given.column_origins, _ORIGIN) if given.column_origins else (),
            column_start=np.append(given.column_start, given.columns + more + chosen),
        )

    def _along(self, block: RowBlock) -> tuple[list[RowBlock], Integers]:
        """The rows of a direction that keep rows of a point, and the place of each row among them (-1: none)."""
        kept = self.goes_on[block.column]
        some = np.bincount(block.row[kept], minlength=block.rows) > 0
        place = np.where(some, np.cumsum(some) - 1, -1)
        if not some.any():
            return [], place
        low, high = (np.where(np.isfinite(side), 0.0, side)[some] for side in (block.lower, block.upper))
        column = self.direction[block.column[kept]]
        return [RowBlock(_ORIGIN, place[block.row[kept]], column, block.coefficient[kept], low, high)], place

    def _under(self, part: Implication) -> Iterator[Implication]:
        """The same under literals of the point."""
        blocks, place = self._along(part.rows)
        held = place[part.literal_row]
        kept = held >= 0
        for block in blocks:
            yield Implication(_ORIGIN, held[kept], part.literal_column[kept], part.literal_value[kept], block)

    def _one_term(self, constraint: Maximum) -> None:
        """One term of each group is the result, in the point and along the direction."""
        terms = len(constraint.group)
        first = self.given.columns + int(self.goes_on.sum()) + self.selectors
        self.selectors += terms
        chosen, every = first + np.arange(terms), np.arange(terms)
        one = np.ones(len(constraint.result))
        self.rows.append(RowBlock(_ORIGIN, constraint.group, chosen, np.ones(terms), one, one))
        for block in meaning(constraint).alternatives(constraint):
            own = replace(block, origin=_ORIGIN)
            part = Implication(_ORIGIN, every, chosen, np.ones(terms, dtype=bool), own)
            self.implications += [part, *self._under(part)]
