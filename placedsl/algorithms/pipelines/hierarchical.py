"""The best pipeline over clusters of devices, between which transfers cost more.   Tarnawski et al. 2020, Appendix C.3.

It is contiguous at both levels: the chain of ideals is cut into what the clusters have, and that into stages.  For two
ideals the problem inside a cluster is that of a pipeline in which edges that leave the cluster cost more; the outer
search is over ideals and how many clusters of each kind have been used.  Stages may be shared by devices of a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover
from placedsl.algorithms.pipelines.bottleneck_search import (
    BottleneckResult,
    FeasibilityOracle,
    FeasibilityResult,
    GroupedPipeline,
    improved,
    minimise_bottleneck,
    slices,
)
from placedsl.algorithms.pipelines.cluster_arrays import (
    ClusterEdges,
    ClusterProblem,
    ClusterReach,
    ClusterStages,
    OuterReach,
    RemainingNeed,
)
from placedsl.algorithms.pipelines.clusters import ClusterKind, Clusters, cluster_kinds
from placedsl.algorithms.pipelines.hierarchical_kernel import inside, list_cluster_stages, spread
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.replicated import (
    Replication,
    best_replicated,
    needed_after,
    replication_states,
    traced,
)
from placedsl.algorithms.pipelines.replicated_kernel import NEVER
from placedsl.algorithms.pipelines.state_dp import SearchLimits
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import all_stage_pairs, between, ideal_sums
from placedsl.arrays import Booleans, Integers

#: The most ideals, numbers in the list of stages, and numbers in the table of edges that leave clusters.
MOST_IDEALS = 20_000
MOST_NUMBERS = 24_000_000
#: StageCostModel looked at between two looks at the clock.
_PATIENCE = 1_000_000
#: Seconds for slices of orders, which only help the search proper.
_SLICING = 3.0


def best_hierarchical(
    costs: StageCostModel,
    clusters: Clusters,
    replication: Replication,
    limits: SearchLimits | None = None,
    *,
    at_least: float = 0.0,
    fewest: bool = True,
    progress: Callable[[GroupedPipeline], None] | None = None,
) -> BottleneckResult:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound.  ``progress`` hears of the first pipeline.  The devices of a group are neighbours
    among those of their class and cluster.
    """
    limits = limits or SearchLimits()
    if not np.isfinite(costs.least).all():
        return BottleneckResult(np.inf, None, True, np.inf)
    kinds = cluster_kinds(costs, clusters)
    largest = np.max([k.devices for k in kinds], axis=0)
    near = replace(
        replication,
        allowed=tuple(
            tuple(r for r in a if r == 1 or r <= n) for a, n in zip(replication.allowed, largest, strict=True)
        ),
    )
    # As if all devices were in one cluster: no load can be below that.
    flat = best_replicated(costs, near, limits, at_least=at_least, fewest=False)
    if flat.complete and flat.device is None:
        return flat

    def table_of(cover: ChainCover, positions: np.ndarray) -> _ClusterTable | None:
        return _ClusterTable(costs, clusters, near, kinds, cover, positions) if positions.size else None

    cover = None if limits.passed else chain_cover(costs.units, costs.before, costs.after)
    start = None if cover is None else _dealt(flat, table_of, cover, limits)
    soon = time.monotonic() + _SLICING
    sooner = replace(limits, deadline=soon if limits.deadline is None else min(soon, limits.deadline))
    start = slices(costs, table_of, sooner, flat.bound, start)
    if start is not None and progress is not None:
        progress(start)
    if cover is None:
        return BottleneckResult(np.inf, None, False, flat.bound, too_many=not limits.passed).better(start)
    tables = FeasibilityOracle(costs, cover, table_of, min(limits.most, MOST_IDEALS), limits)
    return minimise_bottleneck(tables, start, flat.bound, fewest=fewest)


