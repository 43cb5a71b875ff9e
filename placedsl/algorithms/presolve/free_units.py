"""Units that take no time, and which of them another unit can carry along without loss.

A unit without time is *dominated* by a host where no placement is worse after the unit has moved to the host's device.
docs/presolve.md has the conditions and their proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

import numpy as np

from placedsl.algorithms.units import with_rounding
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.contraction import contraction_units
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import Problem
from placedsl.records import dataclass

#: With more units than this, hosts are only looked for among sole neighbours.
_MOST_RELATED = 20_000
#: Units that touch a tensor with a unit that nothing comes before or after: so many are tried as its host.
_MOST_TRIED = 16


@dataclass(frozen=True, eq=False)
class PaidTensor:
    """A tensor, or a pass's share of it, that costs its readers and its producer something.

    ``reading``, ``making``  the load that counts the cost for a device that reads it from elsewhere, and for one whose
                             tensor is read elsewhere; -1: none does
    ``cost``                 D seconds
    """

    producer: int
    readers: frozenset[int]
    reading: int
    making: int
    cost: Floats


@dataclass(frozen=True, eq=False)
class FreeUnits:
    """The units of a problem, and those without time with all that they touch.  u units, n nodes, D devices.

    ``unit_of_node``  n;  ``free``  u: the unit takes no time;  ``memory``  u;  ``supported``  u x D
    ``before``, ``after``  pairs of units;  ``tensors``  those that touch a free unit
    ``tight``     memory can matter at all
    ``distance``  what a tensor costs depends on which device has its other end
    """

    unit_of_node: Integers
    free: Booleans
    memory: Floats
    supported: Booleans
    before: Integers
    after: Integers
    tensors: tuple[PaidTensor, ...]
    tight: bool
    distance: bool

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.free)


def free_units(problem: Problem) -> FreeUnits:
    """The units of a contiguous problem, and which of them take no time."""
    graph = problem.graph
    groups = problem.colocation_groups()
    unit = contraction_units(graph.nodes, groups, problem.precedence_source, problem.precedence_target)
    units = int(unit.max(initial=-1)) + 1
    goal = problem.objectives[0].body
    peak = isinstance(goal, Provided) and goal.name == "peak_memory"
    finite = np.isfinite(problem.time)
    taking = (graph.memory > 0.0) if peak else np.where(finite, problem.time, 0.0).any(axis=1)
    sharing = problem.execution.data_parallelism
    if sharing is not None:
        taking = taking | sharing.synchronisation.any(axis=1)
    free = np.ones(units, dtype=bool)
    free[unit[taking]] = False
    memory = np.bincount(unit, graph.memory, minlength=units).astype(float)
    supported = np.ones((units, problem.time.shape[1]), dtype=bool)
    np.logical_and.at(supported, unit, finite)
    before, after = unit[problem.precedence_source], unit[problem.precedence_target]
    apart = before != after
    limits = with_rounding(problem.memory_limits, graph.memory)
    return FreeUnits(
        unit, free, memory, supported, before[apart], after[apart],
        () if peak or not free.any() else tuple(_paid_tensors(problem, unit, free)),
        bool((graph.memory.sum() > limits).any()), bool(problem.machine.clusters),
    )  # fmt: skip


def _paid_tensors(problem: Problem, unit: Integers, free: Booleans) -> Iterable[PaidTensor]:
    """The tensors that cost something and touch a free unit."""
    graph = problem.graph
    producer, reader = unit[graph.tensor_producer], unit[graph.edge_target]
    costly = problem.transfer.any(axis=1)
    if problem.cluster_surcharge.size:
        costly |= problem.cluster_surcharge.any(axis=0)
    touched = free[producer]
    np.logical_or.at(touched, graph.edge_tensor, free[reader])
    kept = touched & costly
    passes = problem.execution.order == "gpipe" and bool(graph.backward.any())
    duplex = problem.execution.communication == "full_duplex"
    readers: dict[tuple[int, bool], set[int]] = {}
    for t, v, later in zip(
        graph.edge_tensor[kept[graph.edge_tensor]].tolist(), reader[kept[graph.edge_tensor]].tolist(),
        graph.backward[graph.edge_target[kept[graph.edge_tensor]]].tolist(), strict=True,
    ):  # fmt: skip
        readers.setdefault((t, bool(later) and passes), set()).add(v)
    for t in np.flatnonzero(kept).tolist():
        made, cost = int(producer[t]), problem.transfer[t]
        parts = [frozenset(readers.get((t, later), ())) for later in (False, True)]
        # Loads are numbered: 0 and 1 by pass, 2 more for what is sent where that counts by itself.
        sent = 2 * duplex
        if not passes:
            yield PaidTensor(made, parts[0], 0, sent, cost)
            continue
        own = int(graph.backward[graph.tensor_producer[t]])
        yield from (PaidTensor(made, part, which, -1, cost) for which, part in enumerate(parts))
        yield PaidTensor(made, parts[0] | parts[1], -1, sent + own, cost)


@dataclass(eq=False)
class Attaching:
    """Free units on their way to hosts; each step loses nothing of the problem that the steps before it have left.

    ``memory`` u: what counts of each unit;  ``root`` u: the unit that each is part of by now
    """

    units: FreeUnits
    memory: Floats
    root: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        data = self.units
        self.root = list(range(data.units))
        self.readers = [set(one.readers) - {one.producer} for one in data.tensors]
        self.producer = [one.producer for one in data.tensors]
        self.touching: dict[int, set[int]] = {v: set() for v in np.flatnonzero(data.free).tolist()}
        for i, made in enumerate(self.producer):
            for v in (*self.readers[i], made):
                if v in self.touching and self.readers[i]:
                    self.touching[v].add(i)
        self.earlier: dict[int, set[int]] = {v: set() for v in self.touching}
        self.later: dict[int, set[int]] = {v: set() for v in self.touching}
        near = data.free[data.before] | data.free[data.after]
        for u, v in zip(data.before[near].tolist(), data.after[near].tolist(), strict=True):
            if u in self.later:
                self.later[u].add(v)
            if v in self.earlier:
                self.earlier[v].add(u)
        self.related: list[int] | None = None

    def of(self, unit: int) -> int:
        """The unit that another is part of."""
        root = self.root
        while root[unit] != unit:
            root[unit] = root[root[unit]]
            unit = root[unit]
        return unit

    def neighbours(self, known: Iterable[int], own: int) -> set[int]:
        """The units that those around a unit are part of by now."""
        return {self.of(v) for v in known} - {own}

    def attach(self) -> None:
        """Move every free unit that is dominated to its host, until none is left that is."""
        waiting = [v for v in self.touching if self.memory[v] == 0.0 or not self.units.tight]
        while True:
            left = [v for v in waiting if (h := self.host(v)) < 0 or not self.join(v, h)]
            if len(left) == len(waiting):
                return
            waiting = left[::-1]  # rows of units without time are taken up from either end

    def join(self, unit: int, host: int) -> bool:
        """Make a unit part of its host."""
        self.root[unit] = host
        for i in self.touching.pop(unit):
            if self.producer[i] == unit:
                self.producer[i] = host
            if unit in self.readers[i]:
                self.readers[i].discard(unit)
                self.readers[i].add(host)
            self.readers[i].discard(self.producer[i])
            if host in self.touching:
                self.touching[host].add(i)
        for around in (self.earlier, self.later):
            known = around.pop(unit)
            if host in around:
                around[host] |= known
        return True

    def host(self, unit: int) -> int:
        """A unit that dominates a free unit; -1 where there is none."""
        earlier, later = (self.neighbours(one[unit], unit) for one in (self.earlier, self.later))
        candidates = self.last_of(earlier) + self.first_of(later)
        if not earlier and not later:
            ends = {v for i in self.touching[unit] for v in (*self.readers[i], self.producer[i])}
            candidates = sorted(ends - {unit})[:_MOST_TRIED]
            if not candidates:
                candidates = self.anywhere(unit)
        supported = self.units.supported
        for host in candidates:
            if not (supported[host] & ~supported[unit]).any() and self.carries(host, unit):
                return host
        return -1

    def anywhere(self, unit: int) -> list[int]:
        """A unit that runs nowhere else, for one that touches nothing."""
        supported = self.units.supported
        fits = ~(supported & ~supported[unit]).any(axis=1)
        fits[unit] = False
        for v in np.flatnonzero(fits).tolist():
            if (host := self.of(v)) != unit and fits[host]:
                return [host]
        return []

    def last_of(self, earlier: set[int]) -> list[int]:
        """The one of these that all others come before."""
        if len(earlier) < 2:
            return list(earlier)
        reach = self.reach()
        return [] if reach is None else [u for u in earlier if all(reach[v] >> u & 1 for v in earlier)]

    def first_of(self, later: set[int]) -> list[int]:
        """The one of these that comes before all others."""
        if len(later) < 2:
            return list(later)
        reach = self.reach()
        return [] if reach is None else [u for u in later if all(reach[u] >> v & 1 for v in later)]

    def reach(self) -> Sequence[int] | None:
        """Per unit the set of all that comes after it, itself included, as bits; None where that is too large.

        What is attached to a host has come between others that the host lies between as well, so that this holds for
        what is left.
        """
        data = self.units
        if data.units > _MOST_RELATED:
            return None
        if self.related is None:
            from placedsl.graph.order import csr, topological

            start, later = (side.tolist() for side in csr(data.before, data.after, data.units))
            order = topological(data.units, data.before, data.after)
            assert order is not None, "units are on no cycle"
            reach = [1 << v for v in range(data.units)]
            for u in order.tolist()[::-1]:
                for v in later[start[u] : start[u + 1]]:
                    reach[u] |= reach[v]
            self.related = reach
        return self.related

    def beside(self) -> Integers | None:
        """u: how many other units each is not ordered against; None where there are too many units."""
        after = self.reach()
        if after is None:
            return None
        data = self.units
        turned = replace(data, before=data.after, after=data.before)
        before = Attaching(turned, self.memory).reach()
        assert before is not None, "there are as many units"
        related = [one.bit_count() + other.bit_count() for one, other in zip(after, before, strict=True)]
        return data.units + 1 - np.array(related, dtype=np.int64)

    def carries(self, host: int, unit: int) -> bool:
        """Whether no device pays more for tensors after a unit has moved to the device of its host.

        ``owed``: what is read, and what is sent, where nothing was; ``spared``: what is no longer.
        """
        owed: dict[tuple[str, int, bool], Floats] = {}
        spared: dict[tuple[str, int, bool], Floats] = {}
        for i in self.touching[unit]:
            one, readers = self.units.tensors[i], self.readers[i]
            made = self.producer[i] == unit
            if not readers:
                continue
            if made and host in readers and len(readers) > 1:
                if self.units.distance or one.reading != one.making:
                    return False
                continue
            sole = readers == {host} if made else host == self.producer[i] and readers == {unit}
            if not sole and not made and (host == self.producer[i] or host in readers):
                continue
            account = spared if sole else owed
            for side, load in (("read", one.reading), ("sent", one.making)):
                if load >= 0:
                    account[side, load, made] = account.get((side, load, made), 0.0) + one.cost
        if owed and self.units.distance:
            return False
        return all(
            (side, load, not made) in spared and bool((cost <= spared[side, load, not made]).all())
            for (side, load, made), cost in owed.items()
        )
