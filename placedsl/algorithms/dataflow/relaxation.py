"""The linear relaxation of a problem of schedule dataflow: a lower bound that knows work, memory and paths at once.

    minimise T
    a node's shares of devices add up to 1; the memory of the shares on a device is within its room
    end(v) >= end(u) + what v takes at its shares + what the tensor takes at the shares of pairs of devices,  end <= T
    sequential: the shares of a device take T at most
    congestion: what is moved over a resource takes T at most

For each read of a tensor the shares of pairs of devices have the shares of the maker and of the reader as sums.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from placedsl.algorithms.dataflow.arrays import Flow, options, supported, unit_memory
from placedsl.graph.graph import Floats, Integers

#: Pairs of devices are looked at where there are no more than so many in all.
_MOST_PAIRS = 150_000
#: What rounding of the solver may add, as a share.
_ROUNDING = 1e-6


def relaxed_latency(flow: Flow, seconds: float, *, pairs: bool = True) -> float:
    """A latency that no schedule is below: inf where the relaxation is infeasible, 0 where it was not solved in
    time.  Without ``pairs`` of devices moving takes no time: weaker, and far quicker."""
    rows = _Rows()
    able = supported(flow)
    unit, device = np.nonzero(able)
    shares = len(unit)
    number = np.full(able.shape, -1, dtype=np.int64)
    number[unit, device] = np.arange(shares)
    ends = shares + np.arange(flow.nodes)
    latency = shares + flow.nodes
    node, on = np.nonzero(options(flow))
    share = number[flow.unit[node], on]
    time = flow.time[node, on]
    tensor = np.repeat(np.arange(len(flow.producer)), np.diff(flow.reader_start))
    source, target = flow.producer[tensor], flow.reader
    reads = np.arange(len(tensor))
    size = unit_memory(flow)
    for d in np.flatnonzero(np.isfinite(flow.room)).tolist():
        here = np.flatnonzero(device == d)
        rows.add(np.zeros(len(here), dtype=np.int64), here, size[unit[here]], [float(flow.room[d])])
    if flow.sequential:
        own = np.arange(flow.devices)
        rows.add(np.concatenate([on, own]), np.concatenate([share, np.full(flow.devices, latency)]),
                 np.concatenate([time, -np.ones(flow.devices)]), np.zeros(flow.devices))  # fmt: skip
    every = np.arange(flow.nodes)
    rows.add(np.concatenate([every, every]), np.concatenate([ends, np.full(flow.nodes, latency)]),
             np.concatenate([np.ones(flow.nodes), -np.ones(flow.nodes)]), np.zeros(flow.nodes))  # fmt: skip
    first = np.flatnonzero((np.diff(flow.input_start) == 0)[node])
    rows.add(np.concatenate([node[first], every]), np.concatenate([share[first], ends]),
             np.concatenate([time[first], -np.ones(flow.nodes)]), np.zeros(flow.nodes))  # fmt: skip
    # What each read takes: the reader's time, and the tensor's way.
    order = np.argsort(node, kind="stable")
    begin = np.searchsorted(node[order], np.arange(flow.nodes + 1))
    read_of, pair_share = _repeated(reads, target, begin, order)
    columns = [ends[source], ends[target], share[pair_share]]
    entries = [np.ones(len(reads)), -np.ones(len(reads)), time[pair_share]]
    lines = [reads, reads, read_of]
    width = latency + 1
    equal = _Rows()
    equal.add(unit, np.arange(shares), np.ones(shares), np.ones(len(able)))
    if pairs and 0 < len(reads) * flow.devices**2 <= _MOST_PAIRS:
        a, b = np.divmod(np.arange(flow.devices**2), flow.devices)
        r, way = np.repeat(reads, flow.devices**2), np.tile(np.arange(flow.devices**2), len(reads))
        move = _moves(flow, tensor[r], a[way], b[way])
        same = (flow.unit[source] == flow.unit[target])[r] & (a[way] != b[way])
        good = np.isfinite(move) & ~same & able[flow.unit[source[r]], a[way]] & able[flow.unit[target[r]], b[way]]
        r, way, move = r[good], way[good], move[good]
        pair = width + np.arange(len(r))
        width += len(r)
        lines.append(r)
        columns.append(pair)
        entries.append(move)
        for end, which in ((source, a), (target, b)):
            key, place = np.unique(r * flow.devices + which[way], return_inverse=True)
            read, held = np.divmod(key, flow.devices)
            share_of = number[flow.unit[end[read]], held]
            equal.add(np.concatenate([place, np.arange(len(key))]), np.concatenate([pair, share_of]),
                      np.concatenate([np.ones(len(pair)), -np.ones(len(key))]), np.zeros(len(key)))  # fmt: skip
            _absent(equal, number, flow, end, reads, key)
        width = _resources(rows, flow, tensor[r], way, pair, latency, width)
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
    """Rows of a linear program, gathered block by block."""

    def __init__(self) -> None:
        self.parts: list[tuple[Integers, Integers, Floats]] = []
        self.right: list[Floats] = []
        self.height = 0

    def add(self, row: Integers, column: Integers, entry: Floats, right: Floats | list[float]) -> None:
        """Rows numbered from 0, their entries, and their right-hand sides."""
        self.parts.append((row + self.height, column, entry))
        self.right.append(np.asarray(right, dtype=np.float64))
        self.height += len(right)

    def matrix(self, width: int) -> coo_array:
        """All of them."""
        row, column, entry = (np.concatenate(arrays) for arrays in zip(*self.parts, strict=True))
        return coo_array((entry, (row, column)), shape=(self.height, width)).tocsr()

    def limits(self) -> Floats:
        """Right-hand sides."""
        return np.concatenate(self.right)


def _repeated(reads: Integers, target: Integers, begin: Integers, order: Integers) -> tuple[Integers, Integers]:
    """For each read, the pairs of its reader and a device: the read, and the pair's number."""
    count = np.diff(begin)[target]
    read = np.repeat(reads, count)
    at = np.repeat(begin[target], count) + np.arange(len(read)) - np.repeat(np.cumsum(count) - count, count)
    return read, order[at]


