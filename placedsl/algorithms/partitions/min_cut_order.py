"""An order of the units along which little is cut: by minimum cuts, from halves of the graph to small parts of it.

The best cut of an order into stages is only as good as the sets of units that the order begins with.  Here these are
minimum cuts: a part of the order is divided by a set that cuts little and has about half of its work, found by a price
of work, and its halves are divided in turn.  Where no such set is between nothing and all of a part, its units follow
by what each adds to what is cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.partitions.bounds.boundaries import BoundaryFlows
from placedsl.algorithms.partitions.bounds.least_cut_kernel import CutQuestion, cheapest_set
from placedsl.algorithms.partitions.bounds.least_cuts import LeastCuts
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.arrays import Booleans, Integers
from placedsl.graph.order import csr

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
    out: list[int] = []
    inside, begun = np.zeros(len(pipeline.work), dtype=bool), _Begun.nothing(cuts)
    parts = [cuts.order]
    while parts:
        part = parts.pop()
        half = _half(cuts, part, inside) if len(part) > 1 else None
        if half is not None:
            parts += [part[~half], part[half]]
            continue
        if 1 < len(part) <= _MOST_ONE_BY_ONE:
            out += begun.ordered(part.tolist())
        else:
            for unit in part.tolist():
                begun.take(unit)
            out += part.tolist()
        inside[part] = True
    return np.array(out, dtype=np.int64)


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


@dataclass(frozen=True, eq=False)
class _Begun:
    """The tensors that the units of an order so far touch, and those that they leave; grows with the order.

    ``cost``                    e seconds that each tensor takes where it is cut
    ``start``, ``touched``      the tensors of unit u are ``touched[start[u]:start[u + 1]]``
    ``later_start``, ``later``  in the same way the units that come after unit u
    ``left``                    e numbers of units that are still to come
    ``begun``                   e flags: some unit is in the order
    """

    cost: list[float]
    start: list[int]
    touched: list[int]
    later_start: list[int]
    later: list[int]
    left: list[int]
    begun: list[bool]

    @classmethod
    def nothing(cls, cuts: LeastCuts) -> _Begun:
        """Before the first unit.  Tensors that say nothing of stages do not count."""
        counts = np.flatnonzero(cuts.hub >= 0)
        units = len(cuts.work)
        pin, edge = np.concatenate((cuts.pin, cuts.hub[counts])), np.concatenate((cuts.edge, counts))
        start, touched = csr(pin, edge, units)
        later_start, later = csr(cuts.before, cuts.after, units)
        left = np.bincount(edge, minlength=len(cuts.cost))
        return cls(
            cuts.cost.tolist(), start.tolist(), touched.tolist(), later_start.tolist(), later.tolist(), left.tolist(),
            [False] * len(left),
        )  # fmt: skip

    def edges(self, unit: int) -> list[int]:
        """The tensors of a unit."""
        return self.touched[self.start[unit] : self.start[unit + 1]]

    def adds(self, unit: int) -> float:
        """What a unit adds to what is cut, less what it takes off."""
        return sum(
            (0.0 if self.begun[edge] else self.cost[edge]) - (self.cost[edge] if self.left[edge] == 1 else 0.0)
            for edge in self.edges(unit)
        )

    def take(self, unit: int) -> None:
        """The next unit of the order."""
        for edge in self.edges(unit):
            self.begun[edge] = True
            self.left[edge] -= 1

    def ordered(self, part: list[int]) -> list[int]:
        """The units of a part by what each adds, those that take off most first; all of them are taken."""
        waiting = dict.fromkeys(part, 0)
        after = {
            unit: [v for v in self.later[self.later_start[unit] : self.later_start[unit + 1]] if v in waiting]
            for unit in part
        }
        for later in after.values():
            for v in later:
                waiting[v] += 1
        ready, out = [u for u in part if not waiting[u]], []
        while ready:
            unit = min(ready, key=self.adds)
            ready.remove(unit)
            out.append(unit)
            self.take(unit)
            for v in after[unit]:
                waiting[v] -= 1
                if not waiting[v]:
                    ready.append(v)
        return out
