"""The simple lower bound on the largest load: no device can be quicker than its share of the work.

MTPP, Lemma 4.2, for unlike devices: every node takes its least time over the devices, every group that must stay
together the least time of the whole, and all of it is shared out evenly.
"""

from __future__ import annotations

import numpy as np

from placedsl.graph.order import csr, joined_partitions, topological
from placedsl.problem.problem import Problem
from placedsl.tolerances import BOUND_ROUNDING

#: What the simple bound is, in words.
SIMPLE = "the largest operator, or the even share of the work"
#: And what the one with streaming is.
STREAMED = "the largest operator, or the even share of the work and of what is streamed"


def simple_bound(problem: Problem) -> float:
    """A value that time_per_sample cannot undercut (inf: some node runs nowhere; transfers are left out)."""
    graph = problem.graph
    unit = joined_partitions(graph.nodes, problem.colocation_groups())
    work = np.zeros((int(unit.max(initial=-1)) + 1, problem.time.shape[1]))
    np.add.at(work, unit, problem.time)
    least = work.min(axis=1)
    # Copies of a stage share its samples; sending weights only adds.
    sharing = problem.execution.data_parallelism
    most = 1 if sharing is None else sharing.degrees[-1]
    return float(max(least.max(initial=0.0) / most, least.sum() / max(1, problem.time.shape[1])))


def streamed_bound(problem: Problem) -> float:
    """The same with what devices stream of the memory that does not fit; 0 where none streams.

    A device of room r that streams a byte in s seconds takes at least (m - r) s for m bytes, and 0 at least for less.
    So with unlike devices every node costs its least time and streaming over the devices, and all rooms are full.
    """
    graph, streaming = problem.graph, problem.streaming
    if not streaming.any:
        return 0.0
    unit = joined_partitions(graph.nodes, problem.colocation_groups())
    units, devices = int(unit.max(initial=-1)) + 1, problem.time.shape[1]
    work, memory = np.zeros((units, devices)), np.bincount(unit, weights=graph.memory, minlength=units)
    np.add.at(work, unit, problem.time)
    streams = streaming.per_byte > 0.0
    room, per_byte = np.where(streams, streaming.room, 0.0), streaming.per_byte
    alone = work + np.maximum(memory[:, None] - room, 0.0) * per_byte
    together = (work + memory[:, None] * per_byte).min(axis=1).sum() - (np.maximum(room, 0.0) * per_byte).sum()
    # Less than what sums are off by, for what is left of large numbers.
    rounding = BOUND_ROUNDING * (float(memory.sum()) + float(np.abs(room).max(initial=0.0))) * float(per_byte.max())
    least = max(float(alone.min(axis=1).max(initial=0.0)), float(together) / max(1, devices))
    return float(max(0.0, least - rounding)) if np.isfinite(least) else least


def path_bound(problem: Problem) -> float:
    """What latency cannot undercut: the longest path, each node at its quickest device (inf: one runs nowhere)."""
    graph = problem.graph
    finish: list[float] = problem.time.min(axis=1, initial=np.inf).tolist()
    least = list(finish)
    start, target = (side.tolist() for side in csr(graph.edge_source, graph.edge_target, graph.nodes))
    order = topological(graph.nodes, graph.edge_source, graph.edge_target)
    for v in () if order is None else order.tolist():
        for w in target[start[v] : start[v + 1]]:
            finish[w] = max(finish[w], finish[v] + least[w])
    return max(finish, default=0.0)
