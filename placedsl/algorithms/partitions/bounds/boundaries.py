"""The bound by the boundaries of stages: what has to cross each of them, by minimum cuts.

Let all stages of a pipeline over k like devices load at most T, and let I[b] be the units of the first b of them.  All
that comes before a unit of I[b] is in I[b].  Let W be all work.

1.  work(I[b]) <= b T, and work(I[b]) >= W - (k - b) T: the first b stages work at most b T, the others (k - b) T.
    So a unit is outside I[b] if it and all before it work more than b T, and inside if it and all after it work
    more than (k - b) T.
2.  A tensor with units on both sides of a boundary is cut.  Give each tensor e a share g[e, b] of twice its cost at
    each boundary b, such that these add up to no more than twice the cost.  Let F[b] be the largest flow from the units
    inside to those outside through tensors with these shares; the next boundary has what a flow leaves.  Wherever
    boundary b lies, tensors with shares of F[b] together are cut there.  A tensor that is cut is paid by two stages at
    least, so that

        k T  >=  all loads  >=  W + sum over b of F[b]

    and T is refuted where that does not hold.
3.  The first b stages pay each tensor once that some boundary up to b cuts, and twice if none of its units can be
    beyond b; as shares are of twice the cost, F[1] ... F[b] count half or whole.  That leaves them less work than b T.
    The same holds for the stages after b.  With such limits in place of those of 1. more is inside or outside, and the
    flows are larger.
4.  Units may be left out of I[b] though most of what comes before and beside them is inside, at the cost of tensors.
    Let work be moved along tensors, no more than c times its cost along each.  Then  work(I) + c cut(I)  is at least
    what all units of I have after that, whatever the set I.  No more than (k T - W - what is paid elsewhere) / 2 is cut
    at one boundary, so that units are outside or inside as in 1., by the work that they and all before or after them
    have.

It is for long graphs, whose stages follow one another, however many operators there are; it says little of wide
ones.  It holds for contiguous pipelines on accelerators that are all alike; memory and other rules only add.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.closure_kernel import work_before
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, topological
from placedsl.tolerances import BOUND_ROUNDING, EVALUATION, PROOF

#: What it is, in words.
WORDS = "what crosses the boundaries of stages (minimum cuts)"
#: More units than this are not looked at: all that comes before each is followed.
MOST_UNITS = 300_000
#: The most rounds of 3., and the least that the flows of one have to add to be followed by another.
_ROUNDS, _LEAST_GAIN = 8, 0.01
#: The same where a certificate is made, and by how much larger the loads are, relatively, from which it begins.
_PATIENT_ROUNDS, _PATIENT_GAIN = 12, 0.001
_LARGER = (0.0, 0.001, 0.01, 0.1, 0.5)
#: How many times its cost is moved along a tensor; and how much of a stage's work is much.
_TIMES, _MUCH = (2.0, 4.0), 0.1
#: The share of the bound by which the first attempt is above it, attempts without success at which it ends, and how
#: near it comes to a value that is not refuted, relatively.
_FIRST_STEP, _MISSES, _NEAR = 0.001, 4, 1e-4
#: The whole number that all shares of a boundary are together.
_WHOLE = 2**30


def boundary_bounds(
    pipeline: Pipeline, best: float, upper: Callable[[], float], over: Callable[[], bool], seconds: float = np.inf
) -> Iterator[Bound]:
    """Increasing bounds above ``best``, in about so many seconds; none without an order, or with too many units."""
    stages = BoundaryFlows.of(pipeline)
    if stages is None:
        return
    deadline = time.monotonic() + seconds

    def stop() -> bool:
        return over() or time.monotonic() > deadline

    whole = stages.all + float(pipeline.edges.cost.sum())
    shed = Paid.nothing(pipeline.devices)
    high, step, misses = np.inf, _FIRST_STEP * best if best > 0.0 else np.inf, 0
    while misses < _MISSES:
        high = min(high, upper() * (1.0 - PROOF), whole)
        if not high - best > _NEAR * best or stop():
            return
        largest = best + min(step, 0.5 * (high - best))
        found = stages.within(largest, shed, stop)
        if found is None:
            best, misses = largest, 0
            yield Bound(best, WORDS, {"kind": "boundaries"})
            step *= 2.0
        else:
            # What holds within some load, holds within all that are smaller.
            high, shed, misses = largest, found, misses + 1


@dataclass(frozen=True, eq=False)
class Along:
    """A flow along tensors, in whole numbers of one over ``scale`` seconds.

    ``tensor``, ``unit``, ``amount``  so much leaves a unit into a tensor (less than 0: enters it from there)
    ``later``, ``earlier``, ``back``  so much leaves a unit to one that comes before it
    ``boundary``                      that it is a flow across (0: none);  ``times``: its cost that it may take of each
    """

    scale: float
    tensor: Integers
    unit: Integers
    amount: Integers
    later: Integers
    earlier: Integers
    back: Integers
    boundary: int = 0
    times: float = 0.0


@dataclass(frozen=True, eq=False)
class Flows:
    """What shows that no stages all load so much or less: work moved towards the begin of what comes before much work,
    and of what comes after much, and rounds of flows across boundaries."""

    first: list[Along]
    last: list[Along]
    rounds: list[list[Along]]


def flows_at(pipeline: Pipeline, largest: float, over: Callable[[], bool]) -> Flows | None:
    """What shows that no stages all load so much or less; None where nothing does, or it is over."""
    stages = BoundaryFlows.of(pipeline, record=True)
    if stages is None:
        return None
    rounds: list[list[Along]] = []
    for begin in range(len(_LARGER)):
        # What is known of larger loads holds for this one, and other flows are found there.
        shed: Paid | None = Paid.nothing(pipeline.devices)
        rounds.clear()
        for more in _LARGER[begin::-1]:
            if shed is not None:
                shed = stages.within(largest * (1.0 + more), shed, over, patient=True)
                rounds += stages.rounds
        if over():
            return None
        if shed is None:
            return Flows(stages.moved_first, stages.moved_last, rounds)
    return None


@dataclass(frozen=True, eq=False)
class Paid:
    """What stages pay for tensors at least; k + 1 seconds each, by boundaries b.

    ``first``, ``last``              the first b stages, and those after them
    ``whole_first``, ``whole_last``  for tensors that b does not cut
    ``elsewhere``                    all stages, for tensors that b does not cut
    """

    first: Floats
    last: Floats
    whole_first: Floats
    whole_last: Floats
    elsewhere: Floats

    @classmethod
    def nothing(cls, devices: int) -> Paid:
        """Nothing is known."""
        return cls(*(np.zeros(devices + 1) for _ in range(5)))

    def more(self, other: Paid) -> Paid:
        """What both say."""
        names = ("first", "last", "whole_first", "whole_last", "elsewhere")
        return Paid(*(np.maximum(getattr(self, name), getattr(other, name)) for name in names))


class BoundaryFlows:
    """What is known of the boundaries of a pipeline's stages; ``all`` work (s), and ``until`` and ``beyond``: that of
    each unit and all before or after it, at least, as it is and as it is moved (see 4.)."""

    @classmethod
    def of(cls, pipeline: Pipeline, record: bool = False) -> BoundaryFlows | None:
        """That of a pipeline; None where it has no order, no work, or more units than are looked at."""
        fits = pipeline.devices > 1 and 0 < len(pipeline.work) <= MOST_UNITS
        return cls(pipeline, record) if fits and len(pipeline.before) and pipeline.work.any() else None

    def __init__(self, pipeline: Pipeline, record: bool) -> None:
        self.record = record
        self.pipeline, self.all = pipeline, float(pipeline.work.sum())
        units, work = len(pipeline.work), pipeline.work
        before, after = pipeline.before, pipeline.after
        order = topological(units, before, after)
        assert order is not None, "units of a pipeline have an order"
        lengths = np.array([len(own) for own in pipeline.edges.pins], dtype=np.int64)
        self.pin = np.array([u for own in pipeline.edges.pins for u in own], dtype=np.int64)
        self.edge = np.repeat(np.arange(len(lengths)), lengths)
        self.first = np.cumsum(lengths) - lengths
        earlier, later, back = csr(after, before, units), csr(before, after, units), order[::-1].copy()
        until = work_before(order, *earlier, work[None])
        beyond = work_before(back, *later, work[None])
        # What is before much work takes up the work of what is not, which counts at the end of the pipeline.
        much = self.all / pipeline.devices * _MUCH
        #: The flows by which work is moved, and the rounds of flows across boundaries that were last asked for.
        self.moved_first: list[Along] = []
        self.moved_last: list[Along] = []
        self.rounds: list[list[Along]] = []
        first = [self._moved(beyond[0] > much, times, self.moved_first) for times in _TIMES]
        last = [self._moved(until[0] > much, times, self.moved_last) for times in _TIMES]
        #: The work of a unit and all before it, and of it and all after it, as it is and as it is moved: less than that
        #: by what sums round.
        self.until = np.vstack((until, work_before(order, *earlier, np.array(first)))) * (1.0 - EVALUATION)
        self.beyond = np.vstack((beyond, work_before(back, *later, np.array(last)))) * (1.0 - EVALUATION)

    def _moved(self, takes: Booleans, times: float, moves: list[Along]) -> Floats:
        """The work of each unit once as much as possible is moved to those that take it, along tensors."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        work, cost = self.pipeline.work, self.pipeline.edges.cost
        units, count = len(work), len(cost)
        scale = _power(_WHOLE / max(self.all, 1e-300))
        source, tensor = units, units + 2 + np.arange(count)
        into = units + 2 + self.edge
        room = np.floor(np.minimum(times * cost * scale, _WHOLE) * (1.0 - BOUND_ROUNDING)).astype(np.int64)
        held = np.floor(work * scale * (1.0 - BOUND_ROUNDING)).astype(np.int64)
        gives, gets = np.flatnonzero(~takes), np.flatnonzero(takes)
        large = np.full(len(into), _WHOLE)
        tail = np.concatenate((np.full(len(gives), source), self.pin, tensor, into + count, gets))
        head = np.concatenate((gives, into, tensor + count, self.pin, np.full(len(gets), source + 1)))
        amount = np.concatenate((held[gives], large, room, large, np.full(len(gets), _WHOLE)))
        size = units + 2 + 2 * count
        graph: Any = csr_array((amount.astype(np.int32), (tail, head)), shape=(size, size))
        flow = maximum_flow(graph, source, source + 1).flow.tocoo()
        moved = work.astype(float)
        given = (flow.data > 0) & (flow.row == source)
        taken = (flow.data > 0) & (flow.col == source + 1)
        np.subtract.at(moved, flow.col[given], flow.data[given] / scale)
        np.add.at(moved, flow.row[taken], flow.data[taken] / scale)
        name = np.arange(units + 2)
        moves.append(_along(flow, name, np.arange(count), [], scale, 0, times))
        held_now: Floats = np.maximum(moved, 0.0)
        return held_now

    def within(
        self, largest: float, shed: Paid, stop: Callable[[], bool], patient: bool = False
    ) -> Paid | None:  # fmt: skip
        """What stages pay for tensors if none loads more than ``largest``; None: there are no such stages.

        ``patient``: with more rounds, in which boundaries come first to last and last to first in turn.
        """
        devices = self.pipeline.devices
        stage = np.arange(devices + 1)
        total, misses = -np.inf, 0
        self.rounds = []
        for number in range(_PATIENT_ROUNDS if patient else _ROUNDS):
            # Boundary b has at most so much work before it, and after it.
            room = stage * largest - shed.first
            left = (devices - stage) * largest - shed.last
            if (room + left < self.all * (1.0 - EVALUATION)).any():
                return None
            before, after = self._sides(largest, room, left, shed)
            if (after >= before).any():
                return None
            boundaries = range(1, devices)[:: -1 if patient and number % 2 else 1]
            most = (devices * largest / (1.0 - EVALUATION) - self.all) / (1.0 - BOUND_ROUNDING)
            flows, shed = self._crossing(boundaries, before, after, shed, stop, most)
            if stop():
                return shed
            crossing = float(flows.sum()) * (1.0 - BOUND_ROUNDING)
            if devices * largest < (self.all + crossing) * (1.0 - EVALUATION):
                return None
            misses += crossing <= total * (1.0 + (_PATIENT_GAIN if patient else _LEAST_GAIN))
            if misses > patient:
                return shed
            total = max(total, crossing)
        return shed

    def _sides(self, largest: float, room: Floats, left: Floats, shed: Paid) -> tuple[Integers, Integers]:
        """The first boundary that each unit is before in any case, and the last one that it is after."""
        devices = self.pipeline.devices
        stage = np.arange(devices + 1)
        cut = np.maximum(0.0, devices * largest - self.all - shed.elsewhere) / 2.0
        before, after = np.full(len(self.pipeline.work), devices), np.zeros(len(self.pipeline.work), dtype=np.int64)
        for row, times in enumerate((0.0, *_TIMES)):
            most, rest = room, left
            if times:
                most = stage * largest - shed.whole_first + (times - 1.0) * cut
                rest = (devices - stage) * largest - shed.whole_last + (times - 1.0) * cut
                most[0], rest[-1] = 0.0, 0.0
            least = np.minimum.accumulate(most[::-1])[::-1]
            after = np.maximum(after, np.searchsorted(least, self.until[row], side="left") - 1)
            least = np.minimum.accumulate(rest)[::-1]
            before = np.minimum(before, devices + 1 - np.searchsorted(least, self.beyond[row], side="left"))
        return before, after

    def _crossing(
        self, boundaries: Iterable[int], before: Integers, after: Integers, shed: Paid, stop: Callable[[], bool],
        most: float,
    ) -> tuple[Floats, Paid]:  # fmt: skip
        """What crosses each of the boundaries (k + 1 seconds, 0 at both ends), and what that makes stages pay.

        ``before``, ``after``: the first boundary that each unit is before, and the last one that it is after.  No more
        boundaries are looked at once more than ``most`` crosses those that were: there are no such stages then.
        """
        devices, cost = self.pipeline.devices, self.pipeline.edges.cost
        flows = np.zeros(devices + 1)
        self.rounds.append([])
        if not len(cost):
            return flows, shed
        lowest = np.minimum.reduceat(after[self.pin], self.first)
        highest = np.maximum.reduceat(before[self.pin], self.first)
        share = 2.0 * cost
        # Tensors of a boundary have all units in the first ``ends`` stages, and none in the first ``begins``.
        ends, begins = np.zeros(devices + 1, dtype=np.int64), np.full(devices + 1, devices)
        for b in boundaries:
            asked = np.flatnonzero((lowest < b) & (b < highest))
            asked = asked[share[asked] > 0.0]
            if not len(asked) or stop():
                continue
            flows[b], used = self._flow(asked, share[asked], before <= b, after >= b, b)
            if flows.sum() > most * (1.0 + BOUND_ROUNDING):
                return flows, shed
            share[asked] = np.maximum(0.0, share[asked] - used)
            ends[b], begins[b] = highest[asked].max(), lowest[asked].min()
        at, found = np.arange(devices + 1), flows * (1.0 - BOUND_ROUNDING)
        ended, begun = ends[None] <= at[:, None], begins[None] >= at[:, None]
        half = np.where(at[None] <= at[:, None], np.where(ended, 1.0, 0.5), 0.0)
        other = np.where(at[None] >= at[:, None], np.where(begun, 1.0, 0.5), 0.0)
        now = Paid(half @ found, other @ found, ended @ found, begun @ found, (ended | begun) @ found)
        return flows, shed.more(now)

    def _flow(
        self, asked: Integers, share: Floats, inside: Booleans, outside: Booleans, boundary: int
    ) -> tuple[float, Floats]:  # fmt: skip
        """The largest flow from the units inside to those outside through tensors with such shares, and what it takes
        of each."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        free = np.flatnonzero(~inside & ~outside)
        number = np.where(inside, len(free), len(free) + 1)
        number[free] = np.arange(len(free))
        count, source = len(asked), len(free)
        rank = np.full(len(self.first), -1, dtype=np.int64)
        rank[asked] = np.arange(count)
        held = rank[self.edge] >= 0
        unit, into = number[self.pin[held]], source + 2 + rank[self.edge[held]]
        # A unit that is before the boundary takes all that comes before it along.
        is_free = number < source
        pairs = is_free[self.pipeline.before] & is_free[self.pipeline.after]
        earlier, later = number[self.pipeline.before[pairs]], number[self.pipeline.after[pairs]]
        tensor = source + 2 + np.arange(count)
        scale = _power(_WHOLE / max(float(share.sum()), 1e-300))
        room = np.floor(share * scale * (1.0 - BOUND_ROUNDING)).astype(np.int64)
        tail = np.concatenate((unit, tensor, into + count, later))
        head = np.concatenate((into, tensor + count, unit, earlier))
        amount = np.concatenate((np.full(len(unit), _WHOLE), room, np.full(len(unit) + len(later), _WHOLE)))
        size = source + 2 + 2 * count
        graph: Any = csr_array((amount, (tail, head)), shape=(size, size))
        graph.data = np.minimum(graph.data, _WHOLE).astype(np.int32)
        found = maximum_flow(graph, source, source + 1)
        used = np.asarray(found.flow[tensor, tensor + count]).ravel() / scale
        if not self.record:
            return float(found.flow_value) / scale, used * (1.0 + BOUND_ROUNDING)
        # Units inside are one vertex, and so are those outside: what flows is said of one that touches the tensor.
        some = np.full(source + 2, -1, dtype=np.int64)
        some[:source] = free
        ends = [np.full(count, -1, dtype=np.int64) for _ in range(2)]
        for k, own in enumerate(ends):
            chosen = unit == source + k
            own[into[chosen] - source - 2] = self.pin[held][chosen]
        self.rounds[-1].append(_along(found.flow.tocoo(), some, asked, ends, scale, boundary))
        return float(found.flow_value) / scale, used * (1.0 + BOUND_ROUNDING)


def _power(value: float) -> float:
    """The power of two that is not above a number."""
    return float(2.0 ** np.floor(np.log2(min(value, 2.0**900))))


def _along(
    flow: Any, name: Integers, tensor: Integers, ends: list[Integers], scale: float, boundary: int, times: float = 0.0
) -> Along:
    """A flow of a network whose vertices are units, two ends, and each tensor twice.

    ``name``    of each vertex that is no tensor the unit (-1: an end, and ``ends`` have a unit by tensor)
    ``tensor``  the number of each tensor
    """
    first, count = len(name), len(tensor)
    row, col, data = flow.row, flow.col, flow.data.astype(np.int64)
    out = (data > 0) & (row < first) & (col >= first)
    into = (data > 0) & (row >= first) & (col < first)
    back = (data > 0) & (row < first) & (col < first)
    vertex = np.concatenate((row[out], col[into]))
    at = np.concatenate((col[out] - first, row[into] - first - count))
    unit = name[vertex]
    for k, own in enumerate(ends):
        of_end = vertex == first - 2 + k
        unit[of_end] = own[at[of_end]]
    free = back & (row < first - 2) & (col < first - 2)
    amount = np.concatenate((data[out], -data[into]))
    return Along(scale, tensor[at], unit, amount, name[row[free]], name[col[free]], data[free], boundary, times)
