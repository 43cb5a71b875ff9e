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
from placedsl.algorithms.pair_costs import between, pairs_of, sums
from placedsl.algorithms.replicated_kernel import NEVER, Copying, extend, shared_load
from placedsl.algorithms.stages import Stages
from placedsl.algorithms.threshold import Asked, Found, Pipeline, Tables, descend, slices
from placedsl.graph.graph import Floats, Integers

#: The most table entries (ideals x states).
MOST_ENTRIES = 20_000_000


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

    def share(self, load: float, own: Integers, kind: int, copies: int) -> float:
        """The load of each of the devices that share a stage, from that of one."""
        return float(shared_load(load, float(self.sync[kind, own].sum()), copies, self.summed))

    def table(self, counts: Sequence[int]) -> Integers:
        """c x (n + 1): the least allowed number that is no less; 0 for none."""
        out = np.zeros((len(counts), max(counts) + 1), dtype=np.int64)
        for c, numbers in enumerate(self.allowed):
            for copies in sorted((r for r in numbers if r <= counts[c]), reverse=True):
                out[c, : copies + 1] = copies
        return out


def no_replication(stages: Stages) -> Replication:
    """Every stage on one device."""
    classes = len(stages.classes.counts)
    return Replication(((1,),) * classes, np.zeros((classes, stages.units)), True)


