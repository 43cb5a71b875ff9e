"""The best pipeline whose stages may each be shared by several devices.   Tarnawski et al. 2020, Appendix C.2.

Devices that share a stage take samples in turn and send one another its weights.  Within a load, a stage of given units
needs a number of devices of a class that follows in closed form, so an ideal is worth the fewest devices that reach
it, and the least load is found by asking for one load after another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from placedsl.algorithms.capacity import Capacity
from placedsl.algorithms.chains import Chains, chains
from placedsl.algorithms.ideal_dp import Limits
from placedsl.algorithms.ideals import ideals
from placedsl.algorithms.orders import orders
from placedsl.algorithms.pair_costs import between, pairs_of, sums
from placedsl.algorithms.replicated_kernel import NEVER, Copying, extend, shared_load
from placedsl.algorithms.stages import Stages
from placedsl.algorithms.threshold import SAME, Asked, Found, Group, descend
from placedsl.graph.graph import Floats, Integers

#: The most table entries (ideals x states).
MOST_ENTRIES = 20_000_000
#: Slices of an order are improved on until the two sides are this share apart.
_CLOSE = 5e-3
#: A table serves for loads down to this share below the one that it was made for.
_NEAR = 5e-3


@dataclass(frozen=True, eq=False)
class Replication:
    """How devices share stages.

    ``allowed``  per class the numbers of devices that can share a stage, ascending, 1 among them
    ``sync``     c x u seconds to send the weights of a unit once between devices of the class
    ``summed``   a load of L on one device and Y of weights is ``L/r + (r-1)/r Y`` on each of r, instead of the
                 larger of the two terms
    """

    allowed: tuple[tuple[int, ...], ...]
    sync: Floats
    summed: bool

    def load(self, stages: Stages, own: Integers, kind: int, copies: int) -> float:
        """The largest load of a stage from its units, on each of the devices that share it."""
        return float(shared_load(stages.load(own, kind), float(self.sync[kind, own].sum()), copies, self.summed))

    def table(self, counts: Sequence[int]) -> Integers:
        """c x (n + 1): the least allowed number that is no less; 0 for none."""
        out = np.zeros((len(counts), max(counts) + 1), dtype=np.int64)
        for c, numbers in enumerate(self.allowed):
            for copies in sorted((r for r in numbers if r <= counts[c]), reverse=True):
                out[c, : copies + 1] = copies
        return out


def no_replication(stages: Stages) -> Replication:
    """Every stage on one device."""
    return Replication(((1,),) * len(stages.classes.counts), np.zeros((len(stages.classes.counts), stages.units)), True)


def best_replicated(
    stages: Stages,
    replication: Replication,
    limits: Limits | None = None,
    *,
    at_least: float = 0.0,
    fewest: bool = True,
    progress: Callable[[Group], None] | None = None,
) -> Found:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound.  ``progress`` hears of the first pipeline.  Limits of loads, as GPipe's caps are,
    are not known here.
    """
    limits = limits or Limits()
    if not np.isfinite(stages.least).all():
        return Found(np.inf, None, True, np.inf)
    start = sliced_replicated(stages, replication, limits)
    if start is not None and progress is not None:
        progress(start)
    bound = max(at_least, float(stages.least.sum()) / stages.classes.total)
    cover = None if limits.passed else chains(stages.units, stages.before, stages.after)
    if cover is None:
        found = Found(np.inf, None, False, bound, too_many=not limits.passed)
        return found if start is None else found.better(start)
    search = _Search(stages, replication, cover, limits)
    return descend(search.ask, start, bound, heaviest(stages), limits, fewest=fewest)


def sliced_replicated(stages: Stages, replication: Replication, limits: Limits | None = None) -> Group | None:
    """The best pipeline, nearly, whose stages are slices of a few topological orders; it proves nothing."""
    limits = limits or Limits()
    best: Group | None = None
    low = float(stages.least.sum()) / stages.classes.total
    for order in orders(stages):
        line = Chains.of_order(order)
        table = _Table(stages, replication, line, line.prefixes(order), Capacity(stages, np.inf).weight)
        high, under = np.inf if best is None else best.value * (1.0 - _CLOSE), low
        load = high
        while under < load and not limits.passed:
            plan = table.within(load, Capacity(stages, load), limits).plan
            if plan is not None:
                best, high = plan, plan.value
            elif load == high:
                break  # nothing better on this order
            else:
                under = load
            if high - under <= _CLOSE * high:
                break
            load = (under + high) / 2.0 if under <= 0.0 or high < 4.0 * under else float(np.sqrt(under * high))
    return best


def heaviest(stages: Stages) -> float:
    """A load that no stage exceeds."""
    units = np.where(stages.supported[None], stages.unit_meter[: len(stages.limit)], 0.0).sum(axis=2)
    edges = (stages.read_meter + stages.make_meter).sum(axis=2)
    return float((units + edges)[: stages.loads].max(initial=0.0))


