"""Bounds and orders of continuous columns that rows tie to one another by their differences.

A row ``y - x + rest >= w``, with everything in the rest an integer column or bounded, is an *arc* from x to y.  Where
all rows that a column is in are arcs (or bound it alone), an optimal point lies at a vertex of these differences once
the integer columns are settled, and each column then is a sum of weights along a path that meets no column twice: this
bounds it, whatever the program says of it.  A row that only adds up columns of 0 or more, ``x + y <= w`` or
``x + y >= w``, ends such a path: where it is tight no column is more than w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.ir.affine import merged, spread
from placedsl.ir.program import GlobalConstraint, RowBlock
from placedsl.ir.row_meaning import meaning, possible_rows
from placedsl.lowering.exactly_one import OneOf, least
from placedsl.tolerances import SOLVER_ROW

#: Rounds of propagation at most; each carries bounds one arc further.
_ROUNDS = 5000
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Arcs:
    """``after[k] - before[k] >= weight``, which lies between ``low[k]`` and ``high[k]``; a column of -1 is zero.

    The weight is ``side[k] - sum coefficient * column`` over the entries ``start[k]:start[k+1]``.  ``sure[k]``: it
    holds under no condition.
    """

    before: Integers
    after: Integers
    low: Floats
    high: Floats
    side: Floats
    sure: Booleans
    start: Integers
    column: Integers
    coefficient: Floats


@dataclass(frozen=True, eq=False)
class Differences:
    """The arcs of a program; which columns are ``timed``; those in rows that are more than differences.

    ``summed`` columns are in rows that only add up, and at most ``total`` where such a row is tight.  ``mirrored``
    columns have an upper bound and no lower one (the negative of a least time): arcs are about their negatives.
    """

    arcs: Arcs
    timed: Booleans
    spoilt: Integers
    summed: Integers
    total: Floats
    mirrored: Booleans


def differences(
    blocks: Sequence[RowBlock], constraints: Sequence[GlobalConstraint], lower: Floats, upper: Floats,
    integer: Booleans, known: OneOf,
) -> Differences:  # fmt: skip
    """Read the arcs off rows and global constraints."""
    timed = ~integer & ~((lower == 0.0) & (upper == 1.0))
    mirrored = timed & np.isneginf(lower) & np.isfinite(upper)
    low, high = _turned(mirrored, lower, upper)
    turn = np.where(mirrored, -1.0, 1.0)
    rows = [(block, True) for block in blocks]
    rows += [pair for constraint in constraints for pair in possible_rows(constraint)]
    found, spoilt, summed, total = [], [_NONE], [_NONE], [np.zeros(0)]
    for block, sure in rows if timed.any() else ():
        for sign, side in ((1.0, block.lower), (-1.0, -block.upper)):
            turned = replace(block, coefficient=block.coefficient * turn[block.column])
            arcs, wrong, added, most = _arcs(turned, sign, side, timed, low, high, known, sure)
            found.append(arcs)
            spoilt.append(wrong)
            summed.append(added)
            total.append(most)
    return Differences(
        _joined(found), timed, np.unique(np.concatenate(spoilt)), np.concatenate(summed), np.concatenate(total),
        mirrored,
    )  # fmt: skip


def _turned(mirrored: Booleans, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Bounds with those of mirrored columns for their negatives, or back."""
    return np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)


def _arcs(
    block: RowBlock, sign: float, side: Floats, timed: Booleans, lower: Floats, upper: Floats, known: OneOf, sure: bool
) -> tuple[Arcs, Integers, Integers, Floats]:
    """The arcs of rows ``sign * sum >= side``; of rows that are no arcs the timed columns, and of those that only
    add up the timed columns with what each is at most where the row is tight.
    """
    entry_row, entry_column, entry = merged(block.row, block.column, sign * block.coefficient, len(timed))
    of_time = timed[entry_column]
    count = np.bincount(entry_row, of_time, minlength=block.rows)
    positive, negative = np.full(block.rows, -1), np.full(block.rows, -1)
    factor = np.ones(block.rows)
    for found, some in ((positive, of_time & (entry > 0)), (negative, of_time & (entry < 0))):
        found[entry_row[some]] = entry_column[some]
        factor[entry_row[some]] = np.abs(entry[some])
    apart = np.abs(np.abs(entry) - factor[entry_row]) > 1e-12 * factor[entry_row]
    uneven = np.bincount(entry_row, of_time & apart, minlength=block.rows) > 0
    one_each = (count == (positive >= 0).astype(int) + (negative >= 0)) & ~uneven
    finite = np.isfinite(side)
    below = np.bincount(entry_row, of_time & ~(lower[entry_column] >= 0.0), minlength=block.rows) > 0
    adds = ~one_each & finite & ~below & ((positive < 0) | (negative < 0))
    wrong = entry_column[of_time & (~one_each & finite & ~adds)[entry_row]]
    kept = one_each & finite & (count > 0)
    position = np.cumsum(kept) - 1
    entries = np.flatnonzero(kept[entry_row] & ~of_time)
    row, column = position[entry_row[entries]], entry_column[entries]
    weight = side[kept] / factor[kept]
    coefficient = entry[entries] / factor[kept][row]
    rows = len(weight)
    low, high = _weights(row, column, coefficient, weight, lower, upper, known)
    start = np.searchsorted(row, np.arange(rows + 1))
    arcs = Arcs(negative[kept], positive[kept], low, high, weight, np.full(rows, sure), start, column, coefficient)
    added = np.flatnonzero(of_time & adds[entry_row])
    rest = ~of_time & adds[entry_row]
    low, high = _weights(entry_row[rest], entry_column[rest], entry[rest], side, lower, upper, known)
    most = np.where(positive < 0, -low, high)[entry_row[added]] / np.abs(entry[added])
    return arcs, wrong, entry_column[added], most


