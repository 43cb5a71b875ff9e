"""The bound by where the boundaries of stages can lie: what is cut at each of them depends on the work before it.

Let all stages of a pipeline over k like devices load at most T, I[b] be the units of the first b of them, w[b] their
work, and W all work.

1.  Of each boundary a range of w[b] is known (``boundaries.py``): the first b stages work at most b T less what they
    pay for tensors, and the others no more than (k - b) T less what they pay.
2.  A tensor whose maker is in I[b-1] and one of whose readers is outside I[b] is paid less than twice by stage b.  It
    can be so only if the maker and all before it work no more than w[b-1] may be, and the reader and all after it no
    more than W - w[b] may be.  Let such readers not count at the boundaries b - 1 and b, for each stage b, and let
    c[b] be the cost of the tensors of which the maker is in I[b] and a reader that counts is not.  Stage b pays for
    those of b - 1, as it has that reader, and for those of b, as it has the maker; these are others.  So

        w[b] - w[b-1] + c[b-1] + c[b]  <=  T

    The same holds of units that all come before a last one, as with gradients.

3.  Let c[b] be at least f on some part of its range, by branch and bound over minimum cuts (``least_cuts.py``).  Then
    w[b] + c[b] <= T + (w[b-1] - c[b-1]) gives, from the first boundary to the last, how large w[b] - c[b] can be at
    most, and from the last to the first, how small w[b] + c[b] can be at least.  Parts of a range for which that
    leaves nothing are no part of it, and c[b] is of interest only up to where it leaves nothing.
4.  Smaller ranges let more tensors count, and have smaller parts, until a boundary has none left, which refutes T, or
    nothing changes.

It holds for contiguous pipelines on accelerators that are all alike; memory and other rules only add.  It is for long
graphs of wide parts, as networks of cells are: such a part has too many ideals for dynamic programming, and few cheap
cuts for each amount of work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.boundaries import BoundaryFlows, Paid
from placedsl.algorithms.partitions.bounds.least_cuts import LeastCuts
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.arrays import Booleans, Floats
from placedsl.tolerances import EVALUATION, PROOF

#: What it is, in words.
WORDS = "where the boundaries of stages can lie (minimum cuts by work)"
#: From quick to strong: how much of a stage a part of a range is at most, nodes of the tree for each; attempts without
#: success before the next of these.
_EFFORTS, _MISSES = ((0.02, 24), (0.01, 96), (0.005, 384)), 2
#: Parts of a range at least and at most.
_FEWEST, _MOST = 16, 160
#: The share of the bound by which the first attempt is above it, how near it comes to a value that is not refuted, and
#: where the value itself is tried at once.
_FIRST_STEP, _NEAR, _CLOSE = 0.01, 1e-4, 1e-3
#: A round that leaves out less of each range than this share is followed by none; so many there are at most; and ranges
#: of less than this share of a stage are points.
_LEAST_GAIN, _ROUNDS, _POINT = 0.1, 40, 1e-5


def position_bounds(
    pipeline: Pipeline, best: float, upper: Callable[[], float], over: Callable[[], bool]
) -> Iterator[Bound]:
    """Increasing bounds above ``best``, up to the value of ``upper`` (inf: none is known); none without an order."""
    flows = BoundaryFlows.of(pipeline)
    if flows is None:
        return
    best, whole = max(best, pipeline.simple), flows.all + float(pipeline.edges.cost.sum())
    positions = _Positions(pipeline, flows)
    for part, nodes in _EFFORTS:
        high, misses, step = whole, 0, _FIRST_STEP * best
        while misses < _MISSES:
            high = min(high, upper() * (1.0 - PROOF))
            if not high - best > _NEAR * best or over():
                break
            close = high - best < _CLOSE * best
            largest = high if close else best + min(step, 0.5 * (high - best))
            if positions.refuted(largest, part, nodes, over):
                best, step = largest, 2.0 * step
                # Trees of cuts are not kept; what crosses the boundaries shows a part of it.
                yield Bound(best, WORDS, {"kind": "boundaries"})
            else:
                high, misses = best + 0.5 * (largest - best) if close else largest, misses + 1
        if over() or best >= upper() * (1.0 - PROOF):
            return


@dataclass
class _Ranges:
    """The ranges of the work before boundaries 0 … k, and of the inner ones parts (edges), with what is cut there."""

    low: Floats
    high: Floats
    edges: list[Floats] = field(default_factory=list)
    cut: list[Floats] = field(default_factory=list)
    live: list[Booleans] = field(default_factory=list)


class _Positions:
    """Where the boundaries of a pipeline's stages can lie."""

    def __init__(self, pipeline: Pipeline, flows: BoundaryFlows) -> None:
        self.devices, self.flows, self.all = pipeline.devices, flows, flows.all
        self.cuts = LeastCuts(pipeline, flows.until[0], flows.beyond[0])
        self.slack = self.all * EVALUATION

    def refuted(self, largest: float, part: float, nodes: int, over: Callable[[], bool]) -> bool:
        """Whether it is shown that some stage loads more than ``largest``, by parts of so much of it at most."""
        k = self.devices
        paid = self.flows.within(largest, Paid.nothing(k), over)
        if paid is None:
            return True
        stage = np.arange(k + 1)
        high = np.minimum(stage * largest - paid.first, self.all)
        low = np.maximum(self.all - ((k - stage) * largest - paid.last), 0.0)
        high[0], low[k] = 0.0, self.all
        ranges, searched = _Ranges(low, high), False
        for _ in range(_ROUNDS):
            if over():
                return False
            width = ranges.high - ranges.low
            parts = np.clip(np.ceil(width / (part * largest)), _FEWEST, _MOST).astype(int)
            ranges.edges = [np.linspace(ranges.low[b], ranges.high[b], parts[b] + 1) for b in range(1, k)]
            ranges.cut = [np.zeros(parts[b]) for b in range(1, k)]
            if not self._narrowed(ranges, largest, nodes if searched else 1, over):
                return True
            for b in range(1, k):
                edges = ranges.edges[b - 1]
                left = np.flatnonzero(ranges.live[b - 1])
                ranges.low[b], ranges.high[b] = edges[left[0]], edges[left[-1] + 1]
            if (ranges.high - ranges.low > (1.0 - _LEAST_GAIN) * width)[width > _POINT * largest].all():
                if searched:
                    return False
                searched = True
        return False

    def _narrowed(self, ranges: _Ranges, largest: float, nodes: int, over: Callable[[], bool]) -> bool:
        """Find out what is cut on parts of the ranges, and which are left; whether each boundary has some."""
        k = self.devices
        if (ranges.low > ranges.high + self.slack).any():
            return False
        twice = np.zeros((k + 2, len(self.cuts.pin)), dtype=bool)
        for b in range(1, k + 1):
            twice[b] = (self.cuts.first_until <= ranges.high[b - 1] + self.slack) & (
                self.cuts.last_beyond <= self.all - ranges.low[b] + self.slack
            )
        last = self._last(ranges, largest)
        reach = 0.0
        for b in range(1, k):
            edges, cut = ranges.edges[b - 1], ranges.cut[b - 1]
            # What is cut leaves nothing where it is more.
            most = np.minimum(largest + reach - edges[:-1], edges[1:] - (last[b] - largest)) + self.slack
            kept = ~(twice[b] | twice[b + 1])
            for i in np.flatnonzero(most >= 0.0).tolist():
                if over():
                    return self._left(ranges, largest)
                cut[i] = self.cuts.least(edges[i], edges[i + 1], kept, float(most[i]), nodes)
            reach = float(self._reach(edges, cut, largest + reach)[0])
            if not np.isfinite(reach):
                return False
        if self.all > largest + reach + self.slack:
            return False
        return self._left(ranges, largest)

    def _reach(self, edges: Floats, cut: Floats, most: float) -> tuple[float, Booleans]:
        """How large work less what is cut can be, where together they are no more than ``most``; and the parts with
        such."""
        live = edges[:-1] + cut <= most + self.slack
        return float(np.where(live, np.minimum(edges[1:], most - cut) - cut, -np.inf).max(initial=-np.inf)), live

    def _last(self, ranges: _Ranges, largest: float) -> Floats:
        """How small work and what is cut can be together at boundary b + 1, by b; inf: there are no parts left."""
        least = np.full(self.devices, self.all)
        for b in range(self.devices - 1, 0, -1):
            edges, cut = ranges.edges[b - 1], ranges.cut[b - 1]
            live = edges[1:] - cut >= least[b] - largest - self.slack
            least[b - 1] = np.where(live, np.maximum(edges[:-1], least[b] - largest + cut) + cut, np.inf).min()
        return least

    def _left(self, ranges: _Ranges, largest: float) -> bool:
        """Note which parts are left; whether each boundary has some."""
        last, reach = self._last(ranges, largest), 0.0
        ranges.live = []
        for b in range(1, self.devices):
            edges, cut = ranges.edges[b - 1], ranges.cut[b - 1]
            reach, live = self._reach(edges, cut, largest + reach)
            live &= edges[1:] - cut >= last[b] - largest - self.slack
            if not live.any():
                return False
            ranges.live.append(live)
        return True