class _Search:
    """Answers whether a pipeline stays within a load, with tables that are kept for loads close by."""

    def __init__(self, stages: Stages, replication: Replication, cover: Chains, limits: Limits) -> None:
        self.stages, self.replication, self.cover, self.limits = stages, replication, cover, limits
        self.known: tuple[float, _Table, int] | None = None

    def ask(self, load: float) -> Asked:
        """A pipeline within the load, with the fewest devices."""
        stages, limits = self.stages, self.limits
        capacity = Capacity(stages, load)
        if self.known is None or not load <= self.known[0] <= load * (1.0 + _NEAR):
            self.known = None
            states = stages.classes.states // (max(stages.classes.counts) + 1)
            walked = ideals(
                self.cover, capacity.weight, capacity.windows(), most=min(limits.most, MOST_ENTRIES // states),
                deadline=limits.deadline, stop=limits.stop,
            )  # fmt: skip
            if not walked.complete:
                return Asked(None, False, walked.too_many, walked.met, len(walked.positions))
            table = _Table(stages, self.replication, self.cover, walked.positions, capacity.weight)
            self.known = load, table, walked.met
        _, table, met = self.known
        found = table.within(load, capacity, limits)
        return Asked(found.plan, found.complete, False, met, len(table.positions), found.pairs)


class _Table:
    """Ideals with their costs, and the search over them within a load."""

    def __init__(
        self, stages: Stages, replication: Replication, cover: Chains, positions: np.ndarray, weight: Integers
    ) -> None:
        self.stages, self.replication, self.cover = stages, replication, cover
        self.pairs, self.positions = pairs_of(stages, cover, positions, weight)
        self.sync = sums(cover, self.positions, replication.sync)

    def within(self, load: float, capacity: Capacity, limits: Limits) -> Asked:
        """A pipeline within the load, with the fewest devices."""
        if not len(self.positions) or self.positions[0].any():
            return Asked(None, True)  # not even nothing can be gone on from
        main, copying = self._copying(capacity)
        left = needed_after(self.pairs.weight, self.pairs.rest, capacity, copying)
        here = np.flatnonzero((left <= copying.count[main]).any(axis=1))
        if not len(here) or here[0] or here[-1] != len(left) - 1:
            return Asked(None, True)
        reach = np.full(left.shape, NEVER, dtype=np.int16)
        origin = np.full((*left.shape, 3), -1, dtype=np.int32)
        reach[0, 0] = 0
        seen = np.zeros(4, dtype=np.int64)
        done, batch, count = 0, 16, len(left)
        complete = True
        while done < count and complete:
            end, began = min(count, done + batch), time.monotonic()
            extend(done, end, self.pairs, copying, load, left, reach, origin, seen)
            took = time.monotonic() - began
            batch = batch * 2 if took < 0.05 else max(1, batch // 2) if took > 0.3 else batch
            done = end
            complete = done == count or not limits.passed
        used = reach[-1] + copying.digits.sum(axis=1)
        pairs = (int(seen[1]), int(seen[2]), int(seen[3]))
        if used.min() >= NEVER:
            return Asked(None, complete, pairs=pairs)
        return Asked(self._plan(int(np.argmin(used)), origin, copying), complete, pairs=pairs)

    def _copying(self, capacity: Capacity) -> tuple[int, Copying]:
        """The devices, the class that pays for transfers or has most of them as the main one."""
        counts = capacity.counts
        main = int(np.argmax(counts)) if capacity.paying is None else capacity.paying
        others = [range(1) if c == main else range(n + 1) for c, n in enumerate(counts.tolist())]
        digits = np.array(list(product(*others[::-1])), dtype=np.int64)[:, ::-1]
        size = np.array([len(o) for o in others])
        stride = np.where(np.arange(len(counts)) == main, 0, np.concatenate(([1], np.cumprod(size)[:-1])))
        number = np.arange(counts.max() + 1)
        takes = np.array([capacity.takes(np.outer(number, e)) for e in np.eye(len(counts), dtype=np.int64)])
        allowed = self.replication.table(counts.tolist())
        return main, Copying(
            np.ascontiguousarray(digits), stride, counts, main, takes, allowed, self.sync, self.replication.summed
        )

    def _plan(self, state: int, origin: np.ndarray, copying: Copying) -> Group:
        """The pipeline that reaches everything in a state."""
        steps: list[tuple[Integers, int, int]] = []
        goal = len(origin) - 1
        while goal:
            base, kind, copies = origin[goal, state].tolist()
            steps.append((between(self.cover, self.positions, base, goal), kind, copies))
            goal, state = base, state - copies * int(copying.stride[kind])
        return group_of(self.stages, self.replication, steps[::-1])


def group_of(stages: Stages, replication: Replication, steps: Sequence[tuple[Integers, int, int]]) -> Group:
    """The pipeline of stages that are each given as units, device class and number of devices."""
    device = np.full(stages.units, -1, dtype=np.int64)
    used = [0] * len(stages.classes.counts)
    copies: dict[int, int] = {}
    value = 0.0
    for own, kind, number in steps:
        leader = int(stages.classes.devices[kind][used[kind]])
        device[own] = leader
        copies[leader] = number
        used[kind] += number
        value = max(value, replication.load(stages, own, kind, number))
    return Group(value, device, copies)


def needed_after(weight: Integers, rest: Floats, capacity: Capacity, copying: Copying) -> np.ndarray:
    """K x s: the devices of the main class that what is outside an ideal needs at least, beside those left of a state."""
    out = np.full((len(weight), len(copying.digits)), NEVER, dtype=np.int16)
    paying, main = capacity.paying, copying.main
    outside = capacity.total - weight
    moving = rest[capacity.timed, paying].sum(axis=0) if paying is not None else np.zeros(len(weight))
    for s, digits in enumerate(copying.digits):
        left = copying.count - digits
        left[main] = 0
        alone = paying == main and not left.any()
        open_ = np.arange(len(weight))
        for number in range(int(copying.count[main]) + 1):
            left[main] = number
            can = capacity.takes(left, moving[open_]) if alone else np.broadcast_to(capacity.takes(left), open_.shape)
            fits = outside[open_] <= can
            out[open_[fits], s] = number
            open_ = open_[~fits]
            if not len(open_):
                break
    return out


