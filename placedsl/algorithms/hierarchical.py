"""The best pipeline over clusters of devices, between which transfers cost more.   Tarnawski et al. 2020, Appendix C.3.

It is contiguous at both levels: the chain of ideals is cut into what the clusters have, and that into stages.  For two
ideals the problem inside a cluster is that of a pipeline in which edges that leave the cluster cost more; the outer
search is over ideals and how many clusters of each kind have been used.  Stages may be shared by devices of a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from placedsl.algorithms.capacity import Capacity
from placedsl.algorithms.chains import Chains, chains
from placedsl.algorithms.hierarchical_kernel import Far, Onward, Room, Stretches, inside, spread, stretches
from placedsl.algorithms.ideal_dp import Limits
from placedsl.algorithms.pair_costs import between, pairs_of, sums
from placedsl.algorithms.replicated import Replication, best_replicated, copying_of, needed_after, traced
from placedsl.algorithms.replicated_kernel import NEVER
from placedsl.algorithms.stages import DeviceClasses, Stages
from placedsl.algorithms.threshold import Asked, Found, Pipeline, Tables, descend, improved, slices
from placedsl.graph.contraction import Quotient
from placedsl.graph.graph import Booleans, Floats, Integers

#: The most ideals, numbers in the list of stages, and numbers in the table of edges that leave clusters.
MOST_IDEALS = 20_000
MOST_NUMBERS = 24_000_000
#: Stages looked at between two looks at the clock.
_PATIENCE = 1_000_000
#: Seconds for slices of orders, which only help the search proper.
_SLICING = 3.0


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which devices form a cluster, and what is paid for an edge that leaves it, on top.

    ``cluster``  D a number a device, in the order of the devices' positions
    ``read``     m x c x e where a device reads the edge and its maker is in another cluster
    ``make``     m x c x e where a device makes the edge and some reader is in another cluster
    """

    cluster: Integers
    read: Floats
    make: Floats

    def load(self, stages: Stages, own: Integers, near: Integers, kind: int) -> float:
        """The largest load of a stage on one device; ``near``: all units of its cluster."""
        reading = stages.readings(own, kind)
        mine, there = _held(stages, own), _held(stages, near)
        makes = (mine & 1 != 0) & (there >> 1 < stages.readers)
        reads = (mine >> 1 > 0) & (there & 1 == 0)
        reading += self.make[:, kind][:, makes].sum(axis=1) + self.read[:, kind][:, reads].sum(axis=1)
        return float(reading[: stages.loads].max())


def _held(stages: Stages, units: Integers) -> Integers:
    """e: how much of each edge a set has, 1 for what makes it + 2 for each reader."""
    chosen = np.zeros(stages.units, dtype=bool)
    chosen[units] = True
    touching = np.repeat(chosen, np.diff(stages.touch_start))
    role = stages.role[touching].astype(float)
    return np.bincount(stages.touched[touching], weights=role, minlength=len(stages.readers)).astype(np.int64)


def merged(quotient: Quotient, values: Floats) -> Floats:
    """c x t: times of a quotient's tensors, from those of the graph's (c x tensors), as its transfers are."""
    out = np.zeros((len(values), len(quotient.tensor_producer)))
    some = np.flatnonzero(quotient.tensor_of >= 0)
    np.add.at(out.T, quotient.tensor_of[some], values.T[some])
    return out


def in_clusters(
    schedule: Callable[[Quotient, DeviceClasses], Stages],
    quotient: Quotient,
    classes: DeviceClasses,
    cluster: Integers,
    surcharge: Floats,
) -> tuple[Stages, Clusters]:
    """The stages under a schedule, and clusters whose edges cost ``surcharge`` (c x t) more where they leave them.

    t are the tensors of the quotient: :func:`merged` makes their surcharges from those of the graph's tensors.
    """
    number = len(classes.counts)
    # Twice the classes, so that edges are kept that cost something in either way; transfers count where theirs do.
    twice = replace(
        quotient, work=np.tile(quotient.work, (2, 1)), transfer=np.concatenate((quotient.transfer, surcharge))
    )
    both = schedule(twice, DeviceClasses(classes.counts * 2, classes.memory * 2, classes.devices * 2))
    stages = replace(
        both, classes=classes, work=both.work[:number], unit_meter=both.unit_meter[:, :number],
        read_meter=both.read_meter[:, :number].copy(), make_meter=both.make_meter[:, :number].copy(),
        limit=both.limit[:, :number],
    )  # fmt: skip
    return stages, Clusters(cluster, both.read_meter[:, number:].copy(), both.make_meter[:, number:].copy())