def _weights(
    row: Integers, column: Integers, coefficient: Floats, side: Floats, lower: Floats, upper: Floats, known: OneOf
) -> tuple[Floats, Floats]:
    """The least and the greatest weight."""
    rows = len(side)
    high = side - least(row, column, coefficient, rows, lower, upper, known)
    low = side + least(row, column, -coefficient, rows, lower, upper, known)
    return low, high


def _joined(found: list[Arcs]) -> Arcs:
    found = [arcs for arcs in found if len(arcs.before)]
    if not found:
        none, floats = _NONE, np.zeros(0)
        return Arcs(none, none, floats, floats, floats, floats.astype(bool), np.zeros(1, dtype=np.int64), none, floats)
    shift = np.cumsum([0, *(len(arcs.column) for arcs in found)])
    start = [arcs.start[:-1] + s for arcs, s in zip(found, shift, strict=False)]
    return Arcs(
        np.concatenate([a.before for a in found]), np.concatenate([a.after for a in found]),
        np.concatenate([a.low for a in found]), np.concatenate([a.high for a in found]),
        np.concatenate([a.side for a in found]), np.concatenate([a.sure for a in found]),
        np.concatenate([*start, shift[-1:]]), np.concatenate([a.column for a in found]),
        np.concatenate([a.coefficient for a in found]),
    )  # fmt: skip


