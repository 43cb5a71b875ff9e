"""How long each device streams, for each sample, what does not fit of its memory: the simulation's own account."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.problem.problem import Problem


def streaming_times(problem: Problem, placement: Sequence[int]) -> Floats:
    """D seconds of a complete placement (a device a node)."""
    streaming, graph = problem.streaming, problem.graph
    out = np.zeros(len(streaming.per_byte))
    if not streaming.any:
        return out
    placed = np.asarray(placement, dtype=np.int64)
    held = np.bincount(placed, weights=graph.memory, minlength=len(out))
    for d in np.flatnonzero(np.bincount(placed, minlength=len(out)) * streaming.per_byte > 0.0).tolist():
        aside = _peak(problem, placed == d) if streaming.peaks[d] else 0.0
        out[d] = max(0.0, float(held[d]) + aside - float(streaming.room[d])) * float(streaming.per_byte[d])
    return out


def _peak(problem: Problem, here: Booleans) -> float:
    """The most bytes of tensors that lie on a device at once; ``here``: which nodes it runs, in the graph's order."""
    graph, step = problem.graph, _steps(problem)
    first = np.full(graph.tensors, graph.nodes)
    last = np.full(graph.tensors, -1)
    reads = here[graph.edge_target]
    np.minimum.at(first, graph.edge_tensor[reads], step[graph.edge_target[reads]])
    np.maximum.at(last, graph.edge_tensor[reads], step[graph.edge_target[reads]])
    own = np.flatnonzero(here[graph.tensor_producer])
    first[own] = step[graph.tensor_producer[own]]
    last[own] = np.maximum(last[own], first[own])
    lying = last >= 0
    change = np.zeros(graph.nodes + 1)
    np.add.at(change, first[lying], problem.size[lying])
    np.add.at(change, last[lying] + 1, -problem.size[lying])
    return float(np.cumsum(change).max(initial=0.0))


def _steps(problem: Problem) -> Integers:
    """When each node runs: always the first in the graph of those that can."""
    graph = problem.graph
    missing: list[set[int]] = [set() for _ in range(graph.nodes)]
    needed: list[set[int]] = [set() for _ in range(graph.nodes)]
    for source, target in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        missing[target].add(source)
        needed[source].add(target)
    ready = [v for v in range(graph.nodes) if not missing[v]]
    step = np.zeros(graph.nodes, dtype=np.int64)
    for number in range(graph.nodes):
        v = heapq.heappop(ready)
        step[v] = number
        for w in needed[v]:
            missing[w].remove(v)
            if not missing[w]:
                heapq.heappush(ready, w)
    return step