def _dealt(
    flat: BottleneckResult,
    table_of: Callable[[ChainCover, np.ndarray], _ClusterTable | None],
    cover: ChainCover,
    limits: SearchLimits,
) -> GroupedPipeline | None:
    """The stages of the best pipeline without clusters, dealt out to the clusters, where they can be."""
    if flat.device is None:
        return None
    rows = [np.zeros(cover.count, dtype=np.int64)]
    for leader in flat.groups:
        rows.append(rows[-1] + np.bincount(cover.chain[flat.device == leader], minlength=cover.count))
    table = table_of(cover, np.array(rows).astype(cover.dtype))
    return None if table is None else improved(table, limits, flat.bound, None)


class _ClusterTable:
    """Ideals with their costs, and the search over them within a load."""

    def __init__(
        self, costs: StageCostModel, clusters: Clusters, replication: Replication, kinds: Sequence[ClusterKind],
        cover: ChainCover, positions: np.ndarray,
    ) -> None:  # fmt: skip
        self.costs, self.clusters, self.replication = costs, clusters, replication
        self.kinds, self.cover = kinds, cover
        self.pairs, self.positions = all_stage_pairs(costs, cover, positions, LoadPruning(costs, np.inf).weight)
        self.sync = ideal_sums(cover, self.positions, replication.sync)
        self.far = self._cluster_edges()
        self.listed: tuple[float, ClusterStages] | None = None

    def _cluster_edges(self) -> ClusterEdges | None:
        """The edges that cost something where they leave a cluster; None where that takes too much room."""
        costs, clusters, loads = self.costs, self.clusters, self.costs.loads
        edges = np.flatnonzero(((clusters.read + clusters.make)[:loads] > 0.0).any(axis=(0, 1)))
        if len(edges) * max(len(self.positions), costs.units) > MOST_NUMBERS:
            return None
        held = np.zeros((len(costs.readers), costs.units), dtype=np.int32)
        held[costs.touched, np.repeat(np.arange(costs.units), np.diff(costs.touch_start))] = costs.role
        code = np.ascontiguousarray(ideal_sums(self.cover, self.positions, held[edges]).T)
        readers = costs.readers[edges]
        ideal, edge = np.nonzero((code > 0) & (code <= 2 * readers))
        start = np.searchsorted(ideal, np.arange(len(code) + 1))
        read, make = (np.ascontiguousarray(side[:loads][:, :, edges]) for side in (clusters.read, clusters.make))
        return ClusterEdges(code, start, edge.astype(np.int32), readers, read, make)

    def _list(self, load: float, pruning: LoadPruning, limits: SearchLimits) -> ClusterStages | None:
        """The stages within a load, or within one not much larger; None where there are too many, or no time."""
        if self.listed is not None and load <= self.listed[0] <= 2.0 * load:
            return self.listed[1]
        self.listed = None
        largest = np.max([k.devices for k in self.kinds], axis=0)
        replicas = replication_states(self.replication, pruning, largest, int(np.argmax(largest)), self.sync)
        loads, classes = self.costs.loads, len(largest)
        most = MOST_NUMBERS // (loads * classes)
        start = np.zeros(len(self.positions) + 1, dtype=np.int64)
        allocated, done = min(most, 1 << 16), 0
        goal, cost = np.empty(allocated, dtype=np.int32), np.empty((allocated, loads, classes))
        while True:
            done = int(list_cluster_stages(done, self.pairs, replicas, load, start, goal, cost))
            if done == len(self.positions):
                break
            if allocated == most or limits.passed:
                return None
            wider = min(most, 4 * allocated)
            goal = np.concatenate((goal, np.empty(wider - allocated, dtype=np.int32)))
            cost = np.concatenate((cost, np.empty((wider - allocated, loads, classes))))
            allocated = wider
        goal = goal[: start[-1]].copy()
        which = np.argsort(goal, kind="stable").astype(np.int32)
        until = np.searchsorted(goal[which], np.arange(len(start)))
        base = np.repeat(np.arange(len(self.positions), dtype=np.int32), np.diff(start))[which]
        found = ClusterStages(start, goal, cost[: start[-1]].copy(), until, base, which)
        self.listed = load, found
        return found

    def within(self, load: float, limits: SearchLimits, *, fewest: bool) -> FeasibilityResult:
        """A pipeline within the load; where ``fewest``, one with the fewest devices."""
        if self.positions[0].any():
            return FeasibilityResult(None, True)
        pruning = LoadPruning(self.costs, load)
        listed = None if self.far is None else self._list(load, pruning, limits)
        if self.far is None or listed is None:
            return FeasibilityResult(None, False, not limits.passed)
        return _ClusterSearch(self, load, pruning, listed, self.far).run(limits, fewest=fewest)


