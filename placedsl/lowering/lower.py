"""A program to what one solver takes: global constraints it does not know become rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.ir.affine import merged
from placedsl.ir.program import (
    Convex,
    GlobalConstraint,
    Implication,
    LinearProgram,
    Maximum,
    NoOverlap,
    Objective,
    Origin,
    Pipeline,
    Product,
    Program,
    RowBlock,
)
from placedsl.ir.row_meaning import meaning, possible_rows
from placedsl.lowering import convex, implication, maximum, no_overlap, pipeline, product
from placedsl.lowering.bound_tightening import far_apart, narrowed, tighten
from placedsl.lowering.coefficient_tightening import tightened
from placedsl.lowering.context import LoweringContext, Note
from placedsl.lowering.difference_constraints import Differences, bounded, differences
from placedsl.lowering.exactly_one import OneOf, one_of
from placedsl.lowering.strict_comparison import with_margin
from placedsl.tolerances import INTEGER_BOUND

#: In this order: structure first, then what takes its big-M from the bounds that have settled by then.
_REWRITES: tuple[tuple[type, Callable[..., None]], ...] = (
    (Pipeline, pipeline.lower),
    (Convex, convex.lower),
    (Maximum, maximum.lower),
    (Product, product.lower),
    (Implication, implication.lower),
)
#: So often are bounds that rest on a known value carried on, each time one row further.
_ROUNDS = 10


@dataclass(frozen=True)
class Rewritten:
    """A global constraint, by its position in the program: its columns, blocks of rows, and largest big-M (0: none)."""

    constraint: int
    columns: range
    blocks: range
    big_m: float


@dataclass(frozen=True, eq=False)
class Lowered:
    """A linear program over the program's columns (first) and auxiliary ones, and how it came about.

    ``rewritten`` says of each global constraint that the solver does not take itself what it became.
    """

    program: LinearProgram
    notes: tuple[Note, ...]
    rewritten: tuple[Rewritten, ...]


def lower(
    program: Program,
    *,
    native: frozenset[str] = frozenset(),
    integral: bool = False,
    objective: int = 0,
    fixed: tuple[tuple[int, float], ...] = (),
    hint: Floats | None = None,
    most: float = np.inf,
) -> Lowered:
    """Lower everything that is not ``native``.

    ``integral``: the solver has integer columns only.  ``objective``: which objective is minimised;
    ``fixed``: (objective, limit) pairs that earlier objectives must stay within.  ``hint`` is a partial point
    (nan: unknown) over the program's columns.  ``most``: only points with an objective of at most this matter, which
    some point is known to have; bounds of columns, and with them big-M, may rest on it.
    """
    blocks = list(program.rows)
    for position, limit in fixed:
        goal = program.objectives[position]
        zero = np.zeros(len(goal.column), dtype=np.int64)
        none, side = np.array([-np.inf]), np.array([limit - goal.constant])
        blocks.append(RowBlock(Origin(goal.name), zero, goal.column, goal.coefficient, none, side))
        if program.whole(position):
            blocks += _each_term_within(program, goal, limit)
    lower_bound, upper_bound = tighten(program.lower, program.upper, program.integer, blocks)
    context = LoweringContext(
        lower_bound, upper_bound, program.integer.copy(), integral, blocks,
        origins=list(program.column_origins) or [Origin("column")],
        column_start=program.column_start.tolist() if program.column_origins else [0, program.columns],
        declared=np.isfinite(program.lower) & np.isfinite(program.upper),
    )  # fmt: skip
    _settle_bounds(program, context)
    _settle_by_turns(program, context)
    goal = program.objectives[objective]
    if np.isfinite(most):
        _keep_within(goal, most, context)
    _carry_on(program, context, known=bool(np.isfinite(most)))
    ties = _settle_differences(program, context)
    _settle_by_turns(program, context)
    context.blocks[:] = [with_margin(block, context) for block in context.blocks]
    constraints = [
        replace(c, rows=with_margin(c.rows, context)) if isinstance(c, Implication) else c for c in program.constraints
    ]
    kept: list[GlobalConstraint] = []
    rewritten: list[Rewritten] = []

    def rewrite_by(rewrite: Callable[[], None], k: int) -> None:
        columns, rows, told = len(context.lower), len(context.blocks), len(context.notes)
        rewrite()
        big_m = max((note.big_m for note in context.notes[told:]), default=0.0)
        rewritten.append(Rewritten(k, range(columns, len(context.lower)), range(rows, len(context.blocks)), big_m))

    for k, constraint in enumerate(constraints):
        if isinstance(constraint, NoOverlap):
            assert ties is not None
            known, apart = ties
            whole, left = no_overlap.apart(no_overlap.settled(constraint, context, known), "NoOverlap" in native)
            kept += [whole] if "NoOverlap" in native else []
            if len(left.start) or "NoOverlap" not in native:
                rewrite_by(partial(_in_pairs, left, context, known, apart, kept, "Implication" in native), k)
    for kind, rewrite in _REWRITES:
        for k, constraint in enumerate(constraints):
            if isinstance(constraint, kind) and kind.__name__ in native:
                kept.append(constraint)
            elif isinstance(constraint, kind):
                rewrite_by(partial(rewrite, constraint, context), k)
    for k, block in enumerate(context.blocks):
        if far_apart(block):
            context.blocks[k] = tightened(block, context.lower, context.upper, context.integer)
    columns = len(context.lower)
    cost = np.bincount(goal.column, weights=goal.coefficient, minlength=columns).astype(float)
    start, column, coefficient, low, high, origin_start = assembled(context.blocks, columns)
    point = None if hint is None else np.concatenate((hint, np.full(columns - len(hint), np.nan)))
    linear = LinearProgram(
        cost, goal.constant, context.lower, context.upper, context.integer, start, column, coefficient, low, high,
        tuple(kept), point, tuple(b.origin for b in context.blocks), origin_start,
        column_origins=tuple(context.origins), column_start=np.array(context.column_start),
    )  # fmt: skip
    return Lowered(linear, tuple(context.notes), tuple(rewritten))


def _keep_within(goal: Objective, most: float, context: LoweringContext) -> None:
    """Bounds of the columns of an objective that is at most so much: each has what the others leave at least."""
    _, column, cost = merged(
        np.zeros(len(goal.column), dtype=np.int64), goal.column, goal.coefficient, len(context.lower)
    )
    ends = np.where(cost > 0.0, context.lower[column], context.upper[column])
    products = cost * ends
    if not np.isfinite(products).all():
        return
    room = np.maximum(most - goal.constant - float(products.sum()), 0.0)
    rises = cost > 0.0
    context.upper[column[rises]] = np.minimum(context.upper[column[rises]], ends[rises] + room / cost[rises])
    context.lower[column[~rises]] = np.maximum(context.lower[column[~rises]], ends[~rises] + room / cost[~rises])
    for bounds, to_whole in ((context.upper, np.floor), (context.lower, np.ceil)):
        sign = 1.0 if to_whole is np.floor else -1.0
        whole = column[context.integer[column]]
        bounds[whole] = to_whole(bounds[whole] + sign * INTEGER_BOUND)


def _carry_on(program: Program, context: LoweringContext, *, known: bool) -> None:
    """Bounds that follow from those of other columns, row by row: of a value that is ``known``, or where numbers are so
    far apart that a solver's tolerances, measured by the large ones, are more than the small ones."""
    sure = [block for c in program.constraints for block, always in possible_rows(c) if always]
    if not known and not any(map(far_apart, [*context.blocks, *sure])):
        return
    for _ in range(_ROUNDS):
        if not narrowed(context.lower, context.upper, context.integer, [*context.blocks, *sure]):
            return
        _settle_bounds(program, context)


