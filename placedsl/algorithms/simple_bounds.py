"""The simple lower bound on the largest load: no device can be quicker than its share of the work.

MTPP, Lemma 4.2, for unlike devices: every node takes its least time over the devices, every group that must stay
together the least time of the whole, and all of it is shared out evenly.
"""

from __future__ import annotations

import numpy as np

from placedsl.graph.order import csr, joined_partitions, topological
from placedsl.problem.problem import Problem

#: What the simple bound is, in words.
SIMPLE = "the largest operator, or the even share of the work"


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
