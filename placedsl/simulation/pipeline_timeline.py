"""The timeline of a pipeline: when each stage worked on each sample, and what is measured on that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import Arcs, VirtualStage
from placedsl.simulation.cluster_links import LinkTimes
from placedsl.simulation.operations import Engine, Work
from placedsl.simulation.stage_times import StageTimes
from placedsl.simulation.timeline import Row, Task, Timeline

#: What the rows of the other engines are called.
_ROWS: Mapping[Engine, str] = {"transfers": "transfers of", "in": "into", "out": "out of", "weights": "weights of"}


@dataclass(frozen=True, eq=False, repr=False)
class PipelineTimeline(Timeline):
    """When each of P stages worked on each of n samples, and what that comes to on each of D devices.

    Times are seconds, or in the graph's own unit.

    ``schedule``         one of :data:`SCHEDULES`
    ``microbatches``     samples in a batch (gpipe), else 0
    ``stages``           P stages in a topological order
    ``arcs``             pairs of stages: the second reads from the first
    ``costs``            times of each stage to receive, compute and send one sample
    ``work``             what the engines of the devices do, and which devices share stages
    ``begun``, ``ended``   times by operation of ``work`` and sample (nan: an exchange of weights, after other samples)
    ``start``, ``end``   P x n times, from the first operation of the stage to its last
    ``loads``            D: busy time for each sample, of the busiest engine
    ``time_per_sample``  measured in the steady state (gpipe: over whole batches); nan when there were too few samples
    ``total``            when the last sample has left and all weights are exchanged
    ``ramp_up``          when every stage has begun its first sample
    ``idle``             D: share of the total time in which the device does nothing (the bubble)
    ``samples_in_flight``         the most samples that have entered and not left at once
    ``device_samples_in_flight``  D: the most samples between their first and their last stage on the device at once
    ``tensors_in_flight``         D: the most tensors that lie on the device between stages at once
    ``bytes_in_flight``           D: the most bytes of them; nan where the graph gives no sizes
    ``memory``                    D: the most bytes on the device at once, of a plan with options of operators; then
                                  nothing is told of single tensors
    ``links``                     of a plan whose clusters share samples: what goes over the links around them
    """

    problem: Problem
    schedule: str
    microbatches: int
    stages: tuple[VirtualStage, ...]
    arcs: Arcs
    costs: StageTimes
    work: Work
    begun: Floats
    ended: Floats
    start: Floats
    end: Floats
    loads: Floats
    time_per_sample: float
    total: float
    ramp_up: float
    idle: Floats
    samples_in_flight: int
    device_samples_in_flight: Integers
    tensors_in_flight: Integers
    bytes_in_flight: Floats
    memory: Floats | None = None
    links: LinkTimes | None = None

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """Each operation on each sample, and the exchanges of weights: operation o on sample i (from 0) stands at
        o * n + i; those of links follow."""
        return _Tasks(self)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """A row for each device of the machine, then those of the engines that move something beside it, then links."""
        rows: dict[tuple[Engine, int], list[int]] = {
            ("device", d): [] for d in range(len(self.problem.machine.devices))
        }
        beside: dict[tuple[Engine, int], list[int]] = {}
        for o, operation in enumerate(self.work.operations):
            members = self.work.groups[operation.device]
            for i in np.flatnonzero(np.isfinite(self.begun[o])).tolist():
                held: tuple[int, ...] = (members[self.turn(i) % len(members)],)
                if operation.kind == "weights":
                    held = self.work.exchanging(operation.device, self.turn(i))
                for device in (d for first in held for d in self.work.copy(first)):
                    kept = rows if operation.engine == "device" else beside
                    if operation.engine == "device" or operation.duration > 0.0:
                        kept.setdefault((operation.engine, device), []).append(o * self.samples + i)
        out = []
        ways = dict(sorted(beside.items(), key=lambda one: (list(_ROWS).index(one[0][0]), one[0][1])))
        for (engine, d), own in (rows | ways).items():
            place = np.array(own, dtype=np.int64)
            order = np.lexsort((place, self.ended.ravel()[place], self.begun.ravel()[place]))
            name = self.problem.machine.devices[d].name
            kind, name = ("device", name) if engine == "device" else ("port", f"{_ROWS[engine]} {name}")
            out.append(Row(kind, name, True, tuple(place[order].tolist())))
        return (*out, *self._link_rows())

    def _link_rows(self) -> Iterator[Row]:
        if self.links is None:
            return
        turns = np.array([self.turn(i) for i in range(self.samples)])
        for (cluster, image), name in self.links.links.names().items():
            own = self.links.of(cluster, image, turns)
            if own:
                first = self.begun.size
                yield Row("link", f"around {name}", True, tuple(first + o * self.samples + i for o, i in own))

    @property
    def critical(self) -> tuple[int, ...]:
        """A stream of samples has no critical path."""
        return ()

    def arrows(self) -> Iterator[tuple[int, int]]:
        """From each stage to those of other devices that read from it, sample by sample."""
        last = {operation.stage: o for o, operation in enumerate(self.work.operations)}
        first = {operation.stage: o for o, operation in reversed(list(enumerate(self.work.operations)))}
        for q, p in sorted(self.arcs):
            if self.stages[q].device != self.stages[p].device:
                yield from ((last[q] * self.samples + i, first[p] * self.samples + i) for i in range(self.samples))

    def turn(self, sample: int) -> int:
        """The number of a sample in its batch; devices that share a stage take them in turn."""
        return sample % self.microbatches if self.microbatches else sample

    @property
    def samples(self) -> int:
        """How many samples were run."""
        return int(self.start.shape[1])

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices that hold stages, copies of them too."""
        return tuple(sorted(self.work.leaders))

    @property
    def by_pass(self) -> bool:
        """Whether all devices finish the forward passes of a batch before any begins a backward pass: under gpipe, but
        in plans each copy of a stage does for itself."""
        return self.schedule == "gpipe" and self.problem.execution.options is None

    @property
    def largest_load(self) -> float:
        """What the time per sample cannot fall below, and ``time_per_sample`` of the language: where all devices wait
        between the passes, the largest forward and the largest backward load together."""
        if not self.by_pass:
            return float(self.loads.max())
        return sum(max(self.work.busy(device, (which,)) for device in self.work.groups) for which in (False, True))

    @property
    def bubble(self) -> float:
        """The share of the total time in which a device does nothing, on average over the devices that are used."""
        return float(self.idle[list(self.devices)].mean()) if self.devices else 0.0

    def pieces(self, device: int) -> int:
        """How many stages a device holds."""
        return sum(stage.device == self._leaders.get(device) for stage in self.stages)

    def sharing(self, device: int) -> tuple[int, ...]:
        """The devices that hold the stages of a leader, those of all its copies."""
        return tuple(d for first in self.work.groups[device] for d in self.work.copy(first))

    @cached_property
    def _leaders(self) -> dict[int, int]:
        return self.work.leaders


