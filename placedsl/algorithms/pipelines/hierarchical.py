"""The best pipeline over clusters of devices, between which transfers cost more.   Tarnawski et al. 2020, Appendix C.3.

It is contiguous on all levels: the chain of ideals is cut into what the members of the machine have, that of a cluster
into what its members have, and so on; a member is a cluster or a device.  For two ideals the problem inside a cluster
is that of a machine in which edges that leave the cluster cost more.  Stages may be shared by devices of a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover
from placedsl.algorithms.kernels import between_looks
from placedsl.algorithms.pipelines.bottleneck_search import (
    BottleneckResult,
    FeasibilityOracle,
    FeasibilityResult,
    GroupedPipeline,
    improved,
    minimise_bottleneck,
    slices,
)
from placedsl.algorithms.pipelines.capped_loads import ComparedLoads, compared_loads
from placedsl.algorithms.pipelines.cluster_arrays import (
    ClusterEdges,
    ClusterProblem,
    ClusterReach,
    ClusterStages,
    KindStates,
)
from placedsl.algorithms.pipelines.cluster_stages_kernel import list_cluster_stages
from placedsl.algorithms.pipelines.cluster_states import ClusteredMachine, counted_members, depths, kind_states
from placedsl.algorithms.pipelines.clusters import Clusters, DeviceTree
from placedsl.algorithms.pipelines.hierarchical_kernel import FRAME, begin, go_on
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.replicated import (
    Replication,
    best_replicated,
    needed_after,
    replication_states,
)
from placedsl.algorithms.pipelines.replicated_kernel import NEVER, ReplicationStates
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import all_stage_pairs, between, ideal_sums
from placedsl.arrays import Booleans, Floats, Integers

#: The most ideals; and numbers in the list of stages, in the table of edges that leave clusters, and in what the
#: search writes.
MOST_IDEALS = 20_000
MOST_NUMBERS = 24_000_000
#: Pairs looked at between two looks at the clock.
_PATIENCE = 1_000_000
_ENDLESS = 2**62
#: Seconds for slices of orders, which only help the search proper.
_SLICING = 3.0


def best_hierarchical(
    costs: StageCostModel,
    clusters: Clusters,
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
    pipeline.  The devices of a group are neighbours among those of their class and cluster.
    """
    limits = limits or SearchLimits()
    if not np.isfinite(costs.least).all():
        return BottleneckResult(np.inf, None, True, np.inf)
    machine = ClusteredMachine(costs, clusters, replication)

    def table_of(cover: ChainCover, positions: np.ndarray, load: float) -> _ClusterTable | None:
        return _ClusterTable(machine, cover, positions, load) if positions.size else None

    soon = time.monotonic() + _SLICING
    sooner = replace(limits, deadline=soon if limits.deadline is None else min(soon, limits.deadline))
    start = slices(costs, table_of, sooner, max(at_least, costs.share))
    if start is not None and progress is not None:
        progress(start)
    # As if all devices were in one cluster: no load can be below that.
    flat = best_replicated(costs, machine.replication, limits, at_least=at_least, at_most=at_most, fewest=False)
    if flat.complete and flat.device is None:
        return flat
    cover = None if limits.passed else chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return BottleneckResult(np.inf, None, False, flat.bound, too_many=not limits.passed).better(start)
    start = _dealt(flat, table_of, cover, limits, start)
    tables = FeasibilityOracle(costs, cover, table_of, min(limits.most, MOST_IDEALS), limits)
    return minimise_bottleneck(tables, start, flat.bound, at_most=at_most, fewest=fewest)


def _dealt(
    flat: BottleneckResult,
    table_of: Callable[[ChainCover, np.ndarray, float], _ClusterTable | None],
    cover: ChainCover,
    limits: SearchLimits,
    best: GroupedPipeline | None,
) -> GroupedPipeline | None:
    """The stages of the best pipeline without clusters, dealt out to the clusters, where they can be and where that is
    clearly better than the best known."""
    if flat.device is None:
        return best
    rows = [np.zeros(cover.count, dtype=np.int64)]
    for leader in flat.groups:
        rows.append(rows[-1] + np.bincount(cover.chain[flat.device == leader], minlength=cover.count))
    table = table_of(cover, np.array(rows).astype(cover.dtype), np.inf)
    return best if table is None else improved(table, limits, flat.bound, best)


