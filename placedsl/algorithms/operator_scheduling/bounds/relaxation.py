"""The linear relaxation of operator scheduling: a lower bound that combines work, memory and paths.

    minimise T
    the shares of a node on the devices add up to 1; the memory of the shares on a device is within its limit
    end(v) >= end(u) + the time of v at its shares + the transfer time at the shares of pairs of devices,  end <= T
    sequential: the times of the shares on a device add up to at most T
    congestion: the transfer times over a resource add up to at most T

For each read of a tensor, the shares of pairs of devices have the shares of the producer and of the reader as sums.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, options, supported, unit_memory
from placedsl.graph.graph import Floats, Integers

#: Pairs of devices are considered if there are at most so many in total.
_MOST_PAIRS = 150_000
#: The relative error that the solver's rounding may add.
_ROUNDING = 1e-6


def relaxed_latency(instance: SchedulingInstance, seconds: float, *, pairs: bool = True) -> float:
    """A lower bound on the latency in seconds: inf if the relaxation is infeasible, 0 if it was not solved within
    ``seconds``.

    Without ``pairs`` transfers take no time: weaker, and far quicker.
    """
    rows = _Rows()
    able = supported(instance)
    unit, device = np.nonzero(able)
    shares = len(unit)
    number = np.full(able.shape, -1, dtype=np.int64)
    number[unit, device] = np.arange(shares)
    ends = shares + np.arange(instance.nodes)
    latency = shares + instance.nodes
    node, on = np.nonzero(options(instance))
    share = number[instance.unit[node], on]
    time = instance.time[node, on]
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    source, target = instance.producer[tensor], instance.reader
    reads = np.arange(len(tensor))
    size = unit_memory(instance)
    for d in np.flatnonzero(np.isfinite(instance.room)).tolist():
        here = np.flatnonzero(device == d)
        rows.add(np.zeros(len(here), dtype=np.int64), here, size[unit[here]], [float(instance.room[d])])
    if instance.sequential:
        own = np.arange(instance.devices)
        rows.add(np.concatenate([on, own]), np.concatenate([share, np.full(instance.devices, latency)]),
                 np.concatenate([time, -np.ones(instance.devices)]), np.zeros(instance.devices))  # fmt: skip
    every = np.arange(instance.nodes)
    rows.add(np.concatenate([every, every]), np.concatenate([ends, np.full(instance.nodes, latency)]),
             np.concatenate([np.ones(instance.nodes), -np.ones(instance.nodes)]), np.zeros(instance.nodes))  # fmt: skip
    first = np.flatnonzero((np.diff(instance.input_start) == 0)[node])
    rows.add(np.concatenate([node[first], every]), np.concatenate([share[first], ends]),
             np.concatenate([time[first], -np.ones(instance.nodes)]), np.zeros(instance.nodes))  # fmt: skip
    # What each read takes: the reader's time, and the tensor's way.
    order = np.argsort(node, kind="stable")
    begin = np.searchsorted(node[order], np.arange(instance.nodes + 1))
    read_of, pair_share = _repeated(reads, target, begin, order)
    columns = [ends[source], ends[target], share[pair_share]]
    entries = [np.ones(len(reads)), -np.ones(len(reads)), time[pair_share]]
    lines = [reads, reads, read_of]
    width = latency + 1
    equal = _Rows()
    equal.add(unit, np.arange(shares), np.ones(shares), np.ones(len(able)))
    if pairs and 0 < len(reads) * instance.devices**2 <= _MOST_PAIRS:
        a, b = np.divmod(np.arange(instance.devices**2), instance.devices)
        r, way = np.repeat(reads, instance.devices**2), np.tile(np.arange(instance.devices**2), len(reads))
        move = _moves(instance, tensor[r], a[way], b[way])
        same = (instance.unit[source] == instance.unit[target])[r] & (a[way] != b[way])
        good = (
            np.isfinite(move) & ~same & able[instance.unit[source[r]], a[way]] & able[instance.unit[target[r]], b[way]]
        )
        r, way, move = r[good], way[good], move[good]
        pair = width + np.arange(len(r))
        width += len(r)
        lines.append(r)
        columns.append(pair)
        entries.append(move)
        for end, which in ((source, a), (target, b)):
            key, place = np.unique(r * instance.devices + which[way], return_inverse=True)
            read, held = np.divmod(key, instance.devices)
            share_of = number[instance.unit[end[read]], held]
            equal.add(np.concatenate([place, np.arange(len(key))]), np.concatenate([pair, share_of]),
                      np.concatenate([np.ones(len(pair)), -np.ones(len(key))]), np.zeros(len(key)))  # fmt: skip
            _absent(equal, number, instance, end, reads, key)
        width = _resources(rows, instance, tensor[r], way, pair, latency, width)
    rows.add(np.concatenate(lines), np.concatenate(columns), np.concatenate(entries), np.zeros(len(reads)))
    goal = np.zeros(width)
    goal[latency] = 1.0
    solved = linprog(
        goal, A_ub=rows.matrix(width), b_ub=rows.limits(), A_eq=equal.matrix(width), b_eq=equal.limits(),
        method="highs", options={"time_limit": seconds},
    )  # fmt: skip
    if solved.status == 2:
        return np.inf
    return float(solved.fun) * (1.0 - _ROUNDING) if solved.status == 0 else 0.0


class _Rows:
    """Rows of a linear program, collected block by block."""

    def __init__(self) -> None:
        self.parts: list[tuple[Integers, Integers, Floats]] = []
        self.right: list[Floats] = []
        self.height = 0

    def add(self, row: Integers, column: Integers, entry: Floats, right: Floats | list[float]) -> None:
        """Add rows, numbered from 0, with their entries and right-hand sides."""
        self.parts.append((row + self.height, column, entry))
        self.right.append(np.asarray(right, dtype=np.float64))
        self.height += len(right)

    def matrix(self, width: int) -> coo_array:
        """All rows as a sparse matrix."""
        row, column, entry = (np.concatenate(arrays) for arrays in zip(*self.parts, strict=True))
        return coo_array((entry, (row, column)), shape=(self.height, width)).tocsr()

    def limits(self) -> Floats:
        """The right-hand sides."""
        return np.concatenate(self.right)


def _repeated(reads: Integers, target: Integers, begin: Integers, order: Integers) -> tuple[Integers, Integers]:
    """For each read, the pairs of its reader and a device: the read, and the number of the pair."""
    count = np.diff(begin)[target]
    read = np.repeat(reads, count)
    at = np.repeat(begin[target], count) + np.arange(len(read)) - np.repeat(np.cumsum(count) - count, count)
    return read, order[at]


def _moves(instance: SchedulingInstance, tensor: Integers, a: Integers, b: Integers) -> Floats:
    if len(instance.given):
        return np.asarray(instance.given[tensor, a, b])
    return np.asarray(instance.fixed[a, b] + instance.per_size[a, b] * instance.size[tensor])


def _absent(
    equal: _Rows, number: Integers, instance: SchedulingInstance, end: Integers, reads: Integers, key: Integers
) -> None:
    """Fix to 0 the shares of devices that no pair of a read has."""
    every = (reads[:, None] * instance.devices + np.arange(instance.devices)).ravel()
    missing = every[~np.isin(every, key)]
    read, d = np.divmod(missing, instance.devices)
    column = number[instance.unit[end[read]], d]
    column = np.unique(column[column >= 0])
    equal.add(np.arange(len(column)), column, np.ones(len(column)), np.zeros(len(column)))


def _resources(
    rows: _Rows, instance: SchedulingInstance, tensor: Integers, way: Integers, pair: Integers, latency: int, width: int
) -> int:
    """Add the rows of the resources: a tensor moves over a pair of devices as much as its reader with the largest
    share; the new number of columns.
    """
    if not instance.resources:
        return width
    key, place = np.unique(tensor * instance.devices**2 + way, return_inverse=True)
    moved, over = np.divmod(key, instance.devices**2)
    most = width + np.arange(len(key))
    line = np.arange(len(pair))
    rows.add(np.concatenate([line, line]), np.concatenate([pair, most[place]]),
             np.concatenate([np.ones(len(pair)), -np.ones(len(pair))]), np.zeros(len(pair)))  # fmt: skip
    a, b = np.divmod(over, instance.devices)
    time = _moves(instance, moved, a, b)
    count = np.diff(instance.resource_start)[over]
    of = np.repeat(np.arange(len(key)), count)
    at = (
        np.repeat(instance.resource_start[over], count)
        + np.arange(len(of))
        - np.repeat(np.cumsum(count) - count, count)
    )
    own = np.arange(instance.resources)
    ones = np.ones(instance.resources)
    rows.add(np.concatenate([instance.resource[at], own]), np.concatenate([most[of], np.full(len(own), latency)]),
             np.concatenate([time[of], -ones]), np.zeros(len(own)))  # fmt: skip
    return width + len(key)
