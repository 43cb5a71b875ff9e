"""The best pipeline whose stages may each be shared by several devices.   Tarnawski et al. 2020, Appendix C.2.

Devices that share a stage take samples in turn and send one another its weights.  Within a load, a stage of given units
needs a number of devices of a class that follows in closed form, so an ideal is worth the fewest devices that reach
it, and the least load is found by asking for one load after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover
from placedsl.algorithms.kernels import between_looks
from placedsl.algorithms.pipelines.bottleneck_search import (
    BottleneckResult,
    FeasibilityOracle,
    FeasibilityResult,
    GroupedPipeline,
    TableOf,
    minimise_bottleneck,
    slices,
)
from placedsl.algorithms.pipelines.capped_loads import ComparedLoads, compared_loads
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.replicated_kernel import NEVER, ReplicationStates, extend, replicated_load
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import all_stage_pairs, between, ideal_sums
from placedsl.arrays import Floats, Integers

#: The most table entries (ideals x states).
MOST_ENTRIES = 20_000_000
#: Pairs between two looks at the clock.
_PATIENCE = 10_000_000


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

    def share(self, costs: StageCostModel, load: float, own: Integers, kind: int, copies: int) -> float:
        """The load of each of the devices that share a stage, from that of one."""
        sync = float(self.sync[kind, own].sum()) if costs.exchanges else 0.0
        return float(replicated_load(load, sync, copies, self.summed))

    def table(self, counts: Sequence[int]) -> Integers:
        """c x (n + 1): the least allowed number that is no less; 0 for none."""
        out = np.zeros((len(counts), max(counts) + 1), dtype=np.int64)
        for c, numbers in enumerate(self.allowed):
            for copies in sorted((r for r in numbers if r <= counts[c]), reverse=True):
                out[c, : copies + 1] = copies
        return out


def no_replication(costs: StageCostModel) -> Replication:
    """Every stage on one device."""
    classes = len(costs.classes.counts)
    return Replication(((1,),) * classes, np.zeros((classes, costs.units)), True)


def best_replicated(
    costs: StageCostModel,
    replication: Replication,
    limits: SearchLimits | None = None,
    *,
    at_least: float = 0.0,
    at_most: float = np.inf,
    fewest: bool = True,
    progress: Callable[[GroupedPipeline], None] | None = None,
) -> BottleneckResult:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound; only loads below ``at_most`` are of interest.  ``progress`` hears of the first
    pipeline.  The devices of a group are neighbours among those of their class.
    """
    limits = limits or SearchLimits()
    if not np.isfinite(costs.least).all():
        return BottleneckResult(np.inf, None, True, np.inf)
    bound = max(at_least, costs.share)
    start = sliced_replicated(costs, replication, limits)
    if start is not None and progress is not None:
        progress(start)
    cover = None if limits.passed else chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return BottleneckResult(np.inf, None, False, bound, too_many=not limits.passed).better(start)
    states = costs.classes.states // (max(costs.classes.counts) + 1)
    tables = FeasibilityOracle(
        costs, cover, _table_of(costs, replication), min(limits.most, MOST_ENTRIES // states), limits
    )
    return minimise_bottleneck(tables, start, bound, at_most=at_most, fewest=fewest)


def sliced_replicated(
    costs: StageCostModel, replication: Replication, limits: SearchLimits | None = None
) -> GroupedPipeline | None:
    """The best pipeline, nearly, whose stages are slices of a few topological orders; it proves nothing."""
    if not np.isfinite(costs.least).all():
        return None
    return slices(costs, _table_of(costs, replication), limits or SearchLimits(), costs.share)


def _table_of(costs: StageCostModel, replication: Replication) -> TableOf:
    return lambda cover, positions, load: _ReplicatedTable(costs, replication, cover, positions, load)


class _ReplicatedTable:
    """Ideals with their costs, and the search over them within a load."""

    def __init__(
        self, costs: StageCostModel, replication: Replication, cover: ChainCover, positions: np.ndarray, load: float
    ) -> None:
        self.costs, self.replication, self.cover = costs, replication, cover
        self.pairs, self.positions = all_stage_pairs(
            costs.within(load * costs.classes.total), cover, positions, LoadPruning(costs, np.inf).weight
        )
        self.sync = ideal_sums(cover, self.positions, replication.sync)

    def within(self, load: float, limits: SearchLimits, *, fewest: bool) -> FeasibilityResult:
        """A pipeline within the load, with the fewest devices whether that is asked for or not."""
        del fewest
        if not len(self.positions) or self.positions[0].any():
            return FeasibilityResult(None, True)  # not even nothing can be gone on from
        pruning = LoadPruning(self.costs, load)
        main = int(np.argmax(pruning.counts)) if pruning.paying is None else pruning.paying
        loads = compared_loads(self.costs, load, self.replication.sync)
        compared = loads.of_pairs(self.pairs)
        replicas = replication_states(self.replication, pruning, pruning.counts, main, self.sync, loads)
        left = needed_after(self.pairs.weight, self.pairs.rest, pruning, replicas)
        reach = np.full(left.shape, NEVER, dtype=np.int16)
        origin = np.full((*left.shape, 3), -1, dtype=np.int32)
        reach[0, 0] = 0
        seen = np.zeros(4, dtype=np.int64)
        done, everything, complete = 0, len(left) - 1, True
        while done < everything and complete:
            done = int(
                extend(done, between_looks(_PATIENCE), compared, replicas, loads.bound, left, reach, origin, seen)
            )
            complete = done == everything or not limits.passed
        used = reach[-1] + replicas.digits.sum(axis=1)
        pairs = (int(seen[1]), int(seen[2]), int(seen[3]))
        if used.min() >= NEVER:
            return FeasibilityResult(None, complete, pairs=pairs)
        steps = traced(everything, int(np.argmin(used)), origin, replicas)
        return FeasibilityResult(self._pipeline(steps), complete, pairs=pairs)

    def _pipeline(self, steps: Sequence[tuple[int, int, int, int]]) -> GroupedPipeline:
        """The pipeline of stages that are each given by two ideals, a class and a number of devices."""
        costs = self.costs
        device = np.full(costs.units, -1, dtype=np.int64)
        used = [0] * len(costs.classes.counts)
        groups: dict[int, tuple[int, ...]] = {}
        value = 0.0
        for base, goal, kind, copies in steps:
            own = between(self.cover, self.positions, base, goal)
            group = tuple(costs.classes.devices[kind][used[kind] : used[kind] + copies].tolist())
            used[kind] += copies
            device[own] = group[0]
            groups[group[0]] = group
            value = max(value, self.replication.share(costs, costs.load(own, kind), own, kind, copies))
        return GroupedPipeline(value, device, groups)


def traced(goal: int, state: int, origin: np.ndarray, replicas: ReplicationStates) -> list[tuple[int, int, int, int]]:
    """The stages on the way to an ideal in a state, as (ideal, ideal, class, devices), the first stage first."""
    steps: list[tuple[int, int, int, int]] = []
    while origin[goal, state, 0] >= 0:
        base, kind, copies = origin[goal, state].tolist()
        steps.append((base, goal, kind, copies))
        goal, state = base, state - copies * int(replicas.stride[kind])
    return steps[::-1]


def replication_states(
    replication: Replication, pruning: LoadPruning, counts: Integers, main: int, sync: Floats, loads: ComparedLoads
) -> ReplicationStates:  # fmt: skip
    """How so many devices of each class can share stages within a load.  ``sync``: c x K sums."""
    others = [range(1) if c == main else range(n + 1) for c, n in enumerate(counts.tolist())]
    digits = np.array(list(product(*others[::-1])), dtype=np.int64)[:, ::-1]
    size = np.array([len(o) for o in others])
    stride = np.where(np.arange(len(counts)) == main, 0, np.concatenate(([1], np.cumprod(size)[:-1])))
    number = np.arange(counts.max() + 1)
    takes = np.array([pruning.takes(np.outer(number, one)) for one in np.eye(len(counts), dtype=np.int64)])
    allowed = replication.table(counts.tolist())
    return ReplicationStates(
        np.ascontiguousarray(digits),
        stride,
        counts,
        main,
        takes,
        allowed,
        sync if loads.sync == 1.0 else sync * loads.sync,
        replication.summed,
        loads.alone,
    )


def needed_after(weight: Integers, rest: Floats, pruning: LoadPruning, replicas: ReplicationStates) -> np.ndarray:
    """K x s: the devices of the main class that the rest needs at least, beside what a state leaves of the others."""
    out = np.full((len(weight), len(replicas.digits)), NEVER, dtype=np.int16)
    paying, main = pruning.paying, replicas.main
    outside = pruning.total - weight
    moving = rest[pruning.timed, paying].sum(axis=0) if paying is not None else np.zeros(len(weight))
    for s, digits in enumerate(replicas.digits):
        left = replicas.devices - digits
        left[main] = 0
        alone = paying == main and not left.any()
        rows = np.arange(len(weight))
        for number in range(int(replicas.devices[main]) + 1):
            left[main] = number
            can = pruning.takes(left, moving[rows]) if alone else np.broadcast_to(pruning.takes(left), rows.shape)
            fits = outside[rows] <= can
            out[rows[fits], s] = number
            rows = rows[~fits]
            if not len(rows):
                break
    return out
