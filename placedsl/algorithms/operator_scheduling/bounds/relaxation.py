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

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import earliest_end
from placedsl.algorithms.operator_scheduling.instance import (
    SchedulingInstance,
    moves,
    no_longer_than,
    options,
    supported,
    unit_memory,
)
from placedsl.arrays import Integers
from placedsl.graph.order import csr, rows_of
from placedsl.ir.linear_rows import LinearRows
from placedsl.tolerances import LP_OPTIMUM

#: Pairs of devices are considered if there are at most so many in total.
_MOST_PAIRS = 150_000


def relaxed_latency(instance: SchedulingInstance, seconds: float, *, pairs: bool = True) -> float:
    """A lower bound on the latency in seconds: inf if the relaxation is infeasible, 0 if it was not solved within
    ``seconds``.

    Without ``pairs`` transfers take no time: weaker, and far quicker.
    """
    unit_of_time = float(earliest_end(instance).max(initial=0.0)) or no_longer_than(instance)
    if not 0.0 < unit_of_time < np.inf:
        return unit_of_time
    return unit_of_time * _relaxed(_in_units(instance, unit_of_time), seconds, pairs)


def _in_units(instance: SchedulingInstance, seconds: float) -> SchedulingInstance:
    """The instance with times in units of so many seconds, and memory as a share of the largest unit's."""
    size = max(float(unit_memory(instance).max(initial=0.0)), 1e-300)
    return instance._replace(
        time=instance.time / seconds, fixed=instance.fixed / seconds, per_size=instance.per_size / seconds,
        given=instance.given / seconds, memory=instance.memory / size, memory_limit=instance.memory_limit / size,
    )  # fmt: skip


def _relaxed(instance: SchedulingInstance, seconds: float, pairs: bool) -> float:
    rows = LinearRows()
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
    for d in np.flatnonzero(np.isfinite(instance.memory_limit)).tolist():
        here = np.flatnonzero(device == d)
        rows.at_most(np.zeros(len(here), dtype=np.int64), here, size[unit[here]], instance.memory_limit[[d]])
    if instance.sequential:
        own = np.arange(instance.devices)
        rows.at_most(np.concatenate([on, own]), np.concatenate([share, np.full(instance.devices, latency)]),
                     np.concatenate([time, -np.ones(instance.devices)]), np.zeros(instance.devices))  # fmt: skip
    every = np.arange(instance.nodes)
    one = np.ones(instance.nodes)
    rows.at_most(np.tile(every, 2), np.concatenate([ends, np.full(instance.nodes, latency)]),
                 np.concatenate([one, -one]), np.zeros(instance.nodes))  # fmt: skip
    first = np.flatnonzero((np.diff(instance.input_start) == 0)[node])
    rows.at_most(np.concatenate([node[first], every]), np.concatenate([share[first], ends]),
                 np.concatenate([time[first], -one]), np.zeros(instance.nodes))  # fmt: skip
    # What each read takes: the reader's time at its shares, and the transfer time at those of pairs of devices.
    start, of_node = csr(node, np.arange(len(node)), instance.nodes)
    read_of, at = rows_of(start, target)
    pair_share = of_node[at]
    columns = [ends[source], ends[target], share[pair_share]]
    entries = [np.ones(len(reads)), -np.ones(len(reads)), time[pair_share]]
    lines = [reads, reads, read_of]
    width = latency + 1
    rows.equal(unit, np.arange(shares), np.ones(shares), np.ones(len(able)))
    if pairs and 0 < len(reads) * instance.devices**2 <= _MOST_PAIRS:
        a, b = np.divmod(np.arange(instance.devices**2), instance.devices)
        r, way = np.repeat(reads, instance.devices**2), np.tile(np.arange(instance.devices**2), len(reads))
        move = moves(instance)[tensor[r], a[way], b[way]]
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
            rows.equal(np.concatenate([place, np.arange(len(key))]), np.concatenate([pair, share_of]),
                       np.concatenate([np.ones(len(pair)), -np.ones(len(key))]), np.zeros(len(key)))  # fmt: skip
            _absent(rows, number, instance, end, reads, key)
        width = _resources(rows, instance, tensor[r], way, pair, latency, width)
    rows.at_most(np.concatenate(lines), np.concatenate(columns), np.concatenate(entries), np.zeros(len(reads)))
    goal = np.zeros(width)
    goal[latency] = 1.0
    most = np.ones(width)
    most[ends] = most[latency] = no_longer_than(instance)
    return max(rows.proven_least(goal, most, seconds=seconds), 0.0) * (1.0 - LP_OPTIMUM)


def _absent(
    rows: LinearRows, number: Integers, instance: SchedulingInstance, end: Integers, reads: Integers, key: Integers
) -> None:
    """Fix to 0 the shares of devices that no pair of a read has."""
    every = (reads[:, None] * instance.devices + np.arange(instance.devices)).ravel()
    missing = every[~np.isin(every, key)]
    read, d = np.divmod(missing, instance.devices)
    column = number[instance.unit[end[read]], d]
    column = np.unique(column[column >= 0])
    rows.equal(np.arange(len(column)), column, np.ones(len(column)), np.zeros(len(column)))


def _resources(
    rows: LinearRows, instance: SchedulingInstance, tensor: Integers, way: Integers, pair: Integers, latency: int,
    width: int,
) -> int:  # fmt: skip
    """Add the rows of the resources: a tensor moves over a pair of devices as much as its reader with the largest
    share; the new number of columns.
    """
    if not instance.resources:
        return width
    key, place = np.unique(tensor * instance.devices**2 + way, return_inverse=True)
    moved, over = np.divmod(key, instance.devices**2)
    most = width + np.arange(len(key))
    line = np.arange(len(pair))
    rows.at_most(np.concatenate([line, line]), np.concatenate([pair, most[place]]),
                 np.concatenate([np.ones(len(pair)), -np.ones(len(pair))]), np.zeros(len(pair)))  # fmt: skip
    a, b = np.divmod(over, instance.devices)
    time = moves(instance)[moved, a, b]
    of, at = rows_of(instance.resource_start, over)
    own = np.arange(instance.resources)
    ones = np.ones(instance.resources)
    rows.at_most(np.concatenate([instance.resource[at], own]), np.concatenate([most[of], np.full(len(own), latency)]),
                 np.concatenate([time[of], -ones]), np.zeros(len(own)))  # fmt: skip
    return width + len(key)
