"""The links around clusters that share samples: what goes over them, sample by sample, and what waits for it.

A link is busy by itself: with the tensors that enter and leave its cluster, in the order in which they come to it, and
with the weights that the clusters exchange which run the same.  A tensor goes over each link on its way once, however
many stages read it behind the link; its gradient comes back.  An account of its own, as all of the simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import fsum
from typing import Literal

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.simulation.plan_run import FORWARD, PlanRun


@dataclass(frozen=True)
class LinkOperation:
    """What goes over the link around a cluster for a sample: tensors of a stage out of it or into it, or weights.

    ``stage``     the pass of the stage that makes the tensors; of weights that of the first stage in the cluster
    ``backward``  the gradients of the tensors; weights are always
    """

    kind: Literal["send", "receive", "weights"]
    cluster: int
    stage: int
    backward: bool
    duration: float


class ClusterLinks:
    """The clusters that hold stages, and what goes over the links around them."""

    def __init__(self, plan: PlanRun, levels: ClusterLevels) -> None:
        self.plan, self.levels = plan, levels
        self.used = sorted({c for own in plan.planned for c in levels.around[own.device]})
        self._make()

    @cached_property
    def runs(self) -> dict[int, int]:
        """By cluster: how often what is around it runs."""
        out: dict[int, int] = {}
        for cluster in sorted(self.used, key=lambda c: -self.levels.level_of[c]):
            parent = self.levels.parent[cluster]
            out[cluster] = out[parent] * self.plan.clusters.get((parent,), 1) if parent >= 0 else 1
        return out

    def images(self, cluster: int) -> int:
        """In how many clusters what it holds runs, in all."""
        return self.runs[cluster] * self.plan.clusters.get((cluster,), 1)

    def places(self, cluster: int) -> list[int]:
        """The stages in a cluster, by their places."""
        return [own.place for own in self.plan.planned if cluster in self.levels.around[own.device]]

    def period(self, cluster: int) -> int:
        """After how many samples its copies exchange weights."""
        sharing = self.plan.sharing
        return (sharing.microbatches or 1) if sharing.exchange == "batch" else self.images(cluster)

    def _make(self) -> None:
        """Operations, numbered after those of ``plan.work``, and ``arcs``: what goes over a link first and the pass
        that it comes from, links that follow one another, and what goes over a link last and the pass that needs it."""
        plan, first = self.plan, len(self.plan.work.operations)
        operations: list[LinkOperation] = []
        arcs: set[tuple[int, int]] = set()
        number = len(plan.planned)
        shares = (FORWARD, 1.0 - FORWARD) if plan.both else (1.0,)
        for (maker, readers), tensors in self._tensors().items():
            own: dict[int, int] = {}
            for backward, share in enumerate(shares):
                for cluster, sends in self._crossed(maker, readers):
                    own[cluster] = first + len(operations)
                    due = share * fsum(float(self.levels.crossing[self.levels.level_of[cluster], t]) for t in tensors)
                    kind: Literal["send", "receive"] = "send" if sends != bool(backward) else "receive"
                    operations.append(LinkOperation(kind, cluster, maker + number * backward, bool(backward), due))
                for reader in readers:
                    way = [maker, *(own[cluster] for cluster, _ in self._crossed(maker, (reader,))), reader]
                    if backward:
                        way = [reader + number, *reversed(way[1:-1]), maker + number]
                    arcs |= set(pairwise(way)) if len(way) > 2 else set()
        self.exchange: dict[int, int] = {}  # by cluster
        for cluster in self.used:
            copies = self.plan.clusters.get((cluster,), 1)
            crossing = self._weights(cluster) * plan.sharing.traffic * (copies - 1)
            if crossing > 0.0:
                self.exchange[cluster] = first + len(operations)
                due = crossing if plan.sharing.exchange == "sample" else crossing / copies
                last = self.places(cluster)[0] + number * plan.both
                operations.append(LinkOperation("weights", cluster, last, True, due))
        self.operations, self.arcs = tuple(operations), frozenset(arcs)

    def _tensors(self) -> dict[tuple[int, tuple[int, ...]], list[int]]:
        """The tensors that leave a stage, by its place and those of the stages that read them."""
        graph = self.plan.problem.graph
        place = {v: own.place for own in self.plan.planned for v in own.nodes}
        reading: list[set[int]] = [set() for _ in range(graph.tensors)]
        for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
            reading[tensor].add(place[reader])
        out: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for tensor, maker in enumerate(graph.tensor_producer.tolist()):
            if others := reading[tensor] - {place[maker]}:
                out.setdefault((place[maker], tuple(sorted(others))), []).append(tensor)
        return out

    def _crossed(self, maker: int, readers: Sequence[int]) -> list[tuple[int, bool]]:
        """The clusters whose links a tensor goes over, from the stage that makes it on; and whether it leaves them."""
        around, planned = self.levels.around, self.plan.planned
        home = around[planned[maker].device]
        ends = [around[planned[reader].device] for reader in readers]
        out = [(c, True) for c in home if any(c not in end for end in ends)]
        return out + list(dict.fromkeys((c, False) for end in ends for c in reversed(end) if c not in home))

    def _weights(self, cluster: int) -> float:
        """Seconds that the weights of all devices of one copy take over the link around the cluster."""
        rate = float(self.levels.per_byte[self.levels.level_of[cluster]])
        sizes = []
        for own in (self.plan.planned[place] for place in self.places(cluster)):
            per_byte = float(self.plan.costs.per_byte[own.device])
            sizes.append(own.weights / per_byte * len(own.copies[0]) * rate if per_byte > 0.0 else 0.0)
        return fsum(sizes)

    def sharing(self, operation: LinkOperation, turn: int) -> tuple[int, ...]:
        """Which of the clusters that run the same work on it, for the sample whose turn it is."""
        images, runs = self.images(operation.cluster), self.runs[operation.cluster]
        return tuple(range(turn % runs, images, runs)) if operation.kind == "weights" else (turn % images,)

    def devices(self, cluster: int, image: int) -> int:
        """The first device of one of the clusters that run the same."""
        own = next(own for own in self.plan.planned if cluster in self.levels.around[own.device])
        # Copies of the stage take samples in turn, and in the same turn clusters do.
        return own.copies[image][0]

    def busy(self, cluster: int) -> float:
        """How long the link around a cluster is busy for each sample."""
        images = self.images(cluster)
        return fsum(
            operation.duration / (self.period(cluster) if operation.kind == "weights" else images)
            for operation in self.operations
            if operation.cluster == cluster
        )

    def around(self, device: int) -> float:
        """How long the busiest of the links around a leading device is busy for each sample."""
        return max(self.busy(cluster) for cluster in self.levels.around[device])

    def names(self) -> Mapping[tuple[int, int], str]:
        """What the links are called, by cluster and which of those that run the same."""
        out, known = {}, self.plan.problem.machine.clusters
        for cluster in self.used:
            level = self.levels.level_of[cluster]
            for image in range(self.images(cluster)):
                out[cluster, image] = known[self.levels.around[self.devices(cluster, image)][level]].name
        return out


@dataclass(frozen=True, eq=False)
class LinkTimes:
    """When each operation of the links began and ended for each sample (nan: none then)."""

    links: ClusterLinks
    begun: Floats
    ended: Floats

    def of(self, cluster: int, image: int, turns: Integers) -> list[tuple[int, int]]:
        """Operations and samples of a link, by their beginnings; ``turns``: the numbers of the samples in a batch."""
        found = []
        for o, operation in enumerate(self.links.operations):
            if operation.cluster == cluster and operation.duration > 0.0:
                step = self.links.runs[cluster] if operation.kind == "weights" else self.links.images(cluster)
                there = np.isfinite(self.begun[o]) & (turns % step == image % step)
                found += [(float(self.begun[o, i]), float(self.ended[o, i]), o, int(i)) for i in np.flatnonzero(there)]
        return [(o, i) for _, _, o, i in sorted(found)]