def best_hierarchical(
    stages: Stages,
    clusters: Clusters,
    replication: Replication,
    limits: Limits | None = None,
    *,
    at_least: float = 0.0,
    fewest: bool = True,
    progress: Callable[[Pipeline], None] | None = None,
) -> Found:
    """The pipeline with the least largest load; where ``fewest``, of equally good ones one with the fewest devices.

    ``at_least``: a proven bound.  ``progress`` hears of the first pipeline.  The devices of a group are neighbours
    among those of their class and cluster.
    """
    limits = limits or Limits()
    if not np.isfinite(stages.least).all():
        return Found(np.inf, None, True, np.inf)
    kinds = _kinds(stages, clusters)
    largest = np.max([k.devices for k in kinds], axis=0)
    near = replace(
        replication,
        allowed=tuple(
            tuple(r for r in a if r == 1 or r <= n) for a, n in zip(replication.allowed, largest, strict=True)
        ),
    )
    # As if all devices were in one cluster: no load can be below that.
    flat = best_replicated(stages, near, limits, at_least=at_least, fewest=False)
    if flat.complete and flat.device is None:
        return flat

    def table_of(cover: Chains, positions: np.ndarray) -> _Table | None:
        return _Table(stages, clusters, near, kinds, cover, positions) if positions.size else None

    cover = None if limits.passed else chains(stages.units, stages.before, stages.after)
    start = None if cover is None else _dealt(flat, table_of, cover, limits)
    soon = time.monotonic() + _SLICING
    sooner = replace(limits, deadline=soon if limits.deadline is None else min(soon, limits.deadline))
    start = slices(stages, table_of, sooner, flat.bound, start)
    if start is not None and progress is not None:
        progress(start)
    if cover is None:
        return Found(np.inf, None, False, flat.bound, too_many=not limits.passed).better(start)
    tables = Tables(stages, cover, table_of, min(limits.most, MOST_IDEALS), limits)
    return descend(tables, start, flat.bound, fewest=fewest)


def _dealt(
    flat: Found, table_of: Callable[[Chains, np.ndarray], _Table | None], cover: Chains, limits: Limits
) -> Pipeline | None:
    """The stages of the best pipeline without clusters, dealt out to the clusters, where they can be."""
    if flat.device is None:
        return None
    rows = [np.zeros(cover.count, dtype=np.int64)]
    for leader in flat.groups:
        rows.append(rows[-1] + np.bincount(cover.chain[flat.device == leader], minlength=cover.count))
    table = table_of(cover, np.array(rows).astype(cover.dtype))
    return None if table is None else improved(table, limits, flat.bound, None)


@dataclass(frozen=True, eq=False)
class _Kind:
    """Clusters with the same devices: how many of each class one has, and per cluster and class which."""

    devices: Integers
    members: list[list[Integers]]


def _kinds(stages: Stages, clusters: Clusters) -> list[_Kind]:
    """The clusters by what they have."""
    known: dict[bytes, _Kind] = {}
    for number in np.unique(np.concatenate([clusters.cluster[d] for d in stages.classes.devices])):
        own = [d[clusters.cluster[d] == number] for d in stages.classes.devices]
        devices = np.array([len(d) for d in own])
        known.setdefault(devices.tobytes(), _Kind(devices, [])).members.append(own)
    return list(known.values())


