"""A first plan whose stages hold several chunks of the model in turn: parts of one order of the units, of about equal
work; then ends of parts are moved by a unit at a time, as long as the slowest stage becomes quicker.

With S stages and v chunks the order has S v parts, and part k is in stage k mod S.  Nothing is proven by such a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.instance import Plan, PlanInstance, PlanLimits, PlannedStage
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import BATCH, ROUND, SAMPLE, Exchanges
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import topological

#: Samples of each chunk that a copy holds at once, by copies, stages and place: one tuple a moment.
Held = Callable[[int, int, int], tuple[tuple[int, ...], ...]]
#: So many layouts are tried, of these so many improved, and so many stages looked at for each.
_TRIED, _IMPROVED, _LOOKS = 40, 4, 1_500
#: The load of a stage that does not fit, in loads of the whole model on one device, for a device's memory too much.
_TOO_LARGE = 1e3


def layouts(instance: PlanInstance, chunks: int) -> Iterator[tuple[int, int]]:
    """Numbers of copies and stages that plans may have."""
    limits = instance.limits or PlanLimits.none(instance.kinds)
    (low, high), (fewest, largest) = limits.copies, limits.stages
    for copies in instance.copies:
        most = min(instance.devices // (copies * instance.degrees[0]), instance.units // chunks)
        for stages in range(1, most + 1):
            rounds = not instance.held and instance.microbatches % (copies * stages)
            wrong = copies * stages < low or (high is not None and copies * stages > high)
            if not (rounds or wrong or stages < fewest or (largest is not None and stages > largest)):
                yield copies, stages


def times_of_exchange(instance: PlanInstance, copies: int) -> float:
    """How often all copies of a stage together send their weights, per sample."""
    period = {"sample": SAMPLE, "round": ROUND, "batch": BATCH}[instance.exchange]
    return float(times_sent(Exchanges(period, instance.traffic, instance.microbatches), copies))


def least_load_of_work(instance: PlanInstance, chunks: int) -> float:
    """A load that no plan is below; inf where there is no layout.

    In a plan of S stages of c copies let stage p have t_p devices a copy and the load L_p, so that c L_p is the sum of
    (time + exchanges weights) over its nodes, and of transfers, which are 0 or more.  The sum of c L_p t_p over all
    stages is then at least the sum W_c over all units of the least t (time + exchanges weights), over degrees t and
    options.  With L the largest load, c L (sum of t_p) >= W_c; the copies of all stages have D devices at most, so that
    the sum of t_p is at most D div c.  Hence L >= W_c / (c (D div c)).  A unit is in one stage: c L is no less than
    the least of (time + exchanges weights) of any unit.  A plan has one of the layouts, so the least of these
    over all of them bounds all plans.  (A plan without chunks bounds nothing: the nodes of a stage that holds chunks
    follow one another no longer, and may divide more evenly.)
    """
    degree, best = np.array(instance.degrees, dtype=float)[:, None], np.inf
    for copies in dict.fromkeys(copies for copies, _ in layouts(instance, chunks)):
        often = times_of_exchange(instance, copies)
        alone = instance.least(instance.options.time + often * instance.options.weights)
        whole = float((degree * alone).min(axis=0).sum()) / (copies * (instance.devices // copies))
        best = min(best, max(whole, float(alone.min(axis=0).max(initial=0.0)) / copies))
    return best * (1.0 - 1e-9)


def first_plan(
    instance: PlanInstance,
    chunks: int,
    held: Held,
    within: float,
    stop: Callable[[], bool],
    told: Callable[[Plan], None] = lambda _: None,
) -> Plan | None:
    """A plan within a load; None where none was found.  ``told`` hears of better and better ones on the way."""
    order = topological(instance.units, instance.before, instance.after)
    assert order is not None, "units follow one another"
    model = _Model(instance, np.asarray(order, dtype=np.int64))
    tried, best = list[_Division](), None

    def better(one: _Division) -> Plan | None:
        """The best plan so far."""
        if not one.fits or one.worth[0] > (within if best is None else best.value):
            return best
        plan = one.plan()
        told(plan)
        return plan

    for _, copies, stages, g in sorted(_ranked(model, chunks))[:_TRIED]:
        if stop():
            break
        tried.append(_Division(model, chunks, held, copies, stages, g))
        best = better(tried[-1])
    tried.sort(key=lambda one: one.worth)
    for one in tried[:_IMPROVED]:
        one.improve(stop)
        best = better(one)
    return best


def _ranked(model: _Model, chunks: int) -> Iterator[tuple[float, int, int, int]]:
    """Layouts with a degree for all stages, and about what load they have."""
    instance = model.instance
    limits = instance.limits or PlanLimits.none(instance.kinds)
    there = np.unique(instance.kind)
    low, high = int(limits.fewest[there].max(initial=0)), int(limits.most[there].min(initial=2**62))
    cost = instance.input_cost + instance.output_cost
    for copies, stages in layouts(instance, chunks):
        if not low <= copies <= high:
            continue
        often = times_of_exchange(instance, copies)
        for g, degree in enumerate(instance.degrees):
            if copies * stages * degree > instance.devices or not model.able[g]:
                continue
            alone = model.quickest(g, often)[1]
            moved = chunks * float(np.median(cost[g])) if stages > 1 and cost.shape[1] else 0.0
            each = max(float(alone.sum()) / stages, float(alone.max()))
            yield (each + moved) / copies, copies, stages, g


class _Model:
    """The units in order, and their options."""

    def __init__(self, instance: PlanInstance, order: Integers) -> None:
        self.instance, self.order, options = instance, order, instance.options
        self.nodes = [np.flatnonzero(instance.unit == u) for u in range(instance.units)]
        self.readers = np.bincount(instance.reads[0], minlength=len(instance.producer))
        #: By degree and kind the rows of its options.
        self.rows = [
            [np.flatnonzero((options.degree == degree) & (options.kind == c)) for c in range(instance.kinds)]
            for degree in instance.degrees
        ]
        there = np.unique(instance.kind).tolist()
        self.able = [all(len(own[c]) for c in there) for own in self.rows]
        self._quickest: dict[tuple[int, float], tuple[list[list[int]], Floats]] = {}

    def quickest(self, g: int, often: float) -> tuple[list[list[int]], Floats]:
        """By kind the rows of a degree, the quickest first; and the seconds of each unit with it and its exchanges."""
        key = g, often
        if key not in self._quickest:
            options = self.instance.options
            cost = options.time + often * options.weights
            rows = [own[np.lexsort((options.stash[own], cost[own]))].tolist() for own in self.rows[g]]
            least = np.array([cost[own[0]] if own else 0.0 for own in rows])
            self._quickest[key] = rows, self.instance.of_units(least[self.instance.kind])
        return self._quickest[key]


@dataclass
class _Filled:
    """A stage with options: its load (one that is much too large where it does not fit), bytes, and rows by node."""

    load: float
    memory: float
    rows: dict[int, int] = field(default_factory=dict)


class _Division:
    """The order in parts, for a layout; ``end``: where each part ends; ``degree``: positions of the stages' degrees."""

    def __init__(self, model: _Model, chunks: int, held: Held, copies: int, stages: int, g: int) -> None:
        self.model, self.chunks, self.copies, self.stages = model, chunks, copies, stages
        self.often = times_of_exchange(model.instance, copies)
        self.held = [np.array(held(copies, stages, place), dtype=float) for place in range(stages)]
        self.degree, parts = [g] * stages, stages * chunks
        work = np.cumsum(model.quickest(g, self.often)[1][model.order])
        even = np.searchsorted(work, np.arange(1, parts + 1) / parts * work[-1] * (1.0 - 1e-12)) + 1
        # One unit in each part at least.
        ends = np.maximum.accumulate(even - np.arange(parts)) + np.arange(parts)
        self.end = np.minimum(ends, model.instance.units - parts + 1 + np.arange(parts)).astype(np.int64)
        self.end[-1] = model.instance.units
        self.scale = (
            float(work[-1]) + float(model.instance.input_cost.sum() + model.instance.output_cost.sum()) + 1e-300
        )
        self.part = np.zeros(model.instance.units, dtype=np.int64)
        self._count_parts()
        self.filled = [self._fill(place) for place in range(stages)]
        self.looks = 0

    @property
    def worth(self) -> tuple[float, float]:
        """Less is better: the largest load, and how uneven they are."""
        loads = np.array([one.load for one in self.filled])
        return float(loads.max()), float((loads**2).sum())

    @property
    def fits(self) -> bool:
        """Whether all stages do."""
        return all(one.rows for one in self.filled)

    def _count_parts(self) -> None:
        self.part[self.model.order] = np.searchsorted(self.end, np.arange(len(self.part)), side="right")

    def improve(self, stop: Callable[[], bool]) -> None:
        """Move ends of parts of the slowest stage, or give it more devices, as long as that is better."""
        better = True
        while better and self.looks < _LOOKS and not stop():
            slowest = max(range(self.stages), key=lambda place: self.filled[place].load)
            better = self._more_devices(slowest) or any(
                self._moved(place, by)
                for part in range(slowest, self.stages * self.chunks, self.stages)
                for place, by in ((part - 1, 1), (part, -1))
            )

    def _moved(self, place: int, by: int) -> bool:
        """Move the end of a part by one unit, if that is better."""
        low = self.end[place - 1] if place > 0 else 0
        if not 0 <= place < len(self.end) - 1 or not low < self.end[place] + by < self.end[place + 1]:
            return False
        stages = {place % self.stages, (place + 1) % self.stages}
        unit = self.model.order[self.end[place] + (by if by < 0 else 0)]
        self.end[place] += by
        self.part[unit] = place if by > 0 else place + 1
        if self._better(stages):
            return True
        self.end[place] -= by
        self.part[unit] = place + 1 if by > 0 else place
        return False

    def _more_devices(self, place: int) -> bool:
        """Give a stage the next degree, if there are devices for it and that is better."""
        instance, g = self.model.instance, self.degree[place]
        more = next((h for h in range(g + 1, len(instance.degrees)) if self.model.able[h]), -1)
        taken = sum(instance.degrees[h] for h in self.degree)
        if more < 0 or self.copies * (taken + instance.degrees[more] - instance.degrees[g]) > instance.devices:
            return False
        self.degree[place] = more
        if self._better({place}):
            return True
        self.degree[place] = g
        return False

    def _better(self, stages: set[int]) -> bool:
        """Look at some stages anew: kept if that is better."""
        before, known = self.worth, {place: self.filled[place] for place in stages}
        for place in stages:
            self.filled[place] = self._fill(place)
        self.looks += len(stages)
        if self.worth < (before[0], before[1] * (1.0 - 1e-12)):
            return True
        for place, one in known.items():
            self.filled[place] = one
        return False

    def _fill(self, place: int) -> _Filled:
        """A stage with its quickest options, and with smaller ones as long as it does not fit: that which costs least
        time for the bytes that it saves where most is held."""
        instance, options, g = self.model.instance, self.model.instance.options, self.degree[place]
        rows, _ = self.model.quickest(g, self.often)
        cost = options.time + self.often * options.weights
        nodes = self._nodes(place)
        chunk = self.part[instance.unit[nodes]] // self.stages
        held, taken = self.held[place], np.array([rows[c][0] for c in instance.kind[nodes].tolist()])
        limits = instance.limits
        # Where one option holds more at one moment and another at the next, one would take turns with the other.
        left = set[tuple[int, int]]()
        too_many = limits is not None and bool((held.max(axis=0)[chunk] > limits.in_flight[instance.kind[nodes]]).any())
        shared = float(options.sharded[taken].sum()) / self.copies
        while True:
            at = (held[:, chunk] * options.stash[taken]).sum(axis=1)
            most = int(at.argmax())
            memory = float(at[most] + options.memory[taken].sum() + shared)
            over = memory - instance.capacity
            if over <= 0.0:
                break
            best: tuple[float, int, int] | None = None
            for i, (c, own) in enumerate(zip(instance.kind[nodes].tolist(), taken.tolist(), strict=True)):
                for row in rows[c]:
                    samples = held[most, chunk[i]]
                    saved = (
                        samples * (options.stash[own] - options.stash[row]) + options.memory[own] - options.memory[row]
                    )
                    if saved > 0.0 and cost[row] >= cost[own] and (i, row) not in left:
                        price = float(cost[row] - cost[own]) / min(float(saved), over)
                        best = min(best, (price, i, row)) if best is not None else (price, i, row)
            if best is None:
                return _Filled(self.scale * _TOO_LARGE * (1.0 + over / max(instance.capacity, 1.0)), memory)
            left.add((best[1], int(taken[best[1]])))
            taken[best[1]] = best[2]
        if too_many:
            return _Filled(self.scale * _TOO_LARGE * 2.0, memory)
        load = (float(cost[taken].sum()) + self._transfers(place, g)) / self.copies
        return _Filled(load, memory, dict(zip(nodes.tolist(), taken.tolist(), strict=True)))

    def _nodes(self, place: int) -> Integers:
        """The nodes of a stage, chunk by chunk."""
        starts = np.concatenate((np.zeros(1, dtype=np.int64), self.end))
        units = [
            unit
            for part in range(place, self.stages * self.chunks, self.stages)
            for unit in self.model.order[starts[part] : starts[part + 1]].tolist()
        ]
        return np.concatenate([self.model.nodes[unit] for unit in units])

    def _transfers(self, place: int, g: int) -> float:
        """Seconds per sample of what a stage brings in, once whichever of its chunks read it, and of what it sends."""
        instance, stage = self.model.instance, self.part % self.stages
        tensor, unit = instance.reads
        inside = np.bincount(tensor[stage[unit] == place], minlength=len(instance.producer))
        own = stage[instance.producer] == place
        sent, read = own & (inside < self.model.readers), ~own & (inside > 0)
        return float(instance.output_cost[g][sent].sum() + instance.input_cost[g][read].sum())

    def plan(self) -> Plan:
        """The plan that it is, where all stages fit."""
        instance, out = self.model.instance, list[PlannedStage]()
        for place, one in enumerate(self.filled):
            chunk = self.part[instance.unit] // self.stages
            own = self.part[instance.unit] % self.stages == place
            parts = tuple(np.flatnonzero(own & (chunk == c)) for c in range(self.chunks))
            samples = tuple(int(most) for most in self.held[place].max(axis=0))
            out.append(PlannedStage(
                np.concatenate(parts), self.copies, instance.degrees[self.degree[place]], max(samples), one.load,
                one.memory, one.rows, chunks=parts, chunk_in_flight=samples,
            ))  # fmt: skip
        return Plan(tuple(out))