class _ClusterTable:
    """Ideals with their costs, and the search over them within a load."""

    def __init__(self, machine: ClusteredMachine, cover: ChainCover, positions: np.ndarray, load: float) -> None:
        self.machine, self.costs, self.cover = machine, machine.costs, cover
        self.pairs, self.positions = all_stage_pairs(
            self.costs.within(load * self.costs.classes.total),
            cover,
            positions,
            LoadPruning(self.costs, np.inf).weight,
        )
        self.sync = ideal_sums(cover, self.positions, machine.replication.sync)
        self.far = self._cluster_edges()
        self.listed: tuple[float, ClusterStages] | None = None

    def _cluster_edges(self) -> ClusterEdges | None:
        """The edges that cost something where they leave a cluster; None where that takes too much room."""
        costs, clusters, loads = self.costs, self.machine.clusters, self.costs.every_load
        paid: Booleans = np.any((clusters.read + clusters.make)[:, :loads] > 0.0, axis=(1, 2))
        edges = np.flatnonzero(paid.any(axis=0))
        if len(edges) * max(len(self.positions), costs.units) > MOST_NUMBERS:
            return None
        held = np.zeros((len(costs.readers), costs.units), dtype=np.int32)
        held[costs.touched, np.repeat(np.arange(costs.units), np.diff(costs.touch_start))] = costs.role
        code = np.ascontiguousarray(ideal_sums(self.cover, self.positions, held[edges]).T)
        readers = costs.readers[edges]
        ideal, edge = np.nonzero((code > 0) & (code <= 2 * readers))
        start = np.searchsorted(ideal, np.arange(len(code) + 1))
        # Level by level, as the last axis.
        read, make = (
            np.ascontiguousarray(np.concatenate([level[:loads][:, :, edges] for level in side], axis=2))
            for side in (clusters.read, clusters.make)
        )
        return ClusterEdges(
            code, start, edge.astype(np.int32), readers, np.ascontiguousarray(paid[:, edges]), read, make
        )

    def _list(
        self, load: float, pruning: LoadPruning, loads: ComparedLoads, limits: SearchLimits
    ) -> ClusterStages | None:
        """The stages within a load, or within one not much larger; None where there are too many, or no time."""
        if self.listed is not None and not loads.alone and load <= self.listed[0] <= 2.0 * load:
            return self.listed[1]
        self.listed = None
        # A device that is in no cluster takes stages as well.
        largest = np.maximum(self.machine.largest, np.minimum(self.machine.kinds[-1].devices, 1))
        main = int(np.argmax(largest))
        replicas = replication_states(self.machine.replication, pruning, largest, main, self.sync, loads)
        pairs, number, classes = loads.of_pairs(self.pairs), len(loads.order), len(largest)
        most = MOST_NUMBERS // (number * classes)
        start = np.zeros(len(self.positions) + 1, dtype=np.int64)
        allocated, done = min(most, 1 << 16), 0
        goal, cost = np.empty(allocated, dtype=np.int32), np.empty((allocated, number, classes))
        while True:
            done, full = list_cluster_stages(
                done, between_looks(_PATIENCE), pairs, replicas, loads.bound, start, goal, cost
            )
            if done == len(self.positions):
                break
            if (full and allocated == most) or limits.passed:
                return None
            if not full:
                continue
            wider = min(most, 4 * allocated)
            goal = np.concatenate((goal, np.empty(wider - allocated, dtype=np.int32)))
            cost = np.concatenate((cost, np.empty((wider - allocated, number, classes))))
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
        loads = compared_loads(
            self.costs, load, self.machine.replication.sync, (self.far.read, self.far.make) if self.far else ()
        )
        listed = None if self.far is None else self._list(load, pruning, loads, limits)
        if self.far is None or listed is None:
            return FeasibilityResult(None, False, not limits.passed)
        search = _ClusterSearch(self, loads, pruning, listed, self.far)
        if not search.fits_in_memory:
            return FeasibilityResult(None, False, True)
        return search.run(limits, fewest=fewest)