class _Table:
    """Ideals with their costs, and the search over them within a load."""

    def __init__(
        self, stages: Stages, clusters: Clusters, replication: Replication, kinds: Sequence[_Kind], cover: Chains,
        positions: np.ndarray,
    ) -> None:  # fmt: skip
        self.stages, self.clusters, self.replication = stages, clusters, replication
        self.kinds, self.cover = kinds, cover
        self.pairs, self.positions = pairs_of(stages, cover, positions, Capacity(stages, np.inf).weight)
        self.sync = sums(cover, self.positions, replication.sync)
        self.far = self._far()
        self.listed: tuple[float, Stretches] | None = None

    def _far(self) -> Far | None:
        """The edges that cost something where they leave a cluster; None where that takes too much room."""
        stages, clusters, loads = self.stages, self.clusters, self.stages.loads
        edges = np.flatnonzero(((clusters.read + clusters.make)[:loads] > 0.0).any(axis=(0, 1)))
        if len(edges) * max(len(self.positions), stages.units) > MOST_NUMBERS:
            return None
        held = np.zeros((len(stages.readers), stages.units), dtype=np.int32)
        held[stages.touched, np.repeat(np.arange(stages.units), np.diff(stages.touch_start))] = stages.role
        code = np.ascontiguousarray(sums(self.cover, self.positions, held[edges]).T)
        readers = stages.readers[edges]
        ideal, edge = np.nonzero((code > 0) & (code <= 2 * readers))
        start = np.searchsorted(ideal, np.arange(len(code) + 1))
        read, make = (np.ascontiguousarray(side[:loads][:, :, edges]) for side in (clusters.read, clusters.make))
        return Far(code, start, edge.astype(np.int32), readers, read, make)

    def _list(self, load: float, capacity: Capacity, limits: Limits) -> Stretches | None:
        """The stages within a load, or within one not much larger; None where there are too many, or no time."""
        if self.listed is not None and load <= self.listed[0] <= 2.0 * load:
            return self.listed[1]
        self.listed = None
        largest = np.max([k.devices for k in self.kinds], axis=0)
        copying = copying_of(self.replication, capacity, largest, int(np.argmax(largest)), self.sync)
        loads, classes = self.stages.loads, len(largest)
        most = MOST_NUMBERS // (loads * classes)
        start = np.zeros(len(self.positions) + 1, dtype=np.int64)
        room, done = min(most, 1 << 16), 0
        goal, cost = np.empty(room, dtype=np.int32), np.empty((room, loads, classes))
        while True:
            done = int(stretches(done, self.pairs, copying, load, start, goal, cost))
            if done == len(self.positions):
                break
            if room == most or limits.passed:
                return None
            wider = min(most, 4 * room)
            goal = np.concatenate((goal, np.empty(wider - room, dtype=np.int32)))
            cost = np.concatenate((cost, np.empty((wider - room, loads, classes))))
            room = wider
        goal = goal[: start[-1]].copy()
        which = np.argsort(goal, kind="stable").astype(np.int32)
        until = np.searchsorted(goal[which], np.arange(len(start)))
        base = np.repeat(np.arange(len(self.positions), dtype=np.int32), np.diff(start))[which]
        found = Stretches(start, goal, cost[: start[-1]].copy(), until, base, which)
        self.listed = load, found
        return found

    def within(self, load: float, limits: Limits, *, fewest: bool) -> Asked:
        """A pipeline within the load; where ``fewest``, one with the fewest devices."""
        if self.positions[0].any():
            return Asked(None, True)
        capacity = Capacity(self.stages, load)
        listed = None if self.far is None else self._list(load, capacity, limits)
        if self.far is None or listed is None:
            return Asked(None, False, not limits.passed)
        return _Outer(self, load, capacity, listed, self.far).run(limits, fewest=fewest)


