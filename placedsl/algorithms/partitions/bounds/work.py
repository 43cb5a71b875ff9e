"""The work bound: units divided among the device classes in fractions, within their memory; transfers are free.

For prices a[c] >= 0 on the time and b[c] >= 0 on the memory of a device of class c with sum(count[c] * a[c]) = 1, every
placement's largest load is at least

    sum over units v of min over classes c of (a[c] * work[c][v] + b[c] * memory[c][v])
    -  sum over c of count[c] * b[c]

by weak duality.  A linear program proposes the prices; the bound is the value of this formula, so an error of the
solver weakens the bound and cannot make it wrong.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.relaxation import Relaxation
from placedsl.arrays import Floats
from placedsl.ir.linear_rows import LinearRows
from placedsl.tolerances import BOUND_ROUNDING

#: What it is, in words.
WORDS = "the best division of the work in fractions"


def work_bound(relaxed: Relaxation) -> Bound:
    """The bound (inf: some unit is supported by no device), with the prices as its certificate."""
    if not relaxed.units:
        return Bound(0.0, WORDS, {"kind": "simple"})
    work = np.array([c.work for c in relaxed.classes])
    longest = float(work.min(axis=0).max())
    if not np.isfinite(longest):
        return Bound(np.inf, WORDS)
    time, memory = _proposed_prices(relaxed, work)
    value = _dual_value(relaxed, work, time, memory)
    if longest >= value:
        return Bound(longest, WORDS, {"kind": "simple"})
    return Bound(value, WORDS, {"kind": "work", "time": time.tolist(), "memory": memory.tolist()})


def _proposed_prices(relaxed: Relaxation, work: Floats) -> tuple[Floats, Floats]:
    """Prices of time and memory for each class: the duals of the fractional assignment."""
    classes, units = work.shape
    where, which = np.nonzero(np.isfinite(work))
    column = np.arange(len(where))
    memory = np.array([c.memory for c in relaxed.classes])
    count = np.array([c.count for c in relaxed.classes], dtype=float)
    last = np.full(classes, len(where))
    scale = float(work[np.isfinite(work)].mean()) or 1.0
    rows = LinearRows()
    rows.at_most(np.concatenate((where, np.arange(classes))), np.concatenate((column, last)),
                 np.concatenate((work[where, which] / scale, -count)), np.zeros(classes))  # fmt: skip
    rows.at_most(where, column, memory[where, which], count)
    rows.equal(which, column, np.ones(len(where)), np.ones(units))
    cost = np.zeros(len(where) + 1)
    cost[-1] = 1.0
    found = rows.minimise(cost)
    if found.status != 0:
        even = np.full(classes, 1.0 / count.sum())
        return even, np.zeros(classes)
    dual = np.maximum(-np.asarray(found.ineqlin.marginals), 0.0)
    return dual[:classes], dual[classes:] * scale


def _dual_value(relaxed: Relaxation, work: Floats, time_price: Floats, memory_price: Floats) -> float:
    """The value of the formula at the given prices."""
    count = np.array([c.count for c in relaxed.classes], dtype=float)
    total = float(count @ time_price)
    if total <= 0:
        return 0.0
    memory = np.array([c.memory for c in relaxed.classes])
    charged = memory_price[:, None] * memory / total
    # inf: not on this class, whatever the price.
    timed = np.where(np.isfinite(work), (time_price / total)[:, None] * np.where(np.isfinite(work), work, 0.0), np.inf)
    paid = float((timed + charged).min(axis=0).sum())
    memory_value = float(count @ memory_price) / total
    return paid - memory_value - BOUND_ROUNDING * (paid + memory_value)