def _each_term_within(program: Program, goal: Objective, limit: float) -> list[RowBlock]:
    """Where an earlier objective is a largest value: each of its terms stays within the limit, as rows of their own.

    Terms in whole numbers are compared exactly, which their maximum is not where its column is real.
    """
    found = program.terms_of(int(goal.column[0])) if len(goal.column) == 1 and goal.coefficient[0] == 1.0 else None
    if found is None:
        return []
    one, terms = found
    row = np.full(len(one.constant), -1, dtype=np.int64)
    row[terms] = np.arange(len(terms))
    entries = np.flatnonzero(row[one.term] >= 0)
    sides = limit - goal.constant - one.constant[terms]
    return [
        RowBlock(
            Origin(goal.name), row[one.term[entries]], one.column[entries], one.coefficient[entries],
            np.full(len(terms), -np.inf), sides,
        )
    ]  # fmt: skip


def _settle_bounds(program: Program, context: LoweringContext) -> None:
    """Bounds of columns that constraints define by others, which may be defined by others in turn."""
    for _ in range(len(program.constraints)):
        before = context.lower.copy(), context.upper.copy()
        for constraint in program.constraints:
            column, low, high = meaning(constraint).limits(constraint, context.lower, context.upper)
            context.lower[column] = np.maximum(context.lower[column], low)
            context.upper[column] = np.minimum(context.upper[column], high)
        if np.array_equal(before[0], context.lower) and np.array_equal(before[1], context.upper):
            return


