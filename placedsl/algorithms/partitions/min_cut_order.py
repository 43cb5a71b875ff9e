"""An order of the units along which little is cut: by minimum cuts, from halves of the graph to small parts of it.

The best cut of an order into stages is only as good as the sets of units that the order begins with.  Here these are
minimum cuts: a part of the order is divided by a set that cuts little and has about half of its work, found by a price
of work, and its halves are divided in turn.  Where no such set is between nothing and all of a part, its units follow
by what each adds to what is cut.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.partitions.bounds.boundaries import BoundaryFlows
from placedsl.algorithms.partitions.bounds.least_cut_kernel import CutQuestion, cheapest_set
from placedsl.algorithms.partitions.bounds.least_cuts import LeastCuts
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.arrays import Booleans, Integers

#: How far from the middle of a part's work, as a share of it, a set may be; and how near to it is near enough.
_FAR, _NEAR = 0.1, 0.02
#: Prices of work that are tried, within this on both sides of none.
_PRICES, _DEAREST = 8, 2.0
#: A part of more units than this that cannot be divided keeps the order that it has.
_MOST_ONE_BY_ONE = 400


def min_cut_order(pipeline: Pipeline) -> Integers | None:
    """The units in an order in which none comes before what comes before it; None where they have no order."""
    flows = BoundaryFlows.of(pipeline)
    if flows is None:
        return None
    cuts = LeastCuts(pipeline, flows.until[0], flows.beyond[0])
    out: list[Integers] = []
    inside = np.zeros(len(pipeline.work), dtype=bool)
    parts = [cuts.order]
    while parts:
        part = parts.pop()
        half = _half(cuts, part, inside) if len(part) > 1 else None
        if half is not None:
            parts += [part[~half], part[half]]
            continue
        out.append(_one_by_one(cuts, part, inside) if 1 < len(part) <= _MOST_ONE_BY_ONE else part)
        inside[part] = True
    return np.concatenate(out)


def _half(cuts: LeastCuts, part: Integers, inside: Booleans) -> Booleans | None:
    """Which units of a part come first; None where there is no set between none and all that cuts little."""
    whole = float(cuts.work[part].sum())
    middle, far = float(cuts.work[inside].sum()) + 0.5 * whole, _FAR * whole
    first, last = cuts.beyond[part] > cuts.all - (middle - far), cuts.until[part] > middle + far
    if (first & last).any():
        return None
    held = inside.copy()
    held[part[first]] = True
    beyond = ~inside
    beyond[part[~last]] = False
    network, scale, always = cuts.network(held, beyond, np.ones(len(cuts.pin), dtype=bool))
    free = cuts.order[~(held | beyond)[cuts.order]]
    begun = float(cuts.work[held].sum())
    question = CutQuestion(scale, always, begun, 0.0, cuts.all, np.inf)
    best, off, low, high = None, np.inf, -_DEAREST, _DEAREST
    for _ in range(_PRICES if len(free) else 1):
        price = 0.5 * (low + high)
        chosen = held.copy()
        if len(free):
            chosen[free[cheapest_set(network, question, price)]] = True
        works = float(cuts.work[chosen].sum())
        half = chosen[part]
        if 0 < half.sum() < len(part) and abs(works - middle) < off:
            best, off = half, abs(works - middle)
        if off < _NEAR * whole:
            break
        low, high = (price, high) if works > middle else (low, price)
    return best


def _one_by_one(cuts: LeastCuts, part: Integers, inside: Booleans) -> Integers:
    """The units of a part by what each adds to what is cut, those that it takes off first."""
    of_unit: dict[int, list[int]] = {u: [] for u in part.tolist()}
    left: dict[int, int] = {}
    begun: set[int] = set()
    pins = zip(
        np.concatenate((cuts.pin, cuts.hub[cuts.hub >= 0])).tolist(),
        np.concatenate((cuts.edge, np.flatnonzero(cuts.hub >= 0))).tolist(), strict=True,
    )  # fmt: skip
    for unit, edge in pins:
        if inside[unit]:
            begun.add(edge)
            continue
        left[edge] = left.get(edge, 0) + 1
        if unit in of_unit:
            of_unit[unit].append(edge)
    waiting = dict.fromkeys(of_unit, 0)
    later: dict[int, list[int]] = {u: [] for u in of_unit}
    for u, v in zip(cuts.before.tolist(), cuts.after.tolist(), strict=True):
        if u in of_unit and v in of_unit:
            waiting[v] += 1
            later[u].append(v)
    ready, out = [u for u in of_unit if not waiting[u]], []
    while ready:

        def adds(unit: int) -> float:
            return sum(
                (0.0 if edge in begun else cuts.cost[edge]) - (cuts.cost[edge] if left[edge] == 1 else 0.0)
                for edge in of_unit[unit]
            )

        unit = min(ready, key=adds)
        ready.remove(unit)
        out.append(unit)
        for edge in of_unit[unit]:
            begun.add(edge)
            left[edge] -= 1
        for v in later[unit]:
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(v)
    return np.array(out, dtype=np.int64)