def best_replicated(
    stages: Stages,
    replication: Replication,
    limits: Limits | None = None,
    *,
    at_least: float = 0.0,
    fewest: bool = True,
    progress: Callable[[Pipeline], None] | None = None,
) -> Found:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound.  ``progress`` hears of the first pipeline.  The devices of a group are neighbours
    among those of their class.  Limits of loads, as GPipe's caps are, are not known here.
    """
    limits = limits or Limits()
    if not np.isfinite(stages.least).all():
        return Found(np.inf, None, True, np.inf)
    bound = max(at_least, float(stages.least.sum()) / stages.classes.total)
    start = sliced_replicated(stages, replication, limits)
    if start is not None and progress is not None:
        progress(start)
    cover = None if limits.passed else chains(stages.units, stages.before, stages.after)
    if cover is None:
        return Found(np.inf, None, False, bound, too_many=not limits.passed).better(start)
    states = stages.classes.states // (max(stages.classes.counts) + 1)
    tables = Tables(stages, cover, _table_of(stages, replication), min(limits.most, MOST_ENTRIES // states), limits)
    return descend(tables, start, bound, fewest=fewest)


def sliced_replicated(stages: Stages, replication: Replication, limits: Limits | None = None) -> Pipeline | None:
    """The best pipeline, nearly, whose stages are slices of a few topological orders; it proves nothing."""
    low = float(stages.least.sum()) / stages.classes.total
    return slices(stages, _table_of(stages, replication), limits or Limits(), low) if np.isfinite(low) else None


def _table_of(stages: Stages, replication: Replication) -> Callable[[Chains, np.ndarray], _Table]:
    return lambda cover, positions: _Table(stages, replication, cover, positions)


class _Table:
    """Ideals with their costs, and the search over them within a load."""

    def __init__(self, stages: Stages, replication: Replication, cover: Chains, positions: np.ndarray) -> None:
        self.stages, self.replication, self.cover = stages, replication, cover
        self.pairs, self.positions = pairs_of(stages, cover, positions, Capacity(stages, np.inf).weight)
        self.sync = sums(cover, self.positions, replication.sync)

    def within(self, load: float, limits: Limits, *, fewest: bool) -> Asked:
        """A pipeline within the load, with the fewest devices whether that is asked for or not."""
        del fewest
        if not len(self.positions) or self.positions[0].any():
            return Asked(None, True)  # not even nothing can be gone on from
        capacity = Capacity(self.stages, load)
        main = int(np.argmax(capacity.counts)) if capacity.paying is None else capacity.paying
        copying = copying_of(self.replication, capacity, capacity.counts, main, self.sync)
        left = needed_after(self.pairs.weight, self.pairs.rest, capacity, copying)
        reach = np.full(left.shape, NEVER, dtype=np.int16)
        origin = np.full((*left.shape, 3), -1, dtype=np.int32)
        reach[0, 0] = 0
        seen = np.zeros(4, dtype=np.int64)
        done, batch, complete = 0, 16, True
        while done < len(left) and complete:
            end, began = min(len(left), done + batch), time.monotonic()
            extend(done, end, self.pairs, copying, load, left, reach, origin, seen)
            took = time.monotonic() - began
            batch = batch * 2 if took < 0.05 else max(1, batch // 2) if took > 0.3 else batch
            done = end
            complete = done == len(left) or not limits.passed
        used = reach[-1] + copying.digits.sum(axis=1)
        pairs = (int(seen[1]), int(seen[2]), int(seen[3]))
        if used.min() >= NEVER:
            return Asked(None, complete, pairs=pairs)
        steps = traced(len(left) - 1, int(np.argmin(used)), origin, copying)
        return Asked(self._pipeline(steps), complete, pairs=pairs)

    def _pipeline(self, steps: Sequence[tuple[int, int, int, int]]) -> Pipeline:
        """The pipeline of stages that are each given by two ideals, a class and a number of devices."""
        stages = self.stages
        device = np.full(stages.units, -1, dtype=np.int64)
        used = [0] * len(stages.classes.counts)
        groups: dict[int, tuple[int, ...]] = {}
        value = 0.0
        for base, goal, kind, copies in steps:
            own = between(self.cover, self.positions, base, goal)
            group = tuple(stages.classes.devices[kind][used[kind] : used[kind] + copies].tolist())
            used[kind] += copies
            device[own] = group[0]
            groups[group[0]] = group
            value = max(value, self.replication.share(stages.load(own, kind), own, kind, copies))
        return Pipeline(value, device, groups)


def traced(goal: int, state: int, origin: np.ndarray, copying: Copying) -> list[tuple[int, int, int, int]]:
    """The stages on the way to an ideal in a state, as (ideal, ideal, class, devices), the first stage first."""
    steps: list[tuple[int, int, int, int]] = []
    while origin[goal, state, 0] >= 0:
        base, kind, copies = origin[goal, state].tolist()
        steps.append((base, goal, kind, copies))
        goal, state = base, state - copies * int(copying.stride[kind])
    return steps[::-1]


def copying_of(
    replication: Replication, capacity: Capacity, counts: Integers, main: int, sync: Floats
) -> Copying:  # fmt: skip
    """How so many devices of each class can share stages within a load.  ``sync``: c x K sums."""
    others = [range(1) if c == main else range(n + 1) for c, n in enumerate(counts.tolist())]
    digits = np.array(list(product(*others[::-1])), dtype=np.int64)[:, ::-1]
    size = np.array([len(o) for o in others])
    stride = np.where(np.arange(len(counts)) == main, 0, np.concatenate(([1], np.cumprod(size)[:-1])))
    number = np.arange(counts.max() + 1)
    takes = np.array([capacity.takes(np.outer(number, one)) for one in np.eye(len(counts), dtype=np.int64)])
    allowed = replication.table(counts.tolist())
    return Copying(np.ascontiguousarray(digits), stride, counts, main, takes, allowed, sync, replication.summed)


def needed_after(weight: Integers, rest: Floats, capacity: Capacity, copying: Copying) -> np.ndarray:
    """K x s: the devices of the main class that the rest needs at least, beside what a state leaves of the others."""
    out = np.full((len(weight), len(copying.digits)), NEVER, dtype=np.int16)
    paying, main = capacity.paying, copying.main
    outside = capacity.total - weight
    moving = rest[capacity.timed, paying].sum(axis=0) if paying is not None else np.zeros(len(weight))
    for s, digits in enumerate(copying.digits):
        left = copying.devices - digits
        left[main] = 0
        alone = paying == main and not left.any()
        rows = np.arange(len(weight))
        for number in range(int(copying.devices[main]) + 1):
            left[main] = number
            can = capacity.takes(left, moving[rows]) if alone else np.broadcast_to(capacity.takes(left), rows.shape)
            fits = outside[rows] <= can
            out[rows[fits], s] = number
            rows = rows[~fits]
            if not len(rows):
                break
    return out