def _settle_by_turns(program: Program, context: LoweringContext) -> None:
    """Bounds of columns that rows define by what constraints define, and the other way round, however deep they nest.

    Each turn takes one step of such a chain; the end is where no further column has a bound.
    """
    while True:
        known = np.isfinite(context.lower).sum() + np.isfinite(context.upper).sum()
        if known == 2 * len(context.lower):
            return
        context.lower, context.upper = tighten(context.lower, context.upper, context.integer, context.blocks)
        _settle_bounds(program, context)
        if np.isfinite(context.lower).sum() + np.isfinite(context.upper).sum() == known:
            return


def _in_pairs(
    constraint: NoOverlap,
    context: LoweringContext,
    known: OneOf,
    arcs: Differences,
    kept: list[GlobalConstraint],
    native: bool,
) -> None:
    """Intervals as implications, which the solver takes or which become rows."""
    for made in no_overlap.as_implications(constraint, context, known, arcs):
        if native:
            kept.append(made)
        else:
            implication.lower(made, context)


def _settle_differences(program: Program, context: LoweringContext) -> tuple[OneOf, Differences] | None:
    """Bounds of columns that rows tie to one another by differences, and these ties; None where nothing needs them."""
    if not any(isinstance(c, NoOverlap) or _unbounded(c, context) for c in program.constraints):
        return None
    known = one_of(context.blocks, context.lower, context.upper, context.integer)
    found = differences(context.blocks, program.constraints, context.lower, context.upper, context.integer, known)
    context.lower, context.upper = bounded(found, program.constraints, context.lower, context.upper)
    _settle_bounds(program, context)
    return known, found


def _unbounded(constraint: GlobalConstraint, context: LoweringContext) -> bool:
    """Whether a rewrite that takes its big-M from bounds would find none."""
    column = meaning(constraint).bounded(constraint)
    return not (np.isfinite(context.lower[column]).all() and np.isfinite(context.upper[column]).all())


def assembled(blocks: list[RowBlock], columns: int) -> tuple[Integers, Integers, Floats, Floats, Floats, Integers]:
    """All rows as one matrix by rows: start, column, coefficient, bounds, and where each block begins."""
    counts = np.array([b.rows for b in blocks], dtype=np.int64)
    origin_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    if not blocks:
        none, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
        return np.zeros(1, dtype=np.int64), none, floats, floats, floats, origin_start
    most = sum(len(b.row) for b in blocks)
    start = np.zeros(origin_start[-1] + 1, dtype=np.int64)
    column, coefficient, filled = np.empty(most, dtype=np.int64), np.empty(most), 0
    for b, first, last in zip(blocks, origin_start[:-1], origin_start[1:], strict=True):
        row, of_column, of_coefficient = b.row, b.column, b.coefficient
        if not b.merged:
            row, of_column, of_coefficient = merged(row, of_column, of_coefficient, columns)
        ends = start[first + 1 : last + 1]
        np.cumsum(np.bincount(row, minlength=b.rows), out=ends)
        ends += filled
        column[filled : filled + len(row)], coefficient[filled : filled + len(row)] = of_column, of_coefficient
        filled += len(row)
    low, high = np.concatenate([b.lower for b in blocks]), np.concatenate([b.upper for b in blocks])
    return start, column[:filled], coefficient[:filled], low, high, origin_start
