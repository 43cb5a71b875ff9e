"""The peak of the activations on a device: the most bytes of tensors that lie there at once while its nodes run.

Xie et al. 2023 (MTPP), section 3, for one order: the nodes of a device run in the order of the whole graph, in which of
those with nothing left before them the one that stands first in the graph comes next.  A tensor that the device makes
lies there from the step that makes it, one that it reads from elsewhere from the step that reads it first, both up to
the step that reads it last; what only others read goes out in the step that makes it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property

from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.tolerance import total


class ActivationPeaks:
    """Peaks of sets of nodes of a problem."""

    def __init__(self, data: ProblemData) -> None:
        self.data = data

    @cached_property
    def step(self) -> list[int]:
        """When each node runs, in the order of the whole graph."""
        data = self.data
        waiting, later = [0] * data.nodes, [list[int]() for _ in range(data.nodes)]
        for before, after in data.edges:
            waiting[after] += 1
            later[before].append(after)
        ready = [v for v in range(data.nodes) if not waiting[v]]
        step = [0] * data.nodes
        for number in range(data.nodes):
            v = heapq.heappop(ready)
            step[v] = number
            for w in later[v]:
                waiting[w] -= 1
                if not waiting[w]:
                    heapq.heappush(ready, w)
        return step

    def of(self, nodes: Sequence[int]) -> float:
        """The peak of what a device holds, in bytes; 0 where it holds nothing."""
        here = set(nodes)
        lying: list[tuple[int, int, float]] = []
        for tensor, producer in enumerate(self.data.producer):
            reads = [self.step[v] for v in self.data.readers[tensor] if v in here]
            if producer in here:
                lying.append((self.step[producer], max([self.step[producer], *reads]), self.data.size[tensor]))
            elif reads:
                lying.append((min(reads), max(reads), self.data.size[tensor]))
        sizes = (
            total(size for first, last, size in lying if first <= self.step[v] <= last) for v in nodes
        )  # fmt: skip
        return max(sizes, default=0.0)
