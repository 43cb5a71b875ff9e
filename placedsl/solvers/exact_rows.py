"""Rows of whole numbers, decided exactly whichever solver runs.

A solver takes a row for satisfied that is off by a share of its coefficients: with sizes in bytes, by many bytes.
Above what its tolerance amounts to, its own reductions cut off points that keep the row to the last unit as well: what
it then calls a bound is none.  For solvers that compute in floating point, large rows of whole numbers are therefore
made as small as they can be exactly (:mod:`placedsl.solvers.whole_rows`).  The sides of those that stay large are moved
outwards by a margin that is more than tolerances amount to: no point is cut off then, and bounds are bounds.  Equations
among them are written in digits.  What a solver gives is checked in whole numbers; where a point breaks such rows, all
of them are written in digits, and the solver runs again.

*Digits.*  With base ``K`` and ``a = sum_k K^k a_k`` (all but the last digit between 0 and ``K - 1``), a point of whole
numbers satisfies ``a x <= u`` if and only if there are whole carries ``c_k`` with ``a_0 x - K c_0 <= u_0``,
``a_k x + c_{k-1} - K c_k <= u_k``, and ``a_n x + c_{n-1} <= u_n``: each carry is the least that its row allows.  No
coefficient is larger than K then, and a violation by one is far above any tolerance.

*Spent columns.*  A real column without a cost that every row likes best at one end (the largest of what earlier
objectives limit) is set there, so that its rows are rows of whole numbers too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, whole_numbers
from placedsl.budget import Budget
from placedsl.ir.affine import spread
from placedsl.ir.program import LinearProgram, Origin
from placedsl.solvers.interface import Outcome, Progress
from placedsl.solvers.outcome import UNPROVEN, Clock, outcome, row_of_entry, value
from placedsl.solvers.whole_rows import LARGE, WholeRows, reduced

#: Above such sums, solvers that compute in floating point cut off points that keep a row: HiGHS, asked for 1e-8, does
#: from 2^27 on.
_CUT_OFF = 2.0**24
#: They drop coefficients that are a smaller share of the largest of a row, by a factor of ten.
_DROPPED = 1e-8
#: The bits of a digit.
_BITS = 16
Solve = Callable[[LinearProgram, Budget, Progress], Outcome]


def solved_exactly(
    solve: Solve, program: LinearProgram, budget: Budget, progress: Progress, *, in_integers: bool = False
) -> Outcome:
    """The outcome of a solver whose points keep rows of whole numbers to the last unit.

    ``progress`` is told of such points only.  ``in_integers``: the solver computes in integers.
    """
    program = with_spent_columns(program)
    known = WholeRows.of(program)
    if not len(known.rows):
        return solve(program, budget, progress)
    # Assumptions are told of by rows as they are.
    plain = program if in_integers or program.native or len(program.assumed_zero) else reduced(program)
    large = WholeRows.of(plain)
    clock = Clock.start(budget)
    best: list[Floats] = []
    bound = -np.inf

    def heard(point: Floats | None, objective: float, proven: float) -> bool:
        nonlocal bound
        bound = max(bound, proven)
        point = None if point is None else point[: program.columns]
        if point is None or len(known.broken(point)):
            return progress(None, np.inf, bound)
        if not best or objective < value(program, best[0]):
            best[:] = [point]
        return progress(point, objective, bound)

    in_digits, begun = np.zeros(program.rows, dtype=bool), plain
    if not in_integers and not len(program.assumed_zero):
        in_digits[large.rows[(large.reach >= _CUT_OFF) & (large.low == large.high)]] = True
        begun = with_margins(plain, large)
    while True:
        asked = with_digits(begun, large, in_digits) if in_digits.any() else begun
        found = solve(asked, replace(budget, time_limit=clock.left), heard)
        if _doubtful(found, program) and not in_digits[large.rows].all():
            in_digits[large.rows] = True
            continue
        bound = max(bound, found.bound)
        if found.incumbent is None:
            return replace(found, seconds=clock.seconds)
        point = found.incumbent[: program.columns]
        wrong = known.broken(point)
        if not len(wrong):
            return replace(found, incumbent=point, seconds=clock.seconds)
        ended = found.termination not in ("optimal", "gap_reached")
        if ended or in_digits[large.rows].all():
            break
        in_digits[large.rows] = True
    # Stopped with a point that is none, or one that even digits do not keep the solver from.
    reason = found.termination if ended else "error"
    message = found.message if ended else f"its points break '{program.row_name(int(wrong[0]))}' by rounding"
    last = best[0] if best else None
    return outcome(program, budget, clock, reason, last, bound, message, found.version, found.details)


def _doubtful(found: Outcome, program: LinearProgram) -> bool:
    """Whether an outcome contradicts itself, or says that there is no point where one is known: solvers drop
    coefficients that are small beside others (HiGHS: 1e-9 of the largest)."""
    refuted = found.termination == "infeasible" and program.hint is not None
    return refuted or (found.termination == "error" and found.message.startswith(UNPROVEN))


def with_spent_columns(program: LinearProgram) -> LinearProgram:
    """The program with spent columns at the end, a whole number, that every row likes best, where that makes a large
    row one of whole numbers; a program with native constraints as it is."""
    row, column = row_of_entry(program), program.column
    moving = ~program.integer & (program.lower < program.upper)
    large = np.bincount(row, np.abs(program.coefficient) >= LARGE, program.rows) > 0
    large &= np.bincount(row, moving[column], program.rows) == 1
    large &= np.bincount(row, ~whole_numbers(program.coefficient), program.rows) == 0
    real = moving & (program.cost == 0.0) & (np.bincount(column, large[row], program.columns) > 0)
    if program.native or not real.any():
        return program
    # A row of one column is a bound of it.
    alone = (np.diff(program.start)[row] == 1) & (np.abs(program.coefficient) == 1.0)
    lower, upper = program.lower.copy(), program.upper.copy()
    sign, own = program.coefficient[alone], column[alone]
    low, high = program.row_lower[row[alone]], program.row_upper[row[alone]]
    np.maximum.at(lower, own, np.where(sign > 0.0, low, -high))
    np.minimum.at(upper, own, np.where(sign > 0.0, high, -low))
    from_above = np.isfinite(program.row_upper)[row] & ~alone
    from_below = np.isfinite(program.row_lower)[row] & ~alone
    positive = program.coefficient > 0.0
    harms_up = np.bincount(column, np.where(positive, from_above, from_below), program.columns) > 0
    harms_down = np.bincount(column, np.where(positive, from_below, from_above), program.columns) > 0
    real &= lower <= upper
    up = real & ~harms_up & whole_numbers(upper)
    down = real & ~up & ~harms_down & whole_numbers(lower)
    if not (up | down).any():
        return program
    end = np.where(up, upper, lower)
    fixed = up | down
    hint = None if program.hint is None else np.where(fixed, end, program.hint)
    # What is fixed goes to the sides of its rows: solvers drop a coefficient that is small beside the others.
    gone = fixed[column]
    moved = np.bincount(row[gone], program.coefficient[gone] * end[column[gone]], program.rows)
    counts = np.bincount(row[~gone], minlength=program.rows)
    return replace(
        program,
        lower=np.where(fixed, end, program.lower),
        upper=np.where(fixed, end, program.upper),
        start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        column=column[~gone],
        coefficient=program.coefficient[~gone],
        row_lower=program.row_lower - moved,
        row_upper=program.row_upper - moved,
        hint=hint,
    )


def with_margins(program: LinearProgram, known: WholeRows) -> LinearProgram:
    """The program with the sides of its largest rows of whole numbers so far outwards that no solver cuts off what
    keeps them, by its tolerance or by the coefficients that it drops."""
    if not (known.reach >= _CUT_OFF).any():
        return program
    column, size = program.column[known.entries], np.abs(program.coefficient[known.entries])
    largest = np.zeros(len(known.rows))
    np.maximum.at(largest, known.place, size)
    ends = np.maximum(np.abs(program.lower), np.abs(program.upper))[column]
    dropped = known.sums(np.where(size <= _DROPPED * largest[known.place], size * ends, 0.0))
    margin = np.where(known.reach >= _CUT_OFF, np.ceil(known.reach / _CUT_OFF) + dropped, 0.0)
    row_lower, row_upper = program.row_lower.copy(), program.row_upper.copy()
    row_lower[known.rows] -= margin
    row_upper[known.rows] += margin
    return replace(program, row_lower=row_lower, row_upper=row_upper)


def with_digits(program: LinearProgram, known: WholeRows, which: Booleans) -> LinearProgram:
    """The program with some of its rows of whole numbers written in digits; carries are its last columns."""
    written = _Digits(program)
    for row, low, high in zip(known.rows.tolist(), known.low.tolist(), known.high.tolist(), strict=True):
        if which[row]:
            written.add(row, low, high)
    return written.program(which)


class _Digits:
    """Rows in digits, and the columns that they need."""

    def __init__(self, program: LinearProgram) -> None:
        self.given = program
        self.ends: list[tuple[float, float]] = []
        self.columns: list[Integers] = []
        self.coefficients: list[Floats] = []
        self.sides: list[tuple[float, float]] = []

    def add(self, row: int, low: float, high: float) -> None:
        """A row with whole sides."""
        entries = slice(int(self.given.start[row]), int(self.given.start[row + 1]))
        column = self.given.column[entries]
        coefficient = np.rint(self.given.coefficient[entries]).astype(np.int64)
        if low == high:
            self._written(column, coefficient, int(high), equal=True)
            return
        if np.isfinite(high):
            self._written(column, coefficient, int(high), equal=False)
        if np.isfinite(low):
            self._written(column, -coefficient, -int(low), equal=False)

    def _written(self, column: Integers, coefficient: Integers, side: int, *, equal: bool) -> None:
        """``sum <= side``, or ``sum == side``, in as few digits as their bits allow, all about as long."""
        lower, upper = self.given.lower[column], self.given.upper[column]
        bits = int(np.abs(coefficient).max()).bit_length()
        digits = -(-bits // _BITS)
        base = 2 ** (-(-bits // digits))
        low = high = 0.0
        for k in range(digits):
            last = k + 1 == digits
            digit = coefficient if last else coefficient % base
            columns, values = [column], [digit.astype(float)]
            if k:
                columns.append(np.array([self.given.columns + len(self.ends) - 1]))
                values.append(np.ones(1))
            limit = side if last else side % base
            # The last carry is a term of this row, and this row's carry holds what the row is beyond its limit.
            low += float(np.where(digit > 0, digit * lower, digit * upper).sum())
            high += float(np.where(digit > 0, digit * upper, digit * lower).sum())
            if not last:
                columns.append(np.array([self.given.columns + len(self.ends)]))
                values.append(np.array([-float(base)]))
                low, high = np.ceil((low - limit) / base), np.ceil((high - limit) / base)
                self.ends.append((low, high))
            self.columns.append(np.concatenate(columns))
            self.coefficients.append(np.concatenate(values))
            self.sides.append((float(limit) if equal else -np.inf, float(limit)))
            coefficient, side = coefficient // base, side // base

    def program(self, which: Booleans) -> LinearProgram:
        """The program, with these rows in place of those that they stand for."""
        given, more = self.given, len(self.ends)
        kept = ~which
        counts = np.diff(given.start)[kept]
        entries = spread(given.start[:-1][kept], counts)
        lengths = np.concatenate((counts, [len(columns) for columns in self.columns]))
        low, high = np.array(self.sides).reshape(-1, 2).T
        least, most = np.array(self.ends).reshape(-1, 2).T
        none = np.full(more, np.nan)
        blocks = np.searchsorted(given.origin_start, np.flatnonzero(kept), side="right") - 1
        in_block = np.bincount(blocks, minlength=len(given.origins))
        return replace(
            given,
            cost=np.concatenate((given.cost, np.zeros(more))),
            lower=np.concatenate((given.lower, least)),
            upper=np.concatenate((given.upper, most)),
            integer=np.concatenate((given.integer, np.ones(more, dtype=bool))),
            start=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            column=np.concatenate((given.column[entries], *self.columns)).astype(np.int64),
            coefficient=np.concatenate((given.coefficient[entries], *self.coefficients)),
            row_lower=np.concatenate((given.row_lower[kept], low)),
            row_upper=np.concatenate((given.row_upper[kept], high)),
            hint=None if given.hint is None else np.concatenate((given.hint, none)),
            origins=(*given.origins, Origin("digits")),
            origin_start=np.concatenate(([0], np.cumsum(in_block), [len(lengths)])).astype(np.int64),
            column_origins=(*given.column_origins, Origin("carry")),
            column_start=np.append(given.column_start, given.columns + more),
        )  # fmt: skip