class _Tasks(Sequence[Task]):
    """The tasks of a pipeline, from its arrays."""

    def __init__(self, run: PipelineTimeline) -> None:
        self.run = run

    def __len__(self) -> int:
        links = self.run.links
        return int(self.run.begun.size) + (0 if links is None else int(links.begun.size))

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Task]: ...
    def __getitem__(self, at: int | slice) -> Task | Sequence[Task]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        run = self.run
        o, i = divmod(at, run.samples)
        if o >= len(run.work.operations):
            return self._of_link(o - len(run.work.operations), i)
        operation = run.work.operations[o]
        members = run.work.groups[operation.device]
        together = operation.kind == "weights"
        apart = run.work.apart.get(operation.device, 1) if together else len(members)
        device = members[run.turn(i) % apart]
        nodes = () if together else run.stages[operation.stage].nodes
        whole = operation.kind == "stage" and run.problem.execution.communication == "sequential"
        return Task(
            operation.kind, operation.stage, device, float(run.begun[o, i]), float(run.ended[o, i]), nodes,
            tuple(q * run.samples + i for q, reader in sorted(run.work.arcs) if reader == o), (device,),
            run.costs.receive[operation.stage] if whole else 0.0, run.costs.send[operation.stage] if whole else 0.0,
            i + 1,
        )  # fmt: skip

    def _of_link(self, o: int, i: int) -> Task:
        """What a link carries; its inputs are what came to it."""
        run, times = self.run, self.run.links
        assert times is not None
        operation, first = times.links.operations[o], len(run.work.operations)
        image = times.links.sharing(operation, run.turn(i))[0]
        device = times.links.devices(operation.cluster, image)
        inputs = tuple(q * run.samples + i for q, reader in sorted(times.links.arcs) if reader == first + o)
        return Task(
            operation.kind, operation.stage, device, float(times.begun[o, i]), float(times.ended[o, i]), (), inputs,
            (), sample=i + 1,
        )  # fmt: skip