def bounded(
    known: Differences, constraints: Sequence[GlobalConstraint], lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """Bounds of the timed columns: from paths of arcs, and where there is none from all weights together."""
    arcs, (lower, upper) = known.arcs, _turned(known.mirrored, lower, upper)
    _carried(arcs, lower, upper)
    open_ended = np.flatnonzero(known.timed & np.isposinf(upper))
    if len(open_ended):
        # A column with bounds of its own is one more place where paths begin, in whatever rows it is.
        ended = np.isfinite(lower[known.spoilt]) & np.isfinite(upper[known.spoilt])
        reach = _reach(known, known.spoilt[ended], constraints, lower, upper)
        held = _connected(arcs, constraints, len(lower), known.spoilt[~ended])
        free = open_ended[~held[open_ended]]
        upper[free] = np.minimum(upper[free], reach[free])
        _carried(arcs, lower, upper)
    return _turned(known.mirrored, lower, upper)


def _carried(arcs: Arcs, lower: Floats, upper: Floats) -> None:
    """Carry bounds along the arcs that hold under no condition, until nothing changes."""
    alone = arcs.sure & (arcs.before < 0)
    np.maximum.at(lower, arcs.after[alone], arcs.low[alone])
    alone = arcs.sure & (arcs.after < 0)
    np.minimum.at(upper, arcs.before[alone], -arcs.low[alone])
    both = np.flatnonzero(arcs.sure & (arcs.before >= 0) & (arcs.after >= 0) & np.isfinite(arcs.low))
    before, after, weight = arcs.before[both], arcs.after[both], arcs.low[both]
    for _ in range(_ROUNDS if len(both) else 0):
        raised, lowered = lower[before] + weight, upper[after] - weight
        up, down = raised > lower[after], lowered < upper[before]
        if not (up.any() or down.any()):
            break
        np.maximum.at(lower, after[up], raised[up])
        np.minimum.at(upper, before[down], lowered[down])
        if (lower > upper + SOLVER_ROW * np.maximum(1.0, np.abs(lower))).any():
            break  # a circle, or a bound that cannot be kept: for the solver to refute


def _reach(
    known: Differences, ended: Integers, constraints: Sequence[GlobalConstraint], lower: Floats, upper: Floats
) -> Floats:
    """What each column does not exceed at a vertex: each column on the way to it adds the most that an arc from it can.

    A way goes along arcs and intervals, so that only the columns count that these join it with: times do not depend on
    how much memory there is.  It begins at zero, or at a column of ``ended``, at most at its upper bound.
    """
    arcs, columns = known.arcs, len(lower)
    part = _parts(arcs, constraints, columns)
    step, least = np.zeros(columns), np.zeros(columns)
    from_zero = np.zeros(columns)  # by part
    for before, after, most in ((arcs.before, arcs.after, arcs.high), (arcs.after, arcs.before, -arcs.low)):
        longest = np.where(np.isfinite(most), most, 0.0)
        np.maximum.at(step, before[before >= 0], longest[before >= 0])
        begins = (before < 0) & (after >= 0)
        np.maximum.at(from_zero, part[after[begins]], longest[begins])
    np.maximum.at(from_zero, part[known.summed], np.where(np.isfinite(known.total), known.total, 0.0))
    np.maximum.at(from_zero, part[ended], upper[ended])
    for constraint in constraints:
        column, most = meaning(constraint).steps(constraint, lower, upper)
        np.maximum.at(step, column, np.where(np.isfinite(most), most, 0.0))
    np.maximum.at(least, part, np.where(np.isfinite(lower), np.maximum(lower, 0.0), 0.0))
    out: Floats = (np.bincount(part, step, columns) + from_zero + least)[part]
    return out


def _parts(arcs: Arcs, constraints: Sequence[GlobalConstraint], columns: int) -> Integers:
    """A number for each column; those that arcs or intervals join have the same."""
    one, other = _joined_columns(arcs, constraints, columns)
    part = np.arange(columns)
    while True:
        before = part
        part = part.copy()
        np.minimum.at(part, part[one], before[other])
        np.minimum.at(part, part[other], before[one])
        part = part[part]
        if np.array_equal(part, before):
            return part


def _joined_columns(arcs: Arcs, constraints: Sequence[GlobalConstraint], columns: int) -> tuple[Integers, Integers]:
    """Pairs of columns joined by an arc, or by a constraint on their order: each of its columns with the first."""
    both = (arcs.before >= 0) & (arcs.after >= 0)
    first, second = [arcs.before[both]], [arcs.after[both]]
    anything = np.zeros(columns)
    for constraint in constraints:
        ordered, _ = meaning(constraint).steps(constraint, anything, anything)
        first.append(np.repeat(ordered[:1], len(ordered)))
        second.append(ordered)
    return np.concatenate(first), np.concatenate(second)


def _connected(arcs: Arcs, constraints: Sequence[GlobalConstraint], columns: int, spoilt: Integers) -> Booleans:
    """The columns that arcs and intervals tie to those of rows that are more than differences."""
    held = np.zeros(columns, dtype=bool)
    held[spoilt] = True
    if not len(spoilt):
        return held
    one, other = _joined_columns(arcs, constraints, columns)
    for _ in range(_ROUNDS):
        more = held[one] != held[other]
        if not more.any():
            break
        held[one[more]] = held[other[more]] = True
    return held


def reachable(arcs: Arcs, columns: int) -> list[int]:
    """For each column the set of those (as bits) that arcs of no negative weight lead to, itself among them."""
    both = np.flatnonzero(arcs.sure & (arcs.before >= 0) & (arcs.after >= 0) & (arcs.low >= 0.0))
    before, after = arcs.before[both], arcs.after[both]
    # An arc that another of the same columns repeats adds nothing.
    before, after = np.unique(np.stack((before, after)), axis=1) if len(both) else (before, after)
    start = np.searchsorted(before, np.arange(columns + 1)).tolist()
    targets = after.tolist()
    waiting = np.bincount(before, minlength=columns).tolist()
    into: list[list[int]] = [[] for _ in range(columns)]
    for source, target in zip(before.tolist(), targets, strict=True):
        into[target].append(source)
    out = [0] * columns
    ready = [c for c in range(columns) if not waiting[c]]
    while ready:  # from the last to the first; what lies on a circle keeps nothing but itself
        here = ready.pop()
        out[here] = 1 << here
        for target in targets[start[here] : start[here + 1]]:
            out[here] |= out[target]
        for source in into[here]:
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)
    return out


def entries_of(arcs: Arcs, which: Integers) -> tuple[Integers, Integers]:
    """The entries of these arcs, each with the position of its arc in ``which``."""
    counts = arcs.start[which + 1] - arcs.start[which]
    return np.repeat(np.arange(len(which)), counts), spread(arcs.start[which], counts)
