"""How busy the links around clusters are whose copies share samples, and the devices within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from placedsl.evaluation.planned_stages import PlannedStages
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.tolerance import total
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.problem.execution import DataParallelism


class ClusterLoads:
    """The clusters that hold stages; ``copies``: in how many clusters of its level each runs (1 where nothing is said).

    What a cluster holds runs in ``copies`` of them for every time that what is around it runs.
    """

    def __init__(
        self,
        data: ProblemData,
        sharing: DataParallelism,
        stages: PlannedStages,
        copies: Mapping[tuple[int, ...], float],
    ) -> None:
        assert sharing.across is not None
        self.data, self.sharing, self.stages = data, sharing, stages
        self.levels: ClusterLevels = sharing.across
        self.used = sorted({cluster for d in stages.used for cluster in self.levels.around[d]})
        self.copies = {cluster: copies.get((cluster,), 1.0) for cluster in self.used}

    def runs(self, cluster: int) -> float:
        """How often what is around a cluster runs."""
        out, at = 1.0, self.levels.parent[cluster]
        while at >= 0:
            out, at = out * self.copies[at], self.levels.parent[at]
        return out

    def within(self, device: int) -> float:
        """The copies of the device's stage within its innermost cluster."""
        inner = self.levels.around[device][0]
        return self.stages.copies[device] / (self.runs(inner) * self.copies[inner])

    def exchanged(self, copies: float, runs: float, weights: float) -> float:
        """Seconds per sample that some copies exchange weights, in what runs so often."""
        if copies < 1 or self.sharing.exchange == "batch":
            each = self.sharing.sent(copies)
        else:
            each = self.sharing.sent(copies) / runs
        return each * weights * (copies - 1) / copies if copies >= 1 else 0.0

    def exchange(self, device: int, nodes: Sequence[int]) -> float:
        """Seconds per sample that a device exchanges weights with the copies of its stage in its cluster."""
        inner = self.levels.around[device][0]
        runs = self.runs(inner) * self.copies[inner]
        return self.exchanged(self.within(device), runs, self.stages.weights(nodes, device))

    @cached_property
    def loads(self) -> dict[int, float]:
        """Seconds per sample that the link around each of the clusters is busy."""
        members = {cluster: set(self.levels.members(cluster)) for cluster in self.used}
        out = {}
        for cluster in self.used:
            level, own, copies = self.levels.level_of[cluster], members[cluster], self.copies[cluster]
            moved = []
            for tensor, maker in enumerate(self.data.producer):
                ends = [self.stages.placement[v] in own for v in (maker, *self.data.readers[tensor])]
                moved += [float(self.levels.crossing[level, tensor])] * (any(ends) and not all(ends))
            runs, sent = self.runs(cluster), []
            for device in self.stages.used:
                if device in own:
                    nodes = [v for v, at in enumerate(self.stages.placement) if at == device]
                    size = self.stages.weight_bytes(nodes, device) * self.stages.tensor[device]
                    sent.append(size * float(self.levels.per_byte[level]))
            share = total(moved) / (copies * runs) if copies >= 1 else 0.0
            out[cluster] = total([share, self.exchanged(copies, runs, total(sent))])
        return out

    def around(self, device: int) -> float:
        """The largest load of a link around the device."""
        return max(
            (self.loads[cluster] for cluster in self.levels.around[device] if cluster in self.loads), default=0.0
        )