def _moves(flow: Flow, tensor: Integers, a: Integers, b: Integers) -> Floats:
    if len(flow.given):
        return np.asarray(flow.given[tensor, a, b])
    return np.asarray(flow.fixed[a, b] + flow.per_size[a, b] * flow.size[tensor])


def _absent(equal: _Rows, number: Integers, flow: Flow, end: Integers, reads: Integers, key: Integers) -> None:
    """Shares of devices that no pair of a read has are 0."""
    every = (reads[:, None] * flow.devices + np.arange(flow.devices)).ravel()
    missing = every[~np.isin(every, key)]
    read, d = np.divmod(missing, flow.devices)
    column = number[flow.unit[end[read]], d]
    column = np.unique(column[column >= 0])
    equal.add(np.arange(len(column)), column, np.ones(len(column)), np.zeros(len(column)))


def _resources(
    rows: _Rows, flow: Flow, tensor: Integers, way: Integers, pair: Integers, latency: int, width: int
) -> int:
    """A tensor is moved over a pair of devices as much as its reader of the largest share; how many columns there
    are."""
    if not flow.resources:
        return width
    key, place = np.unique(tensor * flow.devices**2 + way, return_inverse=True)
    moved, over = np.divmod(key, flow.devices**2)
    most = width + np.arange(len(key))
    line = np.arange(len(pair))
    rows.add(np.concatenate([line, line]), np.concatenate([pair, most[place]]),
             np.concatenate([np.ones(len(pair)), -np.ones(len(pair))]), np.zeros(len(pair)))  # fmt: skip
    a, b = np.divmod(over, flow.devices)
    time = _moves(flow, moved, a, b)
    count = np.diff(flow.resource_start)[over]
    of = np.repeat(np.arange(len(key)), count)
    at = np.repeat(flow.resource_start[over], count) + np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    own = np.arange(flow.resources)
    rows.add(np.concatenate([flow.resource[at], own]), np.concatenate([most[of], np.full(flow.resources, latency)]),
             np.concatenate([time[of], -np.ones(flow.resources)]), np.zeros(flow.resources))  # fmt: skip
    return width + len(key)
