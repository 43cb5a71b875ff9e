"""Source: NoOverlap.  Target: intervals of fixed lengths for who takes those, else a pair of conditional rows each two.

One 0/1 column says which of two intervals comes first; it serves all groups in which two columns meet.  A pair that the
bounds or the arcs between the starts order already, or of which only one can be there, needs none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.arrays import Booleans, Integers
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.ir.affine import spread
from placedsl.ir.program import Implication, NoOverlap, Origin, RowBlock
from placedsl.ir.row_meaning import interval_lengths
from placedsl.lowering.context import LoweringContext, Note
from placedsl.lowering.difference_constraints import Differences, entries_of, reachable
from placedsl.lowering.exactly_one import OneOf

#: The most pairs that are written down.
MOST_PAIRS = 3_000_000


def settled(constraint: NoOverlap, context: LoweringContext, known: OneOf) -> NoOverlap:
    """The same with lengths as they are where the interval is there, and without intervals that have none.

    An interval that is always there and lasts as long as one of several alternatives says becomes these alternatives.
    """
    present, column = constraint.present[constraint.interval], constraint.column
    own = (present == column) & (present >= 0)
    constant = constraint.constant.copy()
    np.add.at(constant, constraint.interval[own], constraint.coefficient[own])
    absent = known.common(present, column) | ((context.lower[column] == 0.0) & (context.upper[column] == 0.0))
    kept = ~own & ~absent
    plain = replace(
        constraint, constant=constant, interval=constraint.interval[kept], column=column[kept],
        coefficient=constraint.coefficient[kept],
    )  # fmt: skip
    plain = _by_alternatives(plain, context, known)
    _, most = interval_lengths(plain, context.lower, context.upper)
    never = (plain.present >= 0) & (context.upper[plain.present] <= 0.0)
    return of(plain, np.flatnonzero((most > 0.0) & ~never))


def of(constraint: NoOverlap, which: Integers) -> NoOverlap:
    """Some of the intervals."""
    position = np.full(len(constraint.start), -1)
    position[which] = np.arange(len(which))
    kept = position[constraint.interval] >= 0
    return NoOverlap(
        constraint.origin.take(which), constraint.group[which], constraint.present[which], constraint.start[which],
        constraint.constant[which], position[constraint.interval[kept]], constraint.column[kept],
        constraint.coefficient[kept],
    )  # fmt: skip


def _by_alternatives(constraint: NoOverlap, context: LoweringContext, known: OneOf) -> NoOverlap:
    """Intervals that are always there, with a length that at most one 0/1 column gives, as one each such column."""
    count = len(constraint.start)
    terms = np.bincount(constraint.interval, minlength=count)
    first = np.full(count, -1)
    first[constraint.interval[::-1]] = constraint.column[::-1]
    same = first[constraint.interval]
    together = known.common(same, constraint.column) | (same == constraint.column)
    binary = context.integer[constraint.column] & (context.lower[constraint.column] >= 0.0)
    binary &= context.upper[constraint.column] <= 1.0
    fitting = np.bincount(constraint.interval, together & binary, minlength=count) == terms
    split = fitting & (constraint.present < 0) & (constraint.constant == 0.0) & (terms > 0)
    entries = np.flatnonzero(split[constraint.interval])
    if not len(entries):
        return constraint
    rest, owner = of(constraint, np.flatnonzero(~split)), constraint.interval[entries]
    origin = constraint.origin.take(np.concatenate((np.flatnonzero(~split), owner)))
    return NoOverlap(
        origin, np.concatenate((rest.group, constraint.group[owner])),
        np.concatenate((rest.present, constraint.column[entries])),
        np.concatenate((rest.start, constraint.start[owner])),
        np.concatenate((rest.constant, constraint.coefficient[entries])), rest.interval, rest.column, rest.coefficient,
    )  # fmt: skip


def apart(constraint: NoOverlap, fixed: bool) -> tuple[NoOverlap, NoOverlap]:
    """The groups that can be taken as they are, which are none or those with ``fixed`` lengths, and the others."""
    varying = np.unique(constraint.group[constraint.interval] if fixed else constraint.group)
    other = np.isin(constraint.group, varying)
    return of(constraint, np.flatnonzero(~other)), of(constraint, np.flatnonzero(other))


def as_implications(
    constraint: NoOverlap, context: LoweringContext, known: OneOf, arcs: Differences
) -> tuple[Implication, ...]:
    """``first => one ends before the other begins`` for each pair that nothing orders yet."""
    constraint = _that_last(constraint, context)
    one, other = _pairs(constraint, context, known)
    follows = _followers(constraint, context, known, arcs)
    bits = [1 << int(c) for c in constraint.start]
    ordered = np.array(
        [bool(follows[i] & bits[j] or follows[j] & bits[i]) for i, j in zip(one.tolist(), other.tolist(), strict=True)],
        dtype=bool,
    )
    one, other = one[~ordered], other[~ordered]
    # From the earlier column to the later, whatever the order of the intervals.
    turned = constraint.start[one] > constraint.start[other]
    one, other = np.where(turned, other, one), np.where(turned, one, other)
    key = constraint.start[one] * np.int64(len(context.lower)) + constraint.start[other]
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    name = _order(constraint.origin, one[first], other[first])
    order = context.add_columns(len(first), 0, 1, True, name)[back]
    made = tuple(
        _before(constraint, a, b, order, when) for a, b, when in ((one, other, True), (other, one, False)) if len(one)
    )
    note = Note(constraint.origin.name, "intervals to pairs in an order", len(one), span=constraint.origin.span)
    context.notes.append(note)
    return made


def _that_last(constraint: NoOverlap, context: LoweringContext) -> NoOverlap:
    """A further 0/1 column for each interval that may have no length: it is one where it has some."""
    least, most = interval_lengths(constraint, context.lower, context.upper)
    doubtful = np.flatnonzero(least <= 0.0)
    if not len(doubtful):
        return constraint
    if not np.isfinite(most[doubtful]).all():
        message = f"the lengths of the intervals of '{constraint.origin.name}' have no bounds"
        raise InputError([Diagnostic(message, constraint.origin.span, "bound the variables it uses")])
    some = of(constraint, doubtful)
    name = Origin(f"{some.origin.name}_lasts", some.origin.span, some.origin.indices, some.origin.labels)
    lasts = context.add_columns(len(doubtful), 0, 1, True, name)
    every, there = np.arange(len(doubtful)), np.flatnonzero(some.present >= 0)
    most = most[doubtful]
    limit = -some.constant
    limit[there] += most[there]
    # length <= most * lasts + most * (1 - present)
    context.blocks.append(
        RowBlock(
            some.origin, np.concatenate((some.interval, every, there)),
            np.concatenate((some.column, lasts, some.present[there])),
            np.concatenate((some.coefficient, -most, most[there])), np.full(len(doubtful), -np.inf), limit,
        )
    )  # fmt: skip
    present = constraint.present.copy()
    present[doubtful] = lasts
    return replace(constraint, present=present)


def _pairs(constraint: NoOverlap, context: LoweringContext, known: OneOf) -> tuple[Integers, Integers]:
    """The pairs within a group that may both be there, at times that bounds do not tell apart."""
    order = np.argsort(constraint.group, kind="stable")
    _, counts = np.unique(constraint.group, return_counts=True)
    total = int((counts * (counts - 1) // 2).sum())
    if total > MOST_PAIRS:
        message = f"'{constraint.origin.name}' has {total:,} pairs of intervals, more than {MOST_PAIRS:,}"
        raise InputError([Diagnostic(message, constraint.origin.span, "cp-sat takes them as they are")])
    end = np.repeat(np.cumsum(counts), counts)
    position = np.arange(len(order))
    one = np.repeat(position, end - position - 1)
    one, other = order[one], order[spread(position + 1, end - position - 1)]
    there = constraint.present
    kept = (constraint.start[one] != constraint.start[other]) & ~known.common(there[one], there[other])
    _, most = interval_lengths(constraint, context.lower, context.upper)
    begin, end_ = context.lower[constraint.start], context.upper[constraint.start] + most
    kept &= (end_[one] > begin[other]) & (end_[other] > begin[one])
    return one[kept], other[kept]


def _followers(constraint: NoOverlap, context: LoweringContext, known: OneOf, found: Differences) -> list[int]:
    """For each interval the columns (as bits) that are never before its end, where it is there."""
    arcs = found.arcs
    beyond = reachable(arcs, len(found.timed))
    leaving = np.flatnonzero(arcs.sure & (arcs.before >= 0) & (arcs.after >= 0))
    leaving = leaving[np.argsort(arcs.before[leaving], kind="stable")]
    start = np.searchsorted(arcs.before[leaving], np.arange(len(found.timed) + 1))
    counts = start[constraint.start + 1] - start[constraint.start]
    interval = np.repeat(np.arange(len(constraint.start)), counts)
    arc = leaving[spread(start[constraint.start], counts)]
    # The weight where the interval is there: its own column is one, those that exclude it are zero.
    row, entry = entries_of(arcs, arc)
    column, coefficient = arcs.column[entry], arcs.coefficient[entry]
    present = constraint.present[interval[row]]
    own = (present == column) & (present >= 0)
    gone = known.common(present, column)
    term = np.where(coefficient > 0, context.upper[column], context.lower[column]) * coefficient
    term = np.where(own, coefficient, np.where(gone, 0.0, term))
    weight = arcs.side[arc] - np.bincount(row, term, minlength=len(arc))
    _, most = interval_lengths(constraint, context.lower, context.upper)
    after_end = weight >= most[interval] - 1e-12 * np.abs(most[interval])
    out = [0] * len(constraint.start)
    for i, target in zip(interval[after_end].tolist(), arcs.after[arc[after_end]].tolist(), strict=True):
        out[i] |= beyond[target]
    return out


def _before(constraint: NoOverlap, one: Integers, other: Integers, order: Integers, when: bool) -> Implication:
    """Where both are there and the order says so, the first ends before the other begins."""
    pairs = len(one)
    every = np.arange(pairs)
    by_interval = np.argsort(constraint.interval, kind="stable")
    begins = np.searchsorted(constraint.interval[by_interval], np.arange(len(constraint.start) + 1))
    counts = begins[one + 1] - begins[one]
    entries = by_interval[spread(begins[one], counts)]
    origin = _pair_origin(constraint.origin, one, other)
    rows = RowBlock(
        origin, np.concatenate((every, every, np.repeat(every, counts))),
        np.concatenate((constraint.start[other], constraint.start[one], constraint.column[entries])),
        np.concatenate((np.ones(pairs), -np.ones(pairs), -constraint.coefficient[entries])),
        constraint.constant[one], np.full(pairs, np.inf),
    )  # fmt: skip
    literal_row, literal_column = [every], [order]
    value: list[Booleans] = [np.full(pairs, when)]
    for which in (one, other):
        there = np.flatnonzero(constraint.present[which] >= 0)
        literal_row.append(there)
        literal_column.append(constraint.present[which[there]])
        value.append(np.ones(len(there), dtype=bool))
    return Implication(origin, np.concatenate(literal_row), np.concatenate(literal_column), np.concatenate(value), rows)


def _pair_origin(origin: Origin, one: Integers, other: Integers) -> Origin:
    named = [(f"{k} {end}", k, v[ends]) for k, v in origin.indices.items() for end, ends in (("a", one), ("b", other))]
    labels = {name: origin.labels.get(k, ()) for name, k, _ in named}
    return Origin(origin.name, origin.span, {name: v for name, _, v in named}, labels)


def _order(origin: Origin, one: Integers, other: Integers) -> Origin:
    """The name of columns that say which of two intervals comes first."""
    return replace(_pair_origin(origin, one, other), name=f"{origin.name}_order")