class _ClusterSearch:
    """The search over ideals and members used, within a load."""

    def __init__(
        self, table: _ClusterTable, loads: ComparedLoads, pruning: LoadPruning, listed: ClusterStages, far: ClusterEdges
    ) -> None:
        self.table, self.loads, self.pruning, self.listed, self.far = table, loads, pruning, listed, far
        self.machine = table.machine
        self.main = int(np.argmax(pruning.counts)) if pruning.paying is None else pruning.paying
        # The most states of what is at each depth, for two slots each; the machine is in one of its two.
        kinds, deepest = self.machine.kinds, self.machine.clusters.levels
        sizes = [np.prod(counted_members(kinds, x, self.main) + 1.0) for x in range(len(kinds))]
        self.width = np.zeros(2 * deepest + 2)
        self.width[0] = sizes[-1]
        for depth, kind in depths(self.machine.tree):
            if depth:
                self.width[2 * depth : 2 * depth + 2] = np.maximum(self.width[2 * depth], sizes[kind])
        self.seen = np.zeros(4, dtype=np.int64)

    @property
    def fits_in_memory(self) -> bool:
        """Whether what the search writes does."""
        return bool(self.width.sum() * len(self.table.positions) <= MOST_NUMBERS)

    @cached_property
    def kinds(self) -> KindStates:
        """The states of clusters."""
        return kind_states(self.machine.kinds, self.machine.replication, self.main)

    def _boundaries(self, level: int) -> tuple[Floats, Floats]:
        """K: what the paying class pays besides for the edges that an ideal between two members of a cluster of this
        level cuts, on either side: all that have them leave their clusters further in."""
        table, paying, far = self.table, self.pruning.paying, self.far
        clusters, edges = self.machine.clusters, len(far.readers)
        ideals = len(table.positions)
        timed = [q for q in self.pruning.timed if q < table.costs.loads]
        nothing = np.zeros(ideals)
        if paying is None:
            return nothing, nothing.copy()
        numbers = clusters.cluster[:, table.costs.classes.devices[paying]]
        levels = [k for k in range(level, clusters.levels) if (numbers[k] >= 0).all()]
        if not levels:
            return nothing, nothing.copy()
        ideal = np.repeat(np.arange(ideals), np.diff(far.cut_start))
        made = (far.code[ideal, far.cut_edge] & 1).astype(bool)
        read, make = (
            side[timed, paying].sum(axis=0).reshape(clusters.levels, edges)[levels].sum(axis=0)[far.cut_edge]
            for side in (far.read, far.make)
        )
        held, missing = np.where(made, make, read), np.where(made, read, make)
        return nothing + np.bincount(ideal, held, ideals), nothing + np.bincount(ideal, missing, ideals)

    def _fits(self) -> Booleans:
        """K x s: where the members of the machine that are used can have taken what is inside, and those that are left
        can take the rest."""
        pruning, table = self.pruning, self.table
        weight, paying = table.pairs.weight, pruning.paying
        held, missing = self._boundaries(0)
        if paying is not None:
            timed = [q for q in pruning.timed if q < table.costs.every_load]
            held += table.pairs.own[timed, paying].sum(axis=0)
            missing += table.pairs.rest[timed, paying].sum(axis=0)
        used = self.kinds.used[self.kinds.first[-2] :]
        fits = np.ones((len(weight), len(used)), dtype=bool)
        for s, digits in enumerate(used):
            for there, moving, taken in (
                (digits, held, weight), (pruning.counts - digits, missing, pruning.total - weight)
            ):  # fmt: skip
                # Where a class that pays nothing takes part, it may be the one that has the edges.
                alone = paying is not None and not np.delete(there, paying).any()
                fits[:, s] &= taken <= pruning.takes(there, moving if alone else 0.0)
        return fits

    def _needed(self, every: ReplicationStates) -> np.ndarray:
        """L x K x s: see :class:`ClusterProblem`."""
        pairs, pruning = self.table.pairs, self.pruning
        out = []
        for level in range(1, self.machine.clusters.levels + 1):
            rest = pairs.rest
            _, missing = self._boundaries(level)
            if missing.any():
                rest = rest.copy()
                rest[pruning.timed[0], pruning.paying] += missing
            out.append(needed_after(pairs.weight, rest, pruning, every))
        return np.array(out)

    def _prepared(self, fewest: bool) -> tuple[ClusterProblem, ClusterReach]:
        """What the kernels read and write."""
        table, pruning = self.table, self.pruning
        loads, far = self.loads, self.far
        every = replication_states(self.machine.replication, pruning, pruning.counts, self.main, table.sync, loads)
        far = far._replace(read=loads.of_components(far.read), make=loads.of_components(far.make))
        given = ClusterProblem(
            self.listed, table.pairs, far, self.kinds, every, loads.bound, fewest,
            np.ascontiguousarray(self._fits()), self._needed(every),
        )  # fmt: skip
        width = self.width.astype(np.int64)
        ideals, depths, slots = len(table.positions), len(width) // 2, len(width)
        entries, edges, states = ideals * int(width.sum()), self.far.paid.size + 1, int(width.max())
        room = ClusterReach(
            reach=np.full(entries, NEVER, dtype=np.int16), origin=np.empty((entries, 3), dtype=np.int32),
            start=np.concatenate(([0], np.cumsum(width)[:-1])) * ideals, width=width,
            listed=np.empty((slots, ideals), dtype=np.int32), number=np.zeros(slots, dtype=np.int64),
            bought=np.empty((depths, edges, 2), dtype=np.int32), sold=np.empty((depths, edges, 2), dtype=np.int32),
            leaving=np.zeros((depths, 4), dtype=np.int64), mark=np.zeros((depths, ideals), dtype=np.int64),
            frame=np.zeros((depths, FRAME), dtype=np.int64),
            left=np.tile(pruning.counts, (depths, 1)), state=np.zeros((depths, states), dtype=np.int64),
            spare=np.zeros((depths, states), dtype=np.int64),
        )  # fmt: skip
        return given, room

    def run(self, limits: SearchLimits, *, fewest: bool) -> FeasibilityResult:
        """From nothing to everything."""
        given, room = self._prepared(fewest)
        everything, complete = len(self.table.positions) - 1, True
        begin(len(self.machine.kinds) - 1, 0, 0, everything, given, room, self.seen)
        depth = 0
        while depth >= 0 and complete:
            depth = int(go_on(depth, 0, given, room, self.seen, between_looks(_PATIENCE)))
            complete = depth < 0 or not limits.passed
        pairs = (int(self.seen[1]), int(self.seen[2]), int(self.seen[3]))
        if self._rows(room, 0)[everything].min() == NEVER:
            return FeasibilityResult(None, complete, pairs=pairs)
        return FeasibilityResult(self._pipeline(given, room), complete, pairs=pairs)

    def _rows(self, room: ClusterReach, slot: int) -> np.ndarray:
        """K x s: what a slot of the search reaches."""
        ideals = len(self.table.positions)
        return room.reach[room.start[slot] :][: ideals * room.width[slot]].reshape(ideals, -1)

    def _pipeline(self, given: ClusterProblem, room: ClusterReach) -> GroupedPipeline:
        """The pipeline that reaches everything."""
        found = _Traced(self, given, room)
        room.reach[room.start[1] :] = NEVER
        room.number[1:] = 0
        found.trace(self.machine.tree, [], 0, len(self.table.positions) - 1)
        return GroupedPipeline(found.value, found.device, found.groups)


