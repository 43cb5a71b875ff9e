"""Clusters that share samples: what one holds may run in several (Tarnawski et al. 2021, Appendix E)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from placedsl.arrays import Floats
from placedsl.machine.machine import Machine
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class ClusterLevels:
    """L levels of clusters, each like all others of its level; the innermost level first.  t tensors.

    ``size``      L + 1: devices of an innermost cluster, clusters of each level in one of the next, and in the machine
    ``families``  L declared names
    ``clusters``  the positions of the clusters of each level, in the order of their devices
    ``devices``   the positions of all devices, cluster by cluster
    ``crossing``  L x t seconds that a tensor takes over the interconnect around a cluster
    ``per_byte``  L seconds per byte over it
    """

    size: tuple[int, ...]
    families: tuple[str, ...]
    clusters: tuple[tuple[int, ...], ...]
    devices: tuple[int, ...]
    crossing: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    per_byte: Floats = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def around(self) -> dict[int, tuple[int, ...]]:
        """By device: the clusters that it is in, innermost first."""
        place = {device: k for k, device in enumerate(self.devices)}
        out = {}
        for device, at in place.items():
            found, each = [], 1
            for level, clusters in enumerate(self.clusters):
                each *= self.size[level]
                found.append(clusters[at // each])
            out[device] = tuple(found)
        return out

    @cached_property
    def level_of(self) -> dict[int, int]:
        """By cluster: its level, from 0."""
        return {cluster: level for level, own in enumerate(self.clusters) for cluster in own}

    @cached_property
    def parent(self) -> dict[int, int]:
        """By cluster: the one around it (-1: the machine)."""
        out = {}
        for level, own in enumerate(self.clusters):
            for k, cluster in enumerate(own):
                last = level + 1 == len(self.clusters)
                out[cluster] = -1 if last else self.clusters[level + 1][k // self.size[level + 1]]
        return out

    def on(self, machine: Machine) -> ClusterLevels:
        """The clusters of these families on another machine, with the devices that they have there; costs left out."""
        levels = list[tuple[int, ...]]()
        for family in reversed(self.families):
            known, around = machine.clusters, levels[0] if levels else (-1,)
            of_family = [i for i, cluster in enumerate(known) if cluster.family == family]
            levels.insert(0, tuple(i for home in around for i in of_family if known[i].parent == home))
        own = [machine.clusters[cluster].devices for cluster in levels[0]]
        numbers = [*map(len, levels), 1]
        size = (len(own[0]), *(inner // outer for inner, outer in pairwise(numbers)))
        return ClusterLevels(size, self.families, tuple(levels), tuple(d for each in own for d in each))

    def members(self, cluster: int) -> tuple[int, ...]:
        """The devices of a cluster."""
        level = self.level_of[cluster]
        wide, at = 1, self.clusters[level].index(cluster)
        for size in self.size[: level + 1]:
            wide *= size
        return self.devices[at * wide : (at + 1) * wide]

    def followers(
        self, held: Mapping[int, int], copies: Mapping[tuple[int, ...], float], kinds: Sequence[int]
    ) -> dict[int, int]:
        """The leader of each device that runs what another leads.

        ``held``: by leader, how many devices of its innermost cluster run its stage;  ``copies``: by cluster, in how
        many of its level the same runs;  ``kinds``: a number a device.  The next free devices of the kind, and
        clusters, do.
        """
        out: dict[int, int] = {}
        used = {cluster for leader in held for cluster in self.around[leader]}
        taken = set(used)
        images: dict[int, tuple[int, ...]] = {}
        for own in self.clusters:
            for cluster in (c for c in own if c in used):
                free = [c for c in own if c not in taken and self.parent[c] == self.parent[cluster]]
                further = free[: max(0, round(copies.get((cluster,), 1.0)) - 1)]
                taken.update(further)
                images[cluster] = (cluster, *further)
        for leader in sorted(held, key=self.devices.index):
            members = self.members(self.around[leader][0])
            ahead = [d for d in members if d not in held and d not in out and kinds[d] == kinds[leader]]
            group = [members.index(d) for d in (leader, *ahead[: held[leader] - 1])]
            for clusters in product(*(images[cluster] for cluster in reversed(self.around[leader]))):
                home = self._within(clusters)
                for device in (home[k] for k in group):
                    if device != leader:
                        out[device] = leader
        return out

    def _within(self, clusters: tuple[int, ...]) -> tuple[int, ...]:
        """The devices of the innermost cluster that stands where these stand, the outermost first, in each other's
        place."""
        at = 0
        for level, cluster in zip(reversed(range(len(self.clusters))), clusters, strict=True):
            own, each = self.clusters[level], self.size[level + 1]
            at = at * each + own.index(cluster) % each if level + 1 < len(self.clusters) else own.index(cluster)
        return self.members(self.clusters[0][at])