class _ClusterSearch:
    """The search over ideals and clusters used, within a load."""

    def __init__(
        self, table: _ClusterTable, load: float, pruning: LoadPruning, listed: ClusterStages, far: ClusterEdges
    ) -> None:
        self.table, self.load, self.pruning, self.listed, self.far = table, load, pruning, listed, far
        numbers = [len(k.members) for k in table.kinds]
        self.numbers = np.array(numbers)
        self.digits = np.array(list(product(*(range(n + 1) for n in numbers[::-1]))), dtype=np.int64)[:, ::-1]
        self.stride = np.concatenate(([1], np.cumprod(self.numbers + 1)[:-1])).astype(np.int64)
        self.devices = np.array([k.devices for k in table.kinds])
        self.main = int(np.argmax(pruning.counts)) if pruning.paying is None else pruning.paying
        self.all = replication_states(table.replication, pruning, pruning.counts, self.main, table.sync)
        self.needed = needed_after(table.pairs.weight, table.pairs.rest, pruning, self.all)
        self.replicas = [
            replication_states(table.replication, pruning, kind.devices, self.main, table.sync) for kind in table.kinds
        ]
        ideals, states = len(table.positions), max(len(c.digits) for c in self.replicas)
        edges = len(far.readers)
        self.free, self.workspace = (
            ClusterReach(
                np.full((ideals, states), NEVER, dtype=np.int16), np.full((ideals, states, 3), -1, dtype=np.int32),
                np.zeros(edges + 1, dtype=np.int32), np.zeros(edges + 1, dtype=np.int32),
                np.zeros(ideals, dtype=np.int32), np.zeros(ideals, dtype=np.int64),
            )
            for _ in range(2)
        )  # fmt: skip
        self.seen = np.zeros(4, dtype=np.int64)

    def fits(self) -> Booleans:
        """K x s: where the clusters used can have taken what is inside, and those that are left can take the rest.

        All edges that an ideal between two clusters cuts leave a cluster, on either side.
        """
        pruning, table = self.pruning, self.table
        weight, paying, far = table.pairs.weight, pruning.paying, self.far
        held, missing = (np.zeros(len(weight)) for _ in range(2))
        if paying is not None:
            timed = [q for q in pruning.timed if q < table.costs.loads]
            ideal = np.repeat(np.arange(len(weight)), np.diff(far.cut_start))
            made = (far.code[ideal, far.cut_edge] & 1).astype(bool)
            read, make = (side[timed, paying].sum(axis=0)[far.cut_edge] for side in (far.read, far.make))
            held = held + np.bincount(ideal, np.where(made, make, read), len(weight))
            missing = missing + np.bincount(ideal, np.where(made, read, make), len(weight))
            held += table.pairs.own[timed, paying].sum(axis=0)
            missing += table.pairs.rest[timed, paying].sum(axis=0)
        fits = np.ones((len(weight), len(self.digits)), dtype=bool)
        for s, digits in enumerate(self.digits):
            for number, moving, taken in (
                (digits, held, weight), (self.numbers - digits, missing, pruning.total - weight)
            ):  # fmt: skip
                there = number @ self.devices
                # Where a class that pays nothing takes part, it may be the one that has the edges.
                alone = paying is not None and not np.delete(there, paying).any()
                fits[:, s] &= taken <= pruning.takes(there, moving if alone else 0.0)
        return fits

    def remaining_need(self, number: int, states: Integers) -> RemainingNeed:
        """What is left beside a cluster of one kind after some states of clusters, at the most."""
        left = ((self.numbers - self.digits[states]) @ self.devices).max(axis=0)
        digits = self.pruning.counts - left + self.replicas[number].digits
        digits[:, self.main] = 0
        return RemainingNeed(self.needed, digits @ self.all.stride, int(left[self.main]))

    def run(self, limits: SearchLimits, *, fewest: bool) -> FeasibilityResult:
        """From nothing to everything."""
        fits = np.ascontiguousarray(self.fits())
        value = np.full(fits.shape, NEVER, dtype=np.int32)
        came = np.full((*fits.shape, 2), -1, dtype=np.int32)
        value[0, 0] = 0
        everything = len(value) - 1
        complete = True
        for low in range(everything):
            states = self._useful(value[low], fits[low])
            if not len(states):
                continue
            for number, replicas in enumerate(self.replicas):
                more = states[self.digits[states, number] < self.numbers[number]]
                if not len(more):
                    continue
                ways = np.stack((more, more + self.stride[number]), axis=1)
                given = ClusterProblem(
                    self.listed, self.table.pairs, self.far, replicas, self.load, self.remaining_need(number, more)
                )
                outer = OuterReach(ways, number, fewest, fits, value, came)
                listed = int(inside(low, -1, given, self.free, self.seen))
                high = low + 1
                while high < len(value) and complete:
                    high = int(spread(low, high, listed, outer, given, self.free, self.workspace, self.seen, _PATIENCE))
                    complete = not limits.passed
            if not complete or (not fewest and value[everything].min() < NEVER):
                break
        pairs = (int(self.seen[1]), int(self.seen[2]), int(self.seen[3]))
        if value[everything].min() == NEVER:
            return FeasibilityResult(None, complete, pairs=pairs)
        return FeasibilityResult(self._pipeline(int(np.argmin(value[everything])), came), complete, pairs=pairs)

    def _useful(self, value: Integers, fits: Booleans) -> Integers:
        """The states that are reached, and not as well with a cluster less."""
        out = []
        for s in np.flatnonzero((value < NEVER) & fits).tolist():
            less = [s - int(step) for step, digit in zip(self.stride, self.digits[s], strict=True) if digit]
            if all(value[t] > value[s] for t in less):
                out.append(s)
        return np.array(out, dtype=np.int64)

    def _pipeline(self, state: int, came: np.ndarray) -> GroupedPipeline:
        """The pipeline that reaches everything in a state of clusters."""
        segments: list[tuple[int, int, int]] = []
        goal = len(came) - 1
        while goal:
            low, number = came[goal, state].tolist()
            segments.append((low, goal, number))
            goal, state = low, state - int(self.stride[number])
        table, costs = self.table, self.table.costs
        device = np.full(costs.units, -1, dtype=np.int64)
        groups: dict[int, tuple[int, ...]] = {}
        taken = [0] * len(table.kinds)
        value = 0.0
        for low, high, number in reversed(segments):
            replicas, members = self.replicas[number], table.kinds[number].members[taken[number]]
            taken[number] += 1
            need = self.remaining_need(number, np.zeros(1, dtype=np.int64))
            given = ClusterProblem(self.listed, table.pairs, self.far, replicas, self.load, need)
            inside(low, high, given, self.workspace, self.seen)
            state = int(np.argmin(self.workspace.reach[high][: len(replicas.digits)] + replicas.digits.sum(axis=1)))
            near = between(table.cover, table.positions, low, high)
            used = [0] * len(members)
            for base, goal, kind, copies in traced(high, state, self.workspace.origin, replicas):
                own = between(table.cover, table.positions, base, goal)
                group = tuple(members[kind][used[kind] : used[kind] + copies].tolist())
                used[kind] += copies
                device[own] = group[0]
                groups[group[0]] = group
                alone = table.clusters.load(costs, own, near, kind)
                value = max(value, table.replication.share(alone, own, kind, copies))
        return GroupedPipeline(value, device, groups)
