"""What each copy of a plan's stages does, pass after pass, and what it holds: 1F1B, whole batches, chunks in turn."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from placedsl.simulation.clock import Simulation
from placedsl.simulation.cluster_links import ClusterLinks, LinkTimes
from placedsl.simulation.link_queues import LinkQueues
from placedsl.simulation.plan_run import PlannedStage, PlanRun


@dataclass(frozen=True)
class QueuesRun:
    """All samples through all copies; by device the most samples, and bytes, that it held at once; and what went over
    links around clusters that share samples."""

    simulation: Simulation
    held: Mapping[int, int]
    memory: Mapping[int, float]
    links: LinkTimes | None


def run(plan: PlanRun, samples: int) -> QueuesRun:
    """Every copy and every link works off what there is to do."""
    simulation, across = Simulation(plan.work, samples), plan.sharing.across
    links = None if across is None else LinkQueues(plan, ClusterLinks(plan, across), simulation)
    queues = _Queues(plan, simulation, links)
    queues.run()
    first = {d: copy[0] for own in plan.planned for copy in own.copies for d in copy}
    held = {d: queues.most.get(leads, 0) for d, leads in first.items()}
    memory = {d: queues.memory.get(leads, 0.0) for d, leads in first.items()}
    return QueuesRun(simulation, held, memory, None if links is None else links.times())


class _Queues:
    """What each copy has still to do, in its order: a pass of a sample, or an exchange of weights with the others."""

    def __init__(self, plan: PlanRun, simulation: Simulation, links: LinkQueues | None) -> None:
        self.plan, self.simulation, self.links = plan, simulation, links
        self.reads: list[list[int]] = [[] for _ in plan.work.operations]
        for q, p in sorted(plan.work.arcs):
            self.reads[p].append(q)
        for q, p in sorted(() if links is None else links.links.arcs):
            if p < len(self.reads):
                self.reads[p].append(q)
        self.exchange = dict(plan.exchange)
        self.queues: list[tuple[int, list[tuple[int, int]]]] = []
        self.most: dict[int, int] = {}  # by the first device of a copy: the most samples that it held at once
        self.memory: dict[int, float] = {}  # and bytes
        self.partners: dict[tuple[int, int], int] = {}  # copies of a stage that are still to come to an exchange
        self.waiting: dict[tuple[int, int], list[int]] = {}  # by what is missing: the queues that stopped for it
        behind = sum(len(own.copies) for own in plan.planned)
        for own in plan.planned:
            copies = len(own.copies)
            if not plan.in_turn:
                for number, copy in enumerate(own.copies):
                    self.queues.append((copy[0], self._order(own, number, -(-behind // copies))))
            for last in (last for number in range(own.apart) for last in self._exchanges(own, number)):
                self.partners[self.exchange[own.place], last] = copies // own.apart
            behind -= copies
        for place, own in enumerate(plan.planned[: plan.in_turn]):
            self.queues += [(copy[0], self._in_turn(place, number)) for number, copy in enumerate(own.copies)]

    def _order(self, own: PlannedStage, number: int, ahead: int) -> list[tuple[int, int]]:
        """The operations of a copy, each with its sample; ``ahead``: forward passes before the first backward pass."""
        batch, copies = self.plan.batch, len(own.copies)
        taken = [n for n in range(self.simulation.samples) if (n % batch if batch else n) % copies == number]
        first, after = self._between(own, number, taken)
        if not self.plan.both:
            return first + [step for n, then in zip(taken, after, strict=True) for step in ((own.place, n), *then)]
        forward, backward = own.place, own.place + len(self.plan.planned)
        back = [[(backward, n), *then] for n, then in zip(taken, after, strict=True)]
        out: list[tuple[int, int]] = []
        together = sum(n < batch for n in taken) if batch else len(taken)  # of a batch
        for begin in range(0, len(taken), max(1, together)):
            part = slice(begin, begin + together)
            forth = [(forward, n) for n in taken[part]]
            lead = together if batch else ahead
            out += forth[:lead]
            for k, steps in enumerate(back[part]):
                out += [*steps, *forth[k + lead : k + lead + 1]]
        return first + out

    def _between(
        self, own: PlannedStage, number: int, taken: Sequence[int]
    ) -> tuple[list[tuple[int, int]], list[list[tuple[int, int]]]]:
        """The exchanges of a copy before all its samples, and after each: one follows the last sample that the copy has
        before it; one without any waits for the others."""
        exchanges = self._exchanges(own, number)
        places = [*np.searchsorted(exchanges, taken).tolist(), len(exchanges)]
        after = [[(self.exchange[own.place], n) for n in exchanges[a:b]] for a, b in itertools.pairwise(places)]
        return [(self.exchange[own.place], n) for n in exchanges[: places[0]]], after

    def _in_turn(self, place: int, number: int) -> list[tuple[int, int]]:
        """The same where each stage holds several chunks; ``place``: of the stage."""
        plan, stages = self.plan, self.plan.in_turn
        chunks = plan.planned[place::stages]
        copies, past = len(chunks[0].copies), self.simulation.samples
        taken = range(number, past, copies)
        exchanges = [self._between(chunk, number, taken) for chunk in chunks]
        after = [dict(zip(taken, steps, strict=True)) for _, steps in exchanges]
        out = [step for first, _ in reversed(exchanges) for step in first]
        for begin in range(0, past, plan.batch or past):
            own = range(begin + number, min(begin + (plan.batch or past), past), copies)
            together = stages if plan.sharing.held != "batch" else max(1, len(own))
            rounds = [own[k : k + together] for k in range(0, len(own), together)]
            forth = [(c, chunk.place, n) for samples in rounds for c, chunk in enumerate(chunks) for n in samples]
            if not plan.both:
                out += [step for c, p, n in forth for step in ((p, n), *after[c][n])]
                continue
            back = [
                [(chunk.place + len(plan.planned), n), *after[c][n]]
                for samples in rounds for c, chunk in reversed([*enumerate(chunks)]) for n in samples
            ]  # fmt: skip
            ahead = len(forth)
            if plan.sharing.held == "pipeline":
                ahead = min(ahead, 2 * (stages - place - 1) + (len(chunks) - 1) * stages + 1)
            steps = [(p, n) for _, p, n in forth]
            out += steps[:ahead]
            for k, then in enumerate(back):
                out += [*then, *steps[k + ahead : k + ahead + 1]]
        return out

    def _exchanges(self, own: PlannedStage, number: int) -> list[int]:
        """The last sample before each exchange of a copy; what is left of a batch, or of the run, counts as well."""
        if own.place not in self.exchange:
            return []
        samples = self.simulation.samples
        turns, parts = self.plan.turns(samples), self.plan.periods(self.plan.period(own), samples)
        together = [[n for n in part if (turns[n] - number) % own.apart == 0] for part in parts]
        return [part[-1] for part in together if part]

    def run(self) -> None:
        """Work off all queues; one that misses something goes on when that is there."""
        place, held = [0] * len(self.queues), [dict[int, int]() for _ in self.queues]
        known: dict[tuple[int, ...], float] = {}
        leader = {copy[0]: own.device for own in self.plan.planned for copy in own.copies}
        forward = set(range(len(self.plan.planned)))
        last = {p + len(forward) * self.plan.both: p for p in forward}
        ready = deque(range(len(self.queues)))
        while True:
            if not ready:
                gone = None if self.links is None else self.links.next()
                if gone is None:
                    break
                ready.extend(self.waiting.pop(gone, ()))
                continue
            number = ready.popleft()
            device, queue = self.queues[number]
            while place[number] < len(queue):
                step = queue[place[number]]
                if step[0] in self.exchange.values():
                    self.partners[step] -= 1
                    place[number] += 1
                    if self.partners[step]:
                        self.waiting.setdefault(step, []).append(number)
                        break
                    self._together(step, [device, *(self.queues[q][0] for q in self.waiting.get(step, ()))])
                else:
                    missing = next((other for other in self._needed(step) if not self._done(*other)), None)
                    if missing is not None:
                        self.waiting.setdefault(missing, []).append(number)
                        break
                    self._alone(step, device)
                    place[number] += 1
                    if step[0] in forward:
                        own = held[number]
                        own[step[0]] = own.get(step[0], 0) + 1
                        self.most[device] = max(self.most.get(device, 0), sum(own.values()))
                        key = leader[device], *(x for item in sorted(own.items()) for x in item)
                        if key not in known:
                            known[key] = self.plan.memory(leader[device], own)
                        self.memory[device] = max(self.memory.get(device, 0.0), known[key])
                    if step[0] in last:
                        held[number][last[step[0]]] -= 1
                ready.extend(self.waiting.pop(step, ()))
                if self.links is not None:
                    self.links.done(step)
        assert all(at == len(queue) for at, (_, queue) in zip(place, self.queues, strict=True)), (
            "copies wait in a circle"
        )

    def _done(self, operation: int, sample: int) -> bool:
        return self.simulation.end[operation][sample] < inf

    def _needed(self, step: tuple[int, int]) -> list[tuple[int, int]]:
        """What has to be there before a pass."""
        operation, sample = step
        needed = [(q, sample) for q in self.reads[operation]]
        return needed if self.links is None else needed + self.links.flushed.get(step, [])

    def _alone(self, step: tuple[int, int], device: int) -> None:
        (operation, sample), run = step, self.simulation
        begin = max([run.free[device, "device"], *(run.end[q][n] for q, n in self._needed(step))])
        run.start[operation][sample] = begin
        run.end[operation][sample] = run.free[device, "device"] = begin + run.work.operations[operation].duration

    def _together(self, step: tuple[int, int], devices: Sequence[int]) -> None:
        """They wait for one another; each has done its last sample."""
        (operation, sample), run = step, self.simulation
        begin = max(run.free[device, "device"] for device in devices)
        run.start[operation][sample] = begin
        end = run.end[operation][sample] = begin + run.work.operations[operation].duration
        for device in devices:
            run.free[device, "device"] = end