class _Outer:
    """The search over ideals and clusters used, within a load."""

    def __init__(self, table: _Table, load: float, capacity: Capacity, listed: Stretches, far: Far) -> None:
        self.table, self.load, self.capacity, self.listed, self.far = table, load, capacity, listed, far
        numbers = [len(k.members) for k in table.kinds]
        self.numbers = np.array(numbers)
        self.digits = np.array(list(product(*(range(n + 1) for n in numbers[::-1]))), dtype=np.int64)[:, ::-1]
        self.stride = np.concatenate(([1], np.cumprod(self.numbers + 1)[:-1])).astype(np.int64)
        self.devices = np.array([k.devices for k in table.kinds])
        self.main = int(np.argmax(capacity.counts)) if capacity.paying is None else capacity.paying
        self.all = copying_of(table.replication, capacity, capacity.counts, self.main, table.sync)
        self.needed = needed_after(table.pairs.weight, table.pairs.rest, capacity, self.all)
        self.copying = [
            copying_of(table.replication, capacity, kind.devices, self.main, table.sync) for kind in table.kinds
        ]
        ideals, states = len(table.positions), max(len(c.digits) for c in self.copying)
        edges = len(far.readers)
        self.free, self.room = (
            Room(
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
        capacity, table = self.capacity, self.table
        weight, paying, far = table.pairs.weight, capacity.paying, self.far
        held, missing = (np.zeros(len(weight)) for _ in range(2))
        if paying is not None:
            timed = [q for q in capacity.timed if q < table.stages.loads]
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
                (digits, held, weight), (self.numbers - digits, missing, capacity.total - weight)
            ):  # fmt: skip
                there = number @ self.devices
                # Where a class that pays nothing takes part, it may be the one that has the edges.
                alone = paying is not None and not np.delete(there, paying).any()
                fits[:, s] &= taken <= capacity.takes(there, moving if alone else 0.0)
        return fits

    def onward(self, number: int, states: Integers) -> Onward:
        """What is left beside a cluster of one kind after some states of clusters, at the most."""
        left = ((self.numbers - self.digits[states]) @ self.devices).max(axis=0)
        digits = self.capacity.counts - left + self.copying[number].digits
        digits[:, self.main] = 0
        return Onward(self.needed, digits @ self.all.stride, int(left[self.main]))

    def run(self, limits: Limits, *, fewest: bool) -> Asked:
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
            for number, copying in enumerate(self.copying):
                more = states[self.digits[states, number] < self.numbers[number]]
                if not len(more):
                    continue
                ways = np.stack((more, more + self.stride[number]), axis=1)
                given = (self.listed, self.table.pairs, self.far, copying, self.load, self.onward(number, more))
                listed = inside(low, -1, *given, self.free, self.seen)
                high = low + 1
                while high < len(value) and complete:
                    high = int(
                        spread(
                            low, high, listed, ways, number, fewest, fits, value, came, *given, self.free, self.room,
                            self.seen, _PATIENCE,
                        )
                    )  # fmt: skip
                    complete = not limits.passed
            if not complete or (not fewest and value[everything].min() < NEVER):
                break
        pairs = (int(self.seen[1]), int(self.seen[2]), int(self.seen[3]))
        if value[everything].min() == NEVER:
            return Asked(None, complete, pairs=pairs)
        return Asked(self._pipeline(int(np.argmin(value[everything])), came), complete, pairs=pairs)

    def _useful(self, value: Integers, fits: Booleans) -> Integers:
        """The states that are reached, and not as well with a cluster less."""
        out = []
        for s in np.flatnonzero((value < NEVER) & fits).tolist():
            less = [s - int(step) for step, digit in zip(self.stride, self.digits[s], strict=True) if digit]
            if all(value[t] > value[s] for t in less):
                out.append(s)
        return np.array(out, dtype=np.int64)

    def _pipeline(self, state: int, came: np.ndarray) -> Pipeline:
        """The pipeline that reaches everything in a state of clusters."""
        segments: list[tuple[int, int, int]] = []
        goal = len(came) - 1
        while goal:
            low, number = came[goal, state].tolist()
            segments.append((low, goal, number))
            goal, state = low, state - int(self.stride[number])
        table, stages = self.table, self.table.stages
        device = np.full(stages.units, -1, dtype=np.int64)
        groups: dict[int, tuple[int, ...]] = {}
        taken = [0] * len(table.kinds)
        value = 0.0
        for low, high, number in reversed(segments):
            copying, members = self.copying[number], table.kinds[number].members[taken[number]]
            taken[number] += 1
            onward = self.onward(number, np.zeros(1, dtype=np.int64))
            inside(low, high, self.listed, table.pairs, self.far, copying, self.load, onward, self.room, self.seen)
            state = int(np.argmin(self.room.reach[high][: len(copying.digits)] + copying.digits.sum(axis=1)))
            near = between(table.cover, table.positions, low, high)
            used = [0] * len(members)
            for base, goal, kind, copies in traced(high, state, self.room.origin, copying):
                own = between(table.cover, table.positions, base, goal)
                group = tuple(members[kind][used[kind] : used[kind] + copies].tolist())
                used[kind] += copies
                device[own] = group[0]
                groups[group[0]] = group
                alone = table.clusters.load(stages, own, near, kind)
                value = max(value, table.replication.share(alone, own, kind, copies))
        return Pipeline(value, device, groups)
