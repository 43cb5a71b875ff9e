"""The best point that has the 0/1 and integer columns of a given one: a linear program over the others.

Solvers give real columns within their tolerances, CP-SAT on a grid; where an objective is a small difference of large
numbers, that is too much.  With the integer columns settled, every global constraint is rows: conditions hold or do
not, an exact maximum is its largest term, intervals follow one another in the order of their starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.program.program import (
    Booleans,
    Floats,
    Implication,
    Integers,
    Maximum,
    NoOverlap,
    Origin,
    Product,
    Program,
    RowBlock,
)

#: Values are brought to this size, of which the linear program's tolerance is a small part.
_SIZE, _TOLERANCE = 1e3, 1e-10
_ORIGIN = Origin("polished")


def polished(program: Program, objective: int, fixed: tuple[tuple[int, float], ...], point: Floats) -> Floats | None:
    """A point of least ``objective`` with the integer columns of ``point``; None where no accurate one is found.

    ``fixed``: (objective, limit) pairs that earlier objectives must stay within.
    """
    # Not for every run: it takes a fifth of a second to load.
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    point = point[: len(program.lower)]
    free = ~program.integer
    whole = np.where(free, point, np.rint(point))
    blocks = [*program.rows, *_limits(program, fixed)]
    for constraint in program.constraints:
        blocks += _settled(constraint, whole)
    goal = program.objectives[objective]
    cost = np.bincount(goal.column, goal.coefficient, minlength=len(point))
    if not cost[free].any():
        return None
    number = np.cumsum(free) - 1
    scale = _SIZE / max(float(np.abs(point[free]).max(initial=0.0)), 1e-30)
    rows: tuple[list[Integers], list[Integers], list[Floats], list[Floats], list[Floats]] = ([], [], [], [], [])
    count = 0
    for block in blocks:
        real = free[block.column]
        known = np.bincount(block.row[~real], (block.coefficient * whole[block.column])[~real], block.rows)
        kept = np.bincount(block.row[real], minlength=block.rows) > 0
        place = np.cumsum(kept) - 1 + count
        rows[0].append(place[block.row[real]])
        rows[1].append(number[block.column[real]])
        rows[2].append(block.coefficient[real])
        rows[3].append(scale * (block.lower - known)[kept])
        rows[4].append(scale * (block.upper - known)[kept])
        count += int(kept.sum())
    row, column, coefficient, low, high = (np.concatenate(part) if part else np.zeros(0) for part in rows)
    matrix = coo_array((coefficient, (row.astype(int), column.astype(int))), shape=(count, int(free.sum()))).tocsr()
    same = (low == high) & np.isfinite(low)
    above, below = np.isfinite(low) & ~same, np.isfinite(high) & ~same
    limits = np.stack((scale * program.lower[free], scale * program.upper[free]), axis=1)
    found = linprog(
        cost[free] / max(float(np.abs(cost[free]).max()), 1e-300),
        A_ub=vstack((matrix[below], -matrix[above])), b_ub=np.concatenate((high[below], -low[above])),
        A_eq=matrix[same], b_eq=low[same], bounds=limits, method="highs",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )  # fmt: skip
    if found.status != 0:
        return None
    out: Floats = whole.copy()
    out[free] = found.x / scale
    return out


def _limits(program: Program, fixed: tuple[tuple[int, float], ...]) -> Iterator[RowBlock]:
    """Rows that keep earlier objectives within their limits."""
    for position, limit in fixed:
        goal = program.objectives[position]
        zero, none = np.zeros(len(goal.column), dtype=np.int64), np.array([-np.inf])
        yield RowBlock(_ORIGIN, zero, goal.column, goal.coefficient, none, np.array([limit - goal.constant]))


def _settled(constraint: object, point: Floats) -> Iterator[RowBlock]:
    """The rows of a global constraint where the integer columns are those of the point."""
    match constraint:
        case Implication(rows=rows):
            true = (point[constraint.literal_column] > 0.5) == constraint.literal_value
            holds = np.bincount(constraint.literal_row, ~true, minlength=rows.rows) == 0
            yield _some(rows, holds)
        case Maximum():
            yield from _maximum(constraint, point)
        case Product(result=result, binary=binary, factor=factor):
            count = len(result)
            every, on = np.arange(count), (point[binary] > 0.5).astype(float)
            zero = np.zeros(count)
            yield RowBlock(
                _ORIGIN, np.concatenate((every, every)), np.concatenate((result, factor)),
                np.concatenate((np.ones(count), -on)), zero, zero,
            )  # fmt: skip
        case NoOverlap():
            yield _in_order(constraint, point)


def _some(block: RowBlock, which: Booleans) -> RowBlock:
    place = np.cumsum(which) - 1
    kept = which[block.row]
    return RowBlock(
        _ORIGIN, place[block.row[kept]], block.column[kept], block.coefficient[kept],
        block.lower[which], block.upper[which],
    )  # fmt: skip


def _maximum(constraint: Maximum, point: Floats) -> Iterator[RowBlock]:
    """``result >= term``, and for the largest term of an exact one the other way round."""
    terms = len(constraint.group)
    if not terms:
        return
    row = np.concatenate((np.arange(terms), constraint.term))
    column = np.concatenate((constraint.result[constraint.group], constraint.column))
    coefficient = np.concatenate((np.ones(terms), -constraint.coefficient))
    high = np.full(terms, np.inf)
    if constraint.exact:
        value = constraint.constant + np.bincount(
            constraint.term, constraint.coefficient * point[constraint.column], minlength=terms
        )
        by_size = np.lexsort((value, constraint.group))
        last = np.append(np.diff(constraint.group[by_size]) > 0, True)
        chosen = by_size[last]
        high[chosen] = constraint.constant[chosen]
    yield RowBlock(_ORIGIN, row, column, coefficient, constraint.constant, high)


def _in_order(constraint: NoOverlap, point: Floats) -> RowBlock:
    """Each interval that is there and lasts ends before the next of its group begins."""
    count = len(constraint.start)
    length = constraint.constant + np.bincount(
        constraint.interval, constraint.coefficient * point[constraint.column], minlength=count
    )
    there = (constraint.present < 0) | (point[np.maximum(constraint.present, 0)] > 0.5)
    kept = np.flatnonzero(there & (length > 0.0))
    # By their middles: what overlaps by a step of a grid may be shorter than that step.
    middle = point[constraint.start[kept]] + 0.5 * length[kept]
    order = kept[np.lexsort((middle, constraint.group[kept]))]
    same = constraint.group[order[1:]] == constraint.group[order[:-1]]
    one, other = order[:-1][same], order[1:][same]
    pairs = len(one)
    of_pair = np.full(count, -1)
    of_pair[one] = np.arange(pairs)
    entries = of_pair[constraint.interval] >= 0
    every = np.arange(pairs)
    return RowBlock(
        _ORIGIN, np.concatenate((every, every, of_pair[constraint.interval[entries]])),
        np.concatenate((constraint.start[other], constraint.start[one], constraint.column[entries])),
        np.concatenate((np.ones(pairs), -np.ones(pairs), -constraint.coefficient[entries])),
        constraint.constant[one], np.full(pairs, np.inf),
    )  # fmt: skip
