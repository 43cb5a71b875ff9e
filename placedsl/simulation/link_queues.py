"""What the links around clusters carry, in the order in which it comes to them."""

from __future__ import annotations

from heapq import heappop, heappush
from math import nan

import numpy as np

from placedsl.simulation.clock import Simulation
from placedsl.simulation.cluster_links import ClusterLinks, LinkOperation, LinkTimes
from placedsl.simulation.plan_run import PlanRun


class LinkQueues:
    """The links around clusters: each carries what comes to it, the first first.

    Operations are numbered after those of ``plan.work``.  Stages go on while clusters exchange weights, with those that
    they have (two versions, as in PipeDream-2BW): what follows the next exchange waits for this one, and so does the
    next batch where batches drain.  ``flushed``: by pass and sample, the exchanges over links that are over before it.
    """

    def __init__(self, plan: PlanRun, links: ClusterLinks, simulation: Simulation) -> None:
        self.links, self.simulation = links, simulation
        self.turns = plan.turns(simulation.samples)
        self.first = len(plan.work.operations)
        for times in (simulation.start, simulation.end):
            times += [[nan] * simulation.samples for _ in links.operations]
        self.after: dict[int, list[int]] = {}  # by operation: those of links that need it, for the same sample
        self.needs: dict[int, list[int]] = {}
        for q, p in sorted(links.arcs):
            if p >= self.first:
                self.after.setdefault(q, []).append(p)
                self.needs.setdefault(p, []).append(q)
        self.left: dict[tuple[int, int], int] = {}
        self.gathered: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by pass: the exchanges that need it
        self.parts: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by exchange: the passes that it needs
        self.flushed: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.free: dict[tuple[int, int], float] = {}  # by cluster and which of those that run the same
        self.come: list[tuple[float, int, int]] = []
        for cluster, operation in links.exchange.items():
            self._exchange(plan, cluster, operation)

    def _exchange(self, plan: PlanRun, cluster: int, operation: int) -> None:
        """What each exchange of clusters waits for, and what waits for it: the next batch, where batches drain."""
        runs, number = self.links.runs[cluster], len(plan.planned)
        stages = [plan.planned[place] for place in self.links.places(cluster)]
        parts = plan.periods(self.links.period(cluster), self.simulation.samples)
        for around in range(runs):
            before = list[tuple[int, int]]()  # exchanges
            for part in parts:
                own = [n for n in part if self.turns[n] % runs == around]
                if not own:
                    continue
                step = operation, own[-1]
                for stage in stages:
                    last = {self.turns[n] % len(stage.copies): n for n in own}  # by copy
                    needed = [(stage.place + number * plan.both, n) for n in last.values()]
                    self.parts.setdefault(step, []).extend(needed)
                    for one in needed:
                        self.gathered.setdefault(one, []).append(step)
                    first = {self.turns[n] % len(stage.copies): n for n in reversed(own)}
                    for n in first.values():
                        if len(before) > 1:
                            self.flushed.setdefault((stage.place + number * plan.both, n), []).append(before[-2])
                        if plan.batch and before and before[-1][1] // plan.batch < n // plan.batch:
                            self.flushed.setdefault((stage.place, n), []).append(before[-1])
                self.left[step] = len(self.parts[step])
                before.append(step)

    def done(self, step: tuple[int, int]) -> None:
        """What a link can carry now that a pass, or another link, is done."""
        operation, sample = step
        for p in self.after.get(operation, ()):
            self._less((p, sample), len(self.needs[p]))
        for exchange in self.gathered.get(step, ()):
            self._less(exchange, 0)

    def _less(self, step: tuple[int, int], at_first: int) -> None:
        left = self.left[step] = self.left.get(step, at_first) - 1
        if left == 0:
            needed = self.parts.get(step) or [(q, step[1]) for q in self.needs[step[0]]]
            heappush(self.come, (max(self.simulation.end[q][n] for q, n in needed), *step))

    def next(self) -> tuple[int, int] | None:
        """Carry what came first; None where nothing waits.

        What is still to come needs some of what waits, and comes later.
        """
        if not self.come:
            return None
        came, operation, sample = heappop(self.come)
        what: LinkOperation = self.links.operations[operation - self.first]
        ways = [(what.cluster, image) for image in self.links.sharing(what, self.turns[sample])]
        begin = max([came, *(self.free.get(way, 0.0) for way in ways)])
        self.simulation.start[operation][sample] = begin
        self.simulation.end[operation][sample] = end = begin + what.duration
        self.free |= dict.fromkeys(ways, end)
        self.done((operation, sample))
        return operation, sample

    def times(self) -> LinkTimes:
        """What was carried; the simulation keeps the rest."""
        run, first = self.simulation, self.first
        begun, ended = np.array(run.start[first:]), np.array(run.end[first:])
        shape = len(self.links.operations), run.samples
        del run.start[first:], run.end[first:]
        return LinkTimes(self.links, begun.reshape(shape), ended.reshape(shape))
