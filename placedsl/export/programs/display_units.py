"""Units for the numbers of a written program: such that most of them lie between one and a thousand.

Solvers read a file with absolute tolerances, and people read it too: 4 (ms) and 6 (GiB) serve both better than 0.004
and 6442450944.  A column of its own unit, a row that is divided by one: neither changes what the program says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.ir.program import LinearProgram
from placedsl.units import CANONICAL, DATA, NUMBER, TIME, Dimension

#: Ranges of blocks of columns or rows: first and past the last.
Ranges = list[tuple[int, int]]

#: Coefficients between these are left as they are.
_PLAIN = (1e-2, 1e4)
_NAMED = {
    TIME: {1.0: "s", 1e-3: "ms", 1e-6: "us", 1e-9: "ns"},
    DATA: {1.0: "B", 1e3: "kB", 1e6: "MB", 1e9: "GB", 2.0**10: "KiB", 2.0**20: "MiB", 2.0**30: "GiB"},
}


def in_units(values: Floats, unit: Floats | float) -> Floats:
    """The values divided by the unit; 0.009 is 9 thousandths, which 0.009 / 0.001 is not quite."""
    units = np.broadcast_to(np.asarray(unit, dtype=float), values.shape)
    out = values.copy()
    changed = (units != 1.0) & np.isfinite(values)
    small = changed & (units < 1.0)
    out[changed] = values[changed] / units[changed]
    out[small] = values[small] * np.rint(1.0 / units[small])
    decimal = changed & (np.frexp(units)[0] != 0.5)
    known, back = np.unique(out[decimal], return_inverse=True)
    short = np.array([float(f"{v:.15g}") for v in known.tolist()], dtype=float)
    # 1.1000000000000001 is 1.1; what has more digits keeps them.
    out[decimal] = np.where(abs(short - known) <= 1e-15 * abs(known), short, known)[back]
    return out


def fitting_unit(sizes: Floats) -> float:
    """A power of 1000 or 1024 in which these numbers are around one, and short."""
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not len(sizes):
        return 1.0
    middle = float(np.median(sizes))
    candidates = [10.0 ** (3 * int(np.floor(np.log10(middle) / 3)))]
    if middle >= 1024:
        candidates.append(2.0 ** (10 * int(np.floor(np.log2(middle) / 10))))
    sample = np.unique(sizes)[:200]
    return min(candidates, key=lambda unit: sum(len(repr(v)) for v in in_units(sample, unit).tolist()))


def column_units(program: LinearProgram, quantities: Booleans, columns: Ranges) -> Floats:
    """The unit of each column; all but ``quantities`` have one.

    A block of quantities takes its unit from what the rows over it add up; blocks that only meet others of their kind
    take it from those, or from their bounds.
    """
    row = np.repeat(np.arange(program.rows), np.diff(program.start))
    column, size = program.column, np.abs(program.coefficient)
    unit, settled = np.ones(program.columns), ~quantities
    waiting = [(first, past) for first, past in columns if past > first and quantities[first:past].any()]
    while waiting:
        left = []
        for first, past in waiting:
            own = np.flatnonzero((column >= first) & (column < past))
            weight = np.zeros(program.rows)
            np.maximum.at(weight, row[own], size[own])
            other = np.flatnonzero((weight[row] > 0) & settled[column])
            if not len(other):
                left.append((first, past))
                continue
            unit[first:past] = fitting_unit(size[other] * unit[column[other]] / weight[row[other]])
            settled[first:past] = True
        if len(left) == len(waiting):
            # Nothing is known of these but their bounds.
            first, past = left.pop(0)
            unit[first:past] = fitting_unit(np.abs(np.stack((program.lower[first:past], program.upper[first:past]))))
            settled[first:past] = True
        waiting = left
    return unit


def row_units(program: LinearProgram, unit: Floats, rows: Ranges) -> Floats:
    """What each row is divided by: one number a block, once the columns have their units.

    Rows of a block whose numbers are far smaller than what fits most of them (conditions beside sizes in bytes) have a
    number of their own: a reader that tells 1e-6 from zero no more would lose them.
    """
    size = np.abs(program.coefficient) * unit[program.column]
    row = np.repeat(np.arange(program.rows), np.diff(program.start))
    largest = np.zeros(program.rows)
    np.maximum.at(largest, row, size)
    out = np.ones(program.rows)
    for first, past in rows:
        left = np.arange(first, past)
        while len(left):
            inside = np.zeros(past - first, dtype=bool)
            inside[left - first] = True
            block = slice(int(program.start[first]), int(program.start[past]))
            mine = inside[row[block] - first]
            if not mine.any():
                break
            out[left] = divisor = _row_unit(size[block][mine], unit[program.column[block][mine]])
            small = (largest[left] > 0.0) & (largest[left] < _PLAIN[0] * divisor)
            left = left[small] if not small.all() else left[:0]
    return out


def _row_unit(size: Floats, of_column: Floats) -> float:
    """What rows with coefficients of these sizes are divided by; ``of_column``: the units of the columns."""
    known = [float(u) for u in np.unique(of_column) if u != 1.0]
    middle = float(np.median(size))
    near = [u for u in (*known, 1.0) if _PLAIN[0] <= middle / u <= _PLAIN[1]]
    if not known and _PLAIN[0] <= size.min() and size.max() <= _PLAIN[1]:
        return 1.0
    return near[0] if near and known else fitting_unit(size)


def goal_unit(cost: Floats, unit: Floats) -> float:
    """The unit of an objective: that of its columns where its numbers are plain in it."""
    size = np.abs(cost[cost != 0.0])
    middle = float(np.median(size)) if len(size) else 1.0
    of_columns = [float(u) for u in np.unique(unit[cost != 0.0]) if u != 1.0]
    near = [u for u in of_columns if _PLAIN[0] <= middle / u <= _PLAIN[1]]
    return near[0] if near else fitting_unit(size)


def measured(program: LinearProgram, unit: Floats, divisor: Floats) -> LinearProgram:
    """The program with its columns in these units and its rows divided by these numbers; the objective as it was."""
    row = np.repeat(np.arange(program.rows), np.diff(program.start))
    return replace(
        program,
        cost=program.cost * unit,
        lower=in_units(program.lower, unit),
        upper=in_units(program.upper, unit),
        coefficient=in_units(program.coefficient, divisor[row] / unit[program.column]),
        row_lower=in_units(program.row_lower, divisor),
        row_upper=in_units(program.row_upper, divisor),
    )


def unit_name(unit: float, dimension: Dimension) -> str:
    """``ms``, ``GiB``, or the number and the canonical unit; empty for plain numbers by one."""
    named = _NAMED.get(dimension, {}).get(unit)
    if named is not None:
        return named
    canonical = CANONICAL.get(dimension, (str(dimension), 1.0))[0]
    if unit == 1.0:
        return canonical
    return f"units of {unit:g}" if dimension == NUMBER else f"{unit:g} {canonical}"
