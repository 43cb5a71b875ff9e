"""Whether an objective has a least value: are there directions in which points stay feasible and it falls for ever?

Only columns without an upper (or lower) bound can go on for ever; a direction keeps rows if their sides, taken as
zero, keep it.  Conditional rows are left out at first, which only allows more: where no direction is found then, there
is a least value.  Where one is found, conditions and the 0/1 columns that they rest on are looked at as well.
Intervals that may not overlap are left out: what goes on for ever can come after all that does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.ir.linear_rows import LinearRows
from placedsl.ir.program import Maximum, Program
from placedsl.ir.row_meaning import meaning

#: A direction along which the objective falls by less than this, of its coefficients, is none.
LEAST_FALL = 1e-7
#: Seconds for the second look.
_SECONDS = 10.0


def is_unbounded(program: Program, objective: int, fixed: tuple[int, ...] = ()) -> bool:
    """Whether nothing keeps an objective from falling for ever; earlier ones (``fixed``) must not rise meanwhile."""
    return may_be_unbounded(program, objective, fixed) and _looked(program, objective, fixed, conditions=True)


def may_be_unbounded(program: Program, objective: int, fixed: tuple[int, ...] = ()) -> bool:
    """The same without conditions, which is seen sooner: where this is false, the objective has a least value."""
    return rewards(program, objective) and _looked(program, objective, fixed, conditions=False)


def _looked(program: Program, objective: int, fixed: tuple[int, ...], *, conditions: bool) -> bool:
    goal = program.objectives[objective]
    up, down = np.isposinf(program.upper), np.isneginf(program.lower)
    cost = np.bincount(goal.column, goal.coefficient, minlength=len(up)).astype(float)
    return _falls(program, cost, up, down, fixed, conditions=conditions)


def rewards(program: Program, objective: int) -> bool:
    """Whether an objective falls, by itself or through maxima, with a column that has no bound on that side."""
    goal = program.objectives[objective]
    fewer, more = np.zeros((2, len(program.upper)), dtype=bool)
    fewer[goal.column[goal.coefficient > 0.0]] = True
    more[goal.column[goal.coefficient < 0.0]] = True
    maxima = [c for c in program.constraints if isinstance(c, Maximum)]
    before = -1
    while before < (before := int(fewer.sum() + more.sum())):
        for one in maxima:
            result = one.result[one.group[one.term]]
            for here, there in ((fewer, more), (more, fewer)):
                here[one.column[here[result] & (one.coefficient > 0.0)]] = True
                there[one.column[here[result] & (one.coefficient < 0.0)]] = True
    for one in maxima:
        fewer[one.result] = False  # its terms hold it
    return bool((more & np.isposinf(program.upper) | fewer & np.isneginf(program.lower)).any())


def _falls(
    program: Program, cost: Floats, up: Booleans, down: Booleans, fixed: tuple[int, ...], *, conditions: bool
) -> bool:
    """Whether there is a direction, each entry between -1 and 1, along which the cost falls."""
    # Not for every run: it takes a fifth of a second to load.
    from scipy.optimize import Bounds, LinearConstraint, milp

    open_ended = up | down
    terms = [c for c in program.constraints if isinstance(c, Maximum)]
    chosen = {id(c): np.arange(len(c.group)) for c in terms if c.exact}
    columns = len(up)
    for key, place in chosen.items():
        chosen[key] = place + columns
        columns += len(place)
    rows = LinearRows()
    for block in program.rows:
        _row(rows, block.row, block.column, block.coefficient, (block.lower, block.upper), open_ended)
    for position in fixed:
        earlier = program.objectives[position]
        none = np.array([-np.inf])
        zero = np.zeros(len(earlier.column), dtype=np.int64)
        _row(rows, zero, earlier.column, earlier.coefficient, (none, np.zeros(1)), open_ended)
    for one in terms:
        _maximum(rows, one, open_ended, chosen.get(id(one)))
    whole = program.integer & ~open_ended & conditions
    if conditions:
        for literals, parts, sides in _conditional(program):
            _switched(rows, literals, parts, sides, open_ended)
        for block in program.rows:  # those of 0/1 columns alone, which conditions rest on
            inside = np.bincount(block.row, ~program.integer[block.column], minlength=block.rows) == 0
            kept = inside[block.row]
            place = np.cumsum(inside) - 1
            rows.add(place[block.row[kept]], block.column[kept], block.coefficient[kept],
                     block.lower[inside], block.upper[inside])  # fmt: skip
    low, high = np.where(down, -1.0, 0.0), np.where(up, 1.0, 0.0)
    low, high = np.where(whole, program.lower, low), np.where(whole, program.upper, high)
    extra = columns - len(up)
    found = milp(
        np.concatenate((np.where(open_ended, cost, 0.0), np.zeros(extra))),
        integrality=np.concatenate((whole, np.ones(extra))).astype(int),
        bounds=Bounds(np.concatenate((low, np.zeros(extra))), np.concatenate((high, np.ones(extra)))),
        constraints=LinearConstraint(rows.matrix(columns), *rows.sides()) if rows.count else (),
        options={"time_limit": _SECONDS},
    )  # fmt: skip
    if found.status != 0:
        # No point at all, or undecided: looked at more closely, and then left to the solver.
        return not conditions
    return bool(found.fun < -LEAST_FALL * float(np.abs(cost).max()))


def _row(
    rows: LinearRows, row: Integers, column: Integers, value: Floats, sides: tuple[Floats, Floats], open_ended: Booleans
) -> None:
    """Rows over directions, whose finite sides are zero."""
    kept = open_ended[column]
    with_some = np.bincount(row[kept], minlength=len(sides[0])) > 0
    place = np.cumsum(with_some) - 1
    low, high = (np.where(np.isfinite(side), 0.0, side)[with_some] for side in sides)
    rows.add(place[row[kept]], column[kept], value[kept], low, high)


def _maximum(rows: LinearRows, one: Maximum, open_ended: Booleans, chosen: Integers | None) -> None:
    """``result >= term``; of an exact one, some term is the result."""
    terms, groups = len(one.group), len(one.result)
    row = np.concatenate((np.arange(terms), one.term))
    column = np.concatenate((one.result[one.group], one.column))
    value = np.concatenate((np.ones(terms), -one.coefficient))
    kept = open_ended[column]
    none = np.full(terms, np.inf)
    rows.add(row[kept], column[kept], value[kept], np.zeros(terms), none)
    if chosen is None or not terms:
        return
    reach = 1.0 + np.bincount(one.term, np.abs(one.coefficient), minlength=terms)
    rows.add(
        np.concatenate((row[kept], np.arange(terms))), np.concatenate((column[kept], chosen)),
        np.concatenate((value[kept], reach)), -none, reach,
    )  # fmt: skip
    every = np.ones(groups)
    rows.add(one.group, chosen, np.ones(terms), every, every)


_Triplets = tuple[Integers, Integers, Floats]
_Literals = tuple[Integers, Integers, Booleans]


def _conditional(program: Program) -> Iterator[tuple[_Literals, _Triplets, tuple[Floats, Floats]]]:
    """Rows that hold where literals (row, column, value) are true: their triplets and sides."""
    for constraint in program.constraints:
        for part in meaning(constraint).conditional(constraint):
            rows, literals = part.rows, (part.literal_row, part.literal_column, part.literal_value)
            yield literals, (rows.row, rows.column, rows.coefficient), (rows.lower, rows.upper)


def _switched(
    rows: LinearRows, literals: _Literals, parts: _Triplets, sides: tuple[Floats, Floats],
    open_ended: Booleans,
) -> None:  # fmt: skip
    """Rows over directions that hold where all their literals are true."""
    row, column, value = parts
    count = len(sides[0])
    kept = open_ended[column]
    reach = np.bincount(row[kept], np.abs(value[kept]), minlength=count)
    some = reach > 0.0
    where, named, true = literals
    for sign, side in ((1.0, sides[0]), (-1.0, sides[1])):
        used = some & np.isfinite(side)
        place = np.cumsum(used) - 1
        entries, switches = kept & used[row], used[where]
        # sign * value + reach * (false literals) >= 0
        weight = np.where(true, -1.0, 1.0)[switches] * reach[where[switches]]
        positive = np.bincount(where, true, minlength=count)
        rows.add(
            np.concatenate((place[row[entries]], place[where[switches]])),
            np.concatenate((column[entries], named[switches])),
            np.concatenate((sign * value[entries], weight)), -(reach * positive)[used],
            np.full(int(used.sum()), np.inf),
        )  # fmt: skip