class _Traced:
    """A pipeline that is made of what the search reached."""

    def __init__(self, search: _ClusterSearch, given: ClusterProblem, room: ClusterReach) -> None:
        self.search, self.given, self.room = search, given, room
        self.value = 0.0
        self.device = np.full(search.table.costs.units, -1, dtype=np.int64)
        self.groups: dict[int, tuple[int, ...]] = {}

    def trace(self, cluster: DeviceTree, around: list[Integers], low: int, high: int) -> None:
        """Give a cluster what is between two ideals; ``around``: all units of each cluster it is in, and its own."""
        steps = self._steps(cluster.kind, len(around), low, high)
        table, classes = self.search.table, len(cluster.devices)
        taken = [0] * (classes + len(cluster.parts))
        for base, goal, member, copies in steps:
            own = between(table.cover, table.positions, base, goal)
            first = taken[member]
            taken[member] += copies
            if member >= classes:
                depth, inner = len(around) + 1, cluster.parts[member - classes][first]
                begin(inner.kind, depth, base, goal, self.given, self.room, self.search.seen)
                go_on(depth, depth, self.given, self.room, self.search.seen, _ENDLESS)
                self.trace(inner, [*around, own], base, goal)
                continue
            group = tuple(cluster.devices[member][first : first + copies].tolist())
            self.device[own] = group[0]
            self.groups[group[0]] = group
            alone = self.search.machine.clusters.load(table.costs, own, around, member)
            self.value = max(self.value, self.search.machine.replication.share(table.costs, alone, own, member, copies))

    def _steps(self, kind: int, depth: int, low: int, high: int) -> list[tuple[int, int, int, int]]:
        """The members of a cluster that the search has just reached ``high`` by, as (ideal, ideal, member, number)."""
        kinds, room, slot = self.search.kinds, self.room, 2 * depth
        rows = slice(int(kinds.first[kind]), int(kinds.first[kind + 1]))
        reach = self.search._rows(room, slot)[high][: rows.stop - rows.start]
        origin = room.origin[room.start[slot] :][: len(self.search.table.positions) * room.width[slot]]
        every = origin.reshape(-1, int(room.width[slot]), 3)
        state, stride = int(np.argmin(reach + kinds.direct[rows])), kinds.stride[kind]
        steps: list[tuple[int, int, int, int]] = []
        while high > low:
            base, member, copies = every[high, state].tolist()
            steps.append((base, high, member, copies))
            high, state = base, state - copies * int(stride[member])
        return steps[::-1]
