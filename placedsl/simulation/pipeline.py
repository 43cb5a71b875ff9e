"""Timelines: a placement simulated sample by sample, and what is measured on it.

Shares no code with what solves, nor with the evaluator: loads and time per sample are those of the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from numbers import Integral
from typing import overload

import numpy as np

from placedsl import limits
from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError, UsageError, nearest
from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import Arcs, VirtualStage, arcs_of, virtual_stages
from placedsl.simulation.clock import Simulation
from placedsl.simulation.eager_1f1b import ramp_up
from placedsl.simulation.in_flight import covered, samples_in_flight, tensors_in_flight
from placedsl.simulation.microbatch_order import one_forward_one_backward, pipelined, stage_order
from placedsl.simulation.operations import ENGINES, Engine, Work, work_of
from placedsl.simulation.stage_times import StageTimes, times_of
from placedsl.simulation.timeline import Row, Task, Timeline

#: The schedules that can be simulated.
SCHEDULES = ("pipelined", "1f1b", "1f1b-eager", "gpipe")
#: So many samples, and so many microbatches for each device that is used, when nothing is said.
SAMPLES, MICROBATCHES = 100, 4


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

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """Each operation on each sample, and the exchanges of weights: operation o on sample i (from 0) stands at
        o * n + i."""
        return _Tasks(self)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """A row for each device of the machine, then those of the engines that move something beside it."""
        rows: dict[tuple[Engine, int], list[int]] = {
            ("device", d): [] for d in range(len(self.problem.machine.devices))
        }
        beside: dict[tuple[Engine, int], list[int]] = {}
        for o, operation in enumerate(self.work.operations):
            members = self.work.groups[operation.device]
            for i in np.flatnonzero(np.isfinite(self.begun[o])).tolist():
                held = members if operation.kind == "weights" else (members[self.turn(i) % len(members)],)
                for device in held:
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
        return tuple(out)

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
        return tuple(sorted(d for members in self.work.groups.values() for d in members))

    @property
    def largest_load(self) -> float:
        """What the time per sample cannot fall below; of gpipe the largest forward and the largest backward load."""
        if self.schedule != "gpipe":
            return float(self.loads.max())
        return sum(max(self.work.busy(device, (which,)) for device in self.work.groups) for which in (False, True))

    @property
    def bubble(self) -> float:
        """The share of the total time in which a device does nothing, on average over the devices that are used."""
        return float(self.idle[list(self.devices)].mean()) if self.devices else 0.0

    def pieces(self, device: int) -> int:
        """How many stages a device holds."""
        leaders = {d: leader for leader, members in self.work.groups.items() for d in members}
        return sum(stage.device == leaders.get(device) for stage in self.stages)


class _Tasks(Sequence[Task]):
    """The tasks of a pipeline, from its arrays."""

    def __init__(self, run: PipelineTimeline) -> None:
        self.run = run

    def __len__(self) -> int:
        return int(self.run.begun.size)

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
        operation = run.work.operations[o]
        members = run.work.groups[operation.device]
        together = operation.kind == "weights"
        device = operation.device if together else members[run.turn(i) % len(members)]
        nodes = () if together else run.stages[operation.stage].nodes
        whole = operation.kind == "stage" and run.problem.execution.communication == "sequential"
        return Task(
            operation.kind, operation.stage, device, float(run.begun[o, i]), float(run.ended[o, i]), nodes,
            tuple(q * run.samples + i for q, reader in sorted(run.work.arcs) if reader == o), (device,),
            run.costs.receive[operation.stage] if whole else 0.0, run.costs.send[operation.stage] if whole else 0.0,
            i + 1,
        )  # fmt: skip


def simulate(
    problem: Problem,
    placement: Sequence[int],
    *,
    samples: int = SAMPLES,
    schedule: str | None = None,
    microbatches: int | None = None,
    followers: Mapping[int, int] | None = None,
) -> PipelineTimeline:
    """Run samples through a complete placement (a device position a node) whose devices support their nodes.

    ``schedule`` None: pipelined for inference (gpipe, where devices may share stages under it), else gpipe or 1f1b as
    the spec says.  ``microbatches``: samples in a
    batch of gpipe (None: four for each device that is used).  ``followers``: devices that share the stages of another,
    and which, as :func:`placedsl.problem.plan.sharing` says.  UsageError for what cannot be asked for,
    InputError for a placement that cannot be run and for a forward part that reads from the backward part.
    """
    sharing = problem.execution.data_parallelism
    if sharing is not None and sharing.options is not None:
        raise InputError([Diagnostic("timelines do not know plans with options of operators yet", sharing.span)])
    schedule = asked(problem, samples, schedule, microbatches)
    _check(problem, placement)
    stages = virtual_stages(problem, placement, passes=schedule != "pipelined")
    most = limits.count("samples")  # by default these take a gigabyte
    if len(stages) * samples > most:
        raise UsageError(
            f"{samples} samples through {len(stages)} pieces are too many: at most {most // len(stages)} samples; "
            + limits.raising("samples", len(stages) * samples)
        )
    groups = _groups(stages, followers or {})
    arcs = arcs_of(problem, stages)
    batch = 0
    if schedule == "gpipe":
        batch = microbatches or MICROBATCHES * sum(map(len, groups.values()))
        run, costs = _batches(problem, stages, arcs, groups, samples, batch)
    else:
        run, costs = _stream(problem, stages, arcs, groups, samples, schedule)
    return _measured(problem, schedule, batch, stages, arcs, run, costs)


def _groups(stages: Sequence[VirtualStage], followers: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """By leader the devices that share its stages, the leader first; UsageError for what shares the stages of none."""
    out = {stage.device: [stage.device] for stage in stages}
    for device, leader in followers.items():
        if leader not in out or device in out:
            raise UsageError(f"device {device} cannot share the stages of device {leader}")
        out[leader].append(device)
    return {leader: tuple(members) for leader, members in out.items()}


def asked(problem: Problem, samples: int, schedule: str | None, microbatches: int | None) -> str:
    """The schedule that :func:`simulate` will take; UsageError for what cannot be asked of this problem.

    Under gpipe, devices that share stages exchange weights after a batch, also where there is no backward part.
    """
    if problem.execution.communication not in ENGINES:
        raise UsageError(f"timelines do not know 'communication = {problem.execution.communication}'")
    training = bool(problem.graph.backward.any())
    if schedule is None:
        shared = problem.execution.order == "gpipe" and problem.execution.data_parallelism is not None
        schedule = problem.execution.order if training or shared else "pipelined"
    if schedule not in SCHEDULES:
        raise UsageError(f"there is no schedule '{schedule}': {nearest(str(schedule), SCHEDULES)}")
    if schedule.startswith("1f1b") and not training:
        raise UsageError(f"schedule {schedule} is for training, and the graph has no backward part: 'pipelined' fits")
    for name, number in (("samples", samples), ("microbatches", microbatches)):
        if number is not None and (not isinstance(number, Integral) or number < 1):
            raise UsageError(f"'{name}' is a whole number from 1 on, not {number}")
    if microbatches is not None and schedule != "gpipe":
        raise UsageError(f"'microbatches' is for schedule gpipe; this one is {schedule}")
    return schedule


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
    problem: Problem,
    stages: Sequence[VirtualStage],
    arcs: Arcs,
    groups: Mapping[int, tuple[int, ...]],
    samples: int,
    schedule: str,
) -> tuple[Simulation, StageTimes]:
    """Samples that follow one another without a pause."""
    alone = problem.execution.communication == "sequential" and all(len(members) == 1 for members in groups.values())
    straight = one_forward_one_backward(stages, arcs) if alone and schedule.startswith("1f1b") else None
    rank = straight.rank() if straight else stage_order(stages, arcs, range(len(stages)))
    costs = times_of(problem, stages, rank, passes_read=False)
    work = work_of(problem, stages, arcs, costs, sorted(rank, key=rank.__getitem__), groups)
    if straight:
        place = {operation.stage: o for o, operation in enumerate(work.operations)}
        rounds = replace(straight, sequence=tuple(place[p] for p in straight.sequence))
    else:
        rounds = pipelined(work, range(len(work.operations)))
    run = Simulation(work, samples)
    skipped = ramp_up(run, rounds) if schedule == "1f1b-eager" and straight else 0
    run.rounds(rounds, 0, samples, in_flight=rounds.depth, skipped=skipped)
    return run, costs


def _batches(
    problem: Problem,
    stages: Sequence[VirtualStage],
    arcs: Arcs,
    groups: Mapping[int, tuple[int, ...]],
    samples: int,
    batch: int,
) -> tuple[Simulation, StageTimes]:
    """Batch after batch: all forward passes, then all backward passes, then the next (Figure 7a)."""
    against = [(q, p) for q, p in arcs if stages[q].backward and not stages[p].backward]
    if against:
        q, p = against[0]
        message = (
            f"schedule gpipe: {stages[p].name} reads from {stages[q].name}, the forward part from the backward part"
        )
        raise InputError([Diagnostic(message, None, "forward and backward passes cannot follow one another")])
    rank: dict[int, tuple[int, int]] = {}
    order: list[int] = []
    for backward in (False, True):
        own = stage_order(stages, arcs, [p for p, stage in enumerate(stages) if stage.backward == backward])
        rank |= own
        order += sorted(own, key=own.__getitem__)
    costs = times_of(problem, stages, rank, passes_read=True)
    work = work_of(problem, stages, arcs, costs, order, groups)
    passes = [pipelined(work, [o for o, operation in enumerate(work.operations) if operation.backward == backward])
              for backward in (False, True)]  # fmt: skip
    run = Simulation(work, samples)
    for first in range(0, samples, batch):
        for rounds in passes:
            past = min(first + batch, samples)
            run.rounds(rounds, first, past, in_flight=samples, not_before=max(run.free.values()))
    return run, costs


def _measured(
    problem: Problem,
    schedule: str,
    batch: int,
    stages: Sequence[VirtualStage],
    arcs: Arcs,
    run: Simulation,
    costs: StageTimes,
) -> PipelineTimeline:
    devices, work = len(problem.machine.devices), run.work
    begun, ended = np.array(run.start), np.array(run.end)
    own = [[o for o, operation in enumerate(work.operations) if operation.stage == p] for p in range(len(stages))]
    start = np.array([begun[parts].min(axis=0) for parts in own])
    end = np.array([ended[parts].max(axis=0) for parts in own])
    total = float(np.nanmax(ended))
    turn = np.arange(run.samples) % batch if batch else np.arange(run.samples)
    loads, busy = np.zeros(devices), np.zeros(devices)
    taken: dict[int, tuple[int, Integers]] = {}
    for leader, members in work.groups.items():
        stage_work = [o for o, operation in enumerate(work.operations) if operation.device == leader]
        for place, device in enumerate(members):
            samples = np.flatnonzero(turn % len(members) == place)
            taken[device] = leader, samples
            passes = ((False,), (True,)) if batch else ((False, True),)
            loads[device] = sum(work.busy(leader, which) for which in passes)
            held = [np.arange(run.samples) if work.operations[o].kind == "weights" else samples for o in stage_work]
            busy[device] = covered(
                np.concatenate([begun[o, at] for o, at in zip(stage_work, held, strict=True)]),
                np.concatenate([ended[o, at] for o, at in zip(stage_work, held, strict=True)]),
            )
    together, each = samples_in_flight(stages, start, end, taken, devices)
    tensors, sizes = tensors_in_flight(costs.stashes, end, taken, devices)
    cycle = lcm(*(len(members) for members in work.groups.values()))
    return PipelineTimeline(
        problem, schedule, batch, tuple(stages), arcs, costs, work, begun, ended, start, end, loads,
        time_per_sample=_by_batch(ended, batch) if batch else _steady(start, end, cycle), total=total,
        ramp_up=float(start[:, 0].max()), idle=1.0 - busy / total if total > 0 else np.zeros(devices),
        samples_in_flight=together, device_samples_in_flight=each, tensors_in_flight=tensors, bytes_in_flight=sizes,
    )  # fmt: skip


def _steady(start: Floats, end: Floats, cycle: int) -> float:
    """Between samples that leave while others still enter, in the later half of that time; nan without such.

    ``cycle``: devices that share stages repeat what they do after so many samples.
    """
    left = np.maximum.accumulate(end.max(axis=0))
    last = int(np.searchsorted(left, start[:, -1].min(), side="right")) - 1
    first = last - (last - last // 2) // cycle * cycle
    return float((left[last] - left[first]) / (last - first)) if last > first >= 0 else float("nan")


def _by_batch(ended: Floats, batch: int) -> float:
    """By whole batches, or by the only one; with the exchanges of weights."""
    left = np.maximum.accumulate(np.nanmax(ended, axis=0))
    whole = len(left) // batch * batch
    return float(left[whole - 1] / whole) if whole else float(left[-1] / len(left))
