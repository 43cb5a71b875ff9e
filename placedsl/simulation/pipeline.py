"""Timelines: a placement simulated sample by sample, and what is measured on it.

Shares no code with what solves, nor with the evaluator: loads and time per sample are those of the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import overload

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, UsageError, nearest
from placedsl.graph.graph import Floats, Integers
from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import Arcs, VirtualStage, arcs_of, virtual_stages
from placedsl.simulation.clock import Simulation
from placedsl.simulation.eager_1f1b import ramp_up
from placedsl.simulation.in_flight import samples_in_flight, tensors_in_flight
from placedsl.simulation.microbatch_order import MicrobatchOrder, one_forward_one_backward, pipelined
from placedsl.simulation.stage_times import StageTimes, times_of
from placedsl.simulation.timeline import Row, Task, Timeline

#: The schedules that can be simulated.
SCHEDULES = ("pipelined", "1f1b", "1f1b-eager", "gpipe")
#: So many samples, and so many microbatches for each device that is used, when nothing is said.
SAMPLES, MICROBATCHES = 100, 4
#: Stages times samples are at most so many: a gigabyte.
_MOST = 5_000_000


@dataclass(frozen=True, eq=False, repr=False)
class PipelineTimeline(Timeline):
    """When each of P stages worked on each of n samples, and what that comes to on each of D devices.

    Times are seconds, or in the graph's own unit.

    ``schedule``         one of :data:`SCHEDULES`
    ``microbatches``     samples in a batch (gpipe), else 0
    ``stages``           P stages in a topological order
    ``arcs``             pairs of stages: the second reads from the first
    ``costs``            times of each stage to receive, compute and send one sample
    ``start``, ``end``   P x n times
    ``loads``            D: busy time for each sample
    ``time_per_sample``  measured in the steady state (gpipe: over whole batches); nan when there were too few samples
    ``total``            when the last sample has left
    ``ramp_up``          when every stage has begun its first sample
    ``idle``             D: share of the total time in which the device does nothing (the bubble)
    ``samples_in_flight``         the most samples that have entered and not left at once
    ``device_samples_in_flight``  D: the most samples between their first and their last stage on the device at once
    ``tensors_in_flight``         D: the most tensors that lie on the device between stages at once
    ``bytes_in_flight``           D: the most bytes of them; nan where the graph gives no sizes
    """

    problem: Problem
    schedule: str
    microbatches: int
    stages: tuple[VirtualStage, ...]
    arcs: Arcs
    costs: StageTimes
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

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """Each stage on each sample: stage p on sample i (from 0) stands at p * n + i."""
        return _Tasks(self)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """A row for each device of the machine."""
        out = []
        for d, device in enumerate(self.problem.machine.devices):
            own = [p * self.samples + i for p, stage in enumerate(self.stages) if stage.device == d
                   for i in range(self.samples)]  # fmt: skip
            place = np.array(own, dtype=np.int64)
            order = np.lexsort((place, self.end.ravel()[place], self.start.ravel()[place]))
            out.append(Row("device", device.name, True, tuple(place[order].tolist())))
        return tuple(out)

    @property
    def critical(self) -> tuple[int, ...]:
        """A stream of samples has no critical path."""
        return ()

    def arrows(self) -> Iterator[tuple[int, int]]:
        """From each stage to those of other devices that read from it, sample by sample."""
        for q, p in sorted(self.arcs):
            if self.stages[q].device != self.stages[p].device:
                yield from ((q * self.samples + i, p * self.samples + i) for i in range(self.samples))

    @property
    def samples(self) -> int:
        """How many samples were run."""
        return int(self.start.shape[1])

    @property
    def largest_load(self) -> float:
        """What the time per sample cannot fall below; of gpipe the largest forward and the largest backward load."""
        if self.schedule != "gpipe":
            return float(self.loads.max())
        largest = {False: 0.0, True: 0.0}
        for device, backward in {(stage.device, stage.backward) for stage in self.stages}:
            own = (p for p, stage in enumerate(self.stages) if (stage.device, stage.backward) == (device, backward))
            largest[backward] = max(largest[backward], fsum(map(self.costs.duration, own)))
        return sum(largest.values())

    @property
    def bubble(self) -> float:
        """The share of the total time in which a device does nothing, on average over the devices that are used."""
        used = sorted({stage.device for stage in self.stages})
        return float(self.idle[used].mean()) if used else 0.0


class _Tasks(Sequence[Task]):
    """The tasks of a pipeline, from its arrays."""

    def __init__(self, run: PipelineTimeline) -> None:
        self.run = run

    def __len__(self) -> int:
        return int(self.run.start.size)

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
        p, i = divmod(at, run.samples)
        stage = run.stages[p]
        return Task(
            "stage", p, stage.device, float(run.start[p, i]), float(run.end[p, i]), stage.nodes,
            tuple(q * run.samples + i for q, reader in sorted(run.arcs) if reader == p), (stage.device,),
            run.costs.receive[p], run.costs.send[p], i + 1,
        )  # fmt: skip


def simulate(
    problem: Problem,
    placement: Sequence[int],
    *,
    samples: int = SAMPLES,
    schedule: str | None = None,
    microbatches: int | None = None,
) -> PipelineTimeline:
    """Run samples through a complete placement (a device position a node) whose devices support their nodes.

    ``schedule`` None: pipelined for inference, else gpipe or 1f1b as the spec says.  ``microbatches``: samples in a
    batch of gpipe (None: four for each device that is used).  UsageError for what cannot be asked for, InputError for
    a placement that cannot be run and for a forward part that reads from the backward part.
    """
    schedule = asked(problem, samples, schedule, microbatches)
    _check(problem, placement)
    stages = virtual_stages(problem, placement, passes=schedule != "pipelined")
    if len(stages) * samples > _MOST:
        raise UsageError(
            f"{samples} samples through {len(stages)} pieces are too many: at most {_MOST // len(stages)} samples"
        )
    arcs = arcs_of(problem, stages)
    batch = 0
    if schedule == "gpipe":
        batch = microbatches or MICROBATCHES * len({stage.device for stage in stages})
        run, costs = _batches(problem, stages, arcs, samples, batch)
    else:
        run, costs = _stream(problem, stages, arcs, samples, schedule)
    return _measured(problem, schedule, batch, run, costs)


def asked(problem: Problem, samples: int, schedule: str | None, microbatches: int | None) -> str:
    """The schedule that :func:`simulate` will take; UsageError for what cannot be asked of this problem."""
    _known(problem)
    training = bool(problem.graph.backward.any())
    if schedule is None:
        schedule = "pipelined" if not training else problem.execution.order
    if schedule not in SCHEDULES:
        raise UsageError(f"there is no schedule '{schedule}': {nearest(schedule, SCHEDULES)}")
    if schedule.startswith("1f1b") and not training:
        raise UsageError(f"schedule {schedule} is for training, and the graph has no backward part: 'pipelined' fits")
    for name, number in (("samples", samples), ("microbatches", microbatches)):
        if number is not None and (number != int(number) or number < 1):
            raise UsageError(f"'{name}' is a whole number from 1 on, not {number}")
    if microbatches is not None and schedule != "gpipe":
        raise UsageError(f"'microbatches' is for schedule gpipe; this one is {schedule}")
    return schedule


def _known(problem: Problem) -> None:
    """UsageError for what specs can say of a machine and timelines do not know."""
    if problem.execution.communication != "sequential":
        raise UsageError(
            f"timelines do not know 'schedule {problem.execution.name}', where a device moves tensors while it "
            "computes: with 'schedule pipedream' it does one after the other, and has a timeline"
        )
    sharing = problem.execution.data_parallelism
    if sharing is not None:
        raise UsageError(
            f"timelines do not know 'parallelism' ({sharing.span}), where several devices share the samples"
            " of a stage: without it there is a timeline"
        )


def _check(problem: Problem, placement: Sequence[int]) -> None:
    """InputError for nodes on no device, and on one that does not support them."""
    names, devices = problem.graph.names, problem.machine.devices
    if len(placement) != problem.graph.nodes:
        message = f"the placement has {len(placement)} entries, the graph has {problem.graph.nodes} nodes"
        raise InputError([Diagnostic(message)])
    found = []
    for v, d in enumerate(placement):
        if not 0 <= d < len(devices):
            found.append(Diagnostic(f"{names[v]} is on no device: only a complete placement has a timeline"))
        elif not np.isfinite(problem.time[v, d]):
            found.append(Diagnostic(f"{names[v]} is on {devices[d].name}, which does not support it"))
    if found:
        raise InputError(found[:20])


def _stream(
    problem: Problem, stages: Sequence[VirtualStage], arcs: Arcs, samples: int, schedule: str
) -> tuple[Simulation, StageTimes]:
    """Samples that follow one another without a pause."""
    straight = one_forward_one_backward(stages, arcs) if schedule.startswith("1f1b") else None
    rounds = straight or pipelined(stages, arcs, range(len(stages)))
    costs = times_of(problem, stages, rounds.rank(), passes_read=False)
    run = Simulation(stages, arcs, [costs.duration(p) for p in range(len(stages))], samples)
    skipped = ramp_up(run, rounds) if schedule == "1f1b-eager" and straight else 0
    run.rounds(rounds, 0, samples, in_flight=rounds.depth, skipped=skipped)
    return run, costs


def _batches(
    problem: Problem, stages: Sequence[VirtualStage], arcs: Arcs, samples: int, batch: int
) -> tuple[Simulation, StageTimes]:
    """Batch after batch: all forward passes, then all backward passes, then the next (Figure 7a)."""
    against = [(q, p) for q, p in arcs if stages[q].backward and not stages[p].backward]
    if against:
        q, p = against[0]
        message = (
            f"schedule gpipe: {stages[p].name} reads from {stages[q].name}, the forward part from the backward part"
        )
        raise InputError([Diagnostic(message, None, "forward and backward passes cannot follow one another")])
    passes: list[MicrobatchOrder] = []
    rank: dict[int, tuple[int, int]] = {}
    for backward in (False, True):
        rounds = pipelined(stages, arcs, [p for p, stage in enumerate(stages) if stage.backward == backward])
        passes.append(rounds)
        rank |= rounds.rank()
    costs = times_of(problem, stages, rank, passes_read=True)
    run = Simulation(stages, arcs, [costs.duration(p) for p in range(len(stages))], samples)
    for first in range(0, samples, batch):
        for rounds in passes:
            past = min(first + batch, samples)
            run.rounds(rounds, first, past, in_flight=samples, not_before=max(run.free.values()))
    return run, costs


def _measured(problem: Problem, schedule: str, batch: int, run: Simulation, costs: StageTimes) -> PipelineTimeline:
    stages, devices = tuple(run.stages), len(problem.machine.devices)
    start, end = np.array(run.start), np.array(run.end)
    total = float(end.max())
    loads = np.zeros(devices)
    for device in {stage.device for stage in stages}:
        own = (run.durations[p] for p, stage in enumerate(stages) if stage.device == device)
        loads[device] = fsum(own)
    busy = loads * run.samples
    together, each = samples_in_flight(stages, start, end, devices)
    tensors, sizes = tensors_in_flight(costs.stashes, end, devices)
    return PipelineTimeline(
        problem, schedule, batch, stages, run.arcs, costs, start, end, loads,
        time_per_sample=_by_batch(end, batch) if batch else _steady(start, end), total=total,
        ramp_up=float(start[:, 0].max()), idle=1.0 - busy / total if total > 0 else np.zeros(devices),
        samples_in_flight=together, device_samples_in_flight=each, tensors_in_flight=tensors, bytes_in_flight=sizes,
    )  # fmt: skip


def _steady(start: Floats, end: Floats) -> float:
    """Between samples that leave while others still enter, in the later half of that time; nan without such."""
    left = end.max(axis=0)
    last = int(np.searchsorted(left, start[:, -1].min(), side="right")) - 1
    first = last // 2
    return float((left[last] - left[first]) / (last - first)) if last > first else float("nan")


def _by_batch(end: Floats, batch: int) -> float:
    """By whole batches, or by the only one."""
    left = end.max(axis=0)
    whole = len(left) // batch * batch
    return float(left[whole - 1] / whole) if whole else float(left[-1] / len(left))
