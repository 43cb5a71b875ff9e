"""Programs whose columns are 0 or 1, and trees of cases that bound them: every leaf has multipliers of the rows.

For multipliers y >= 0 of the rows  A x <= b  and a weight o > 0 of the costs c, every x of a leaf's box has

    o c x  >=  o c x + y (A x - b)  >=  sum over columns of the least of (o c + y A)[j] x[j]  -  y b

whatever y is: an error of what found it weakens the bound and cannot make it wrong.  With o = 0 a least value above 0
says that the leaf is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.numbers import RefusedError, amount, denominator, position

#: More cases than this are not looked at.
MOST_CASES = 20_000


@dataclass
class Program:
    """The least of ``cost`` x, where x is 0 or 1 in the first ``binary`` columns, from 0 to 1 in the others, and 0 or
    more in those of ``open``; each row is coefficients by column, and what their sum is at most."""

    columns: int
    binary: int
    cost: dict[int, Fraction]
    rows: list[tuple[dict[int, Fraction], Fraction]] = field(default_factory=list)
    open: frozenset[int] = frozenset()

    def at_most(self, *terms: tuple[int, Fraction | int], limit: Fraction | int = 0) -> None:
        """One row; terms of one column add up."""
        row: dict[int, Fraction] = {}
        for column, coefficient in terms:
            row[column] = row.get(column, Fraction(0)) + coefficient
        self.rows.append(({j: a for j, a in row.items() if a}, Fraction(limit)))


class _Whole:
    """The program in whole numbers: all are multiples of one over ``over``."""

    def __init__(self, program: Program) -> None:
        every = [*program.cost.values()]
        for row, limit in program.rows:
            every += [*row.values(), limit]
        self.over = denominator(every)
        self.cost = {j: int(c * self.over) for j, c in program.cost.items()}
        self.rows = [
            ([(j, int(a * self.over)) for j, a in row.items()], int(limit * self.over)) for row, limit in program.rows
        ]
        self.open = program.open


def bound(program: Program, cases: Sequence[Any]) -> Fraction | None:
    """What no x is below; None: there is no x at all.

    A case is ``[column, number of the case where it is 0, of that where it is 1]``, both behind it, or a leaf:
    ``{"weight": o, "rows": [[row, multiplier], …]}``.  The first case is the whole.
    """
    if not cases or len(cases) > MOST_CASES:
        raise RefusedError(f"there is no case, or more than {MOST_CASES:,}")
    whole, least = _Whole(program), None
    waiting: list[tuple[int, dict[int, int]]] = [(0, {})]
    looked = 0
    while waiting:
        number, fixed = waiting.pop()
        looked += 1
        if looked > MOST_CASES:
            raise RefusedError("a case belongs to many others")
        case = cases[number]
        if isinstance(case, Mapping):
            found = leaf(whole, case, fixed)
            least = found if least is None else least if found is None else min(least, found)
            continue
        column, zero, one = case
        position(column, program.binary, "a column that is 0 or 1")
        for value, child in ((0, zero), (1, one)):
            if position(child, len(cases), "a case") <= number:
                raise RefusedError("a case that stands before what it is a case of")
            if fixed.get(column, value) == value:
                waiting.append((child, {**fixed, column: value}))
    return least


def leaf(whole: _Whole, case: Mapping[str, Any], fixed: Mapping[int, int]) -> Fraction | None:
    """What no x of a box is below; None: there is none in it."""
    weight = amount(case["weight"], "a weight")
    given = [(position(row, len(whole.rows), "a row"), amount(y, "a multiplier")) for row, y in case["rows"]]
    scale = denominator([weight, *(y for _, y in given)])
    o = int(weight * scale)
    reduced = {j: o * c for j, c in whole.cost.items()}
    total = 0
    for row, multiplier in given:
        y = int(multiplier * scale)
        coefficients, limit = whole.rows[row]
        total -= y * limit
        for j, a in coefficients:
            reduced[j] = reduced.get(j, 0) + y * a
    for j, r in reduced.items():
        if j in fixed:
            total += r * fixed[j]
        elif r < 0:
            if j in whole.open:
                raise RefusedError("multipliers that leave a column without a limit")
            total += r
    if o:
        return Fraction(total, o * whole.over)
    if total <= 0:
        raise RefusedError("a case that is not empty, and has no bound")
    return None


def whole_numbers(program: Program) -> _Whole:
    """The program as leaves are checked."""
    return _Whole(program)
