"""Timelines: a placement simulated sample by sample, and what is measured on it.

Shares no code with what solves, nor with the evaluator: loads and time per sample are those of the simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import lcm
from numbers import Integral

import numpy as np

from placedsl import limits
from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError, UsageError, nearest
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.problem.virtual_stages import Arcs, VirtualStage, arcs_of, virtual_stages
from placedsl.simulation import plan_queues
from placedsl.simulation.clock import Simulation
from placedsl.simulation.cluster_links import LinkTimes
from placedsl.simulation.eager_1f1b import ramp_up
from placedsl.simulation.in_flight import covered, samples_in_flight, tensors_in_flight
from placedsl.simulation.microbatch_order import one_forward_one_backward, pipelined, stage_order
from placedsl.simulation.operations import ENGINES, work_of
from placedsl.simulation.pipeline_timeline import PipelineTimeline
from placedsl.simulation.plan_run import SCHEDULE_OF, PlanRun
from placedsl.simulation.stage_times import StageTimes, times_of

#: The schedules that can be simulated.
SCHEDULES = ("pipelined", "1f1b", "1f1b-eager", "gpipe")
#: So many samples, and so many microbatches for each device that is used, when nothing is said.
SAMPLES, MICROBATCHES = 100, 4


def simulate(
    problem: Problem,
    placement: Sequence[int],
    *,
    samples: int | None = None,
    schedule: str | None = None,
    microbatches: int | None = None,
    followers: Mapping[int, int] | None = None,
    decisions: Values | None = None,
) -> PipelineTimeline:
    """Run samples through a complete placement (a device position a node) whose devices support their nodes.

    ``samples`` None: 100, and of a plan as many as show its steady state.  ``schedule`` None: pipelined for inference
    (gpipe, where devices may share stages under it), else gpipe or 1f1b as the spec says.  ``microbatches``: samples in
    a batch of gpipe (None: four for each device that is used).  ``followers``: devices that share the stages of
    another, and which, as :func:`placedsl.problem.plan.sharing` says.  ``decisions``: what a plan decides beside the
    placement.  UsageError for what cannot be asked for,
    InputError for a placement that cannot be run and for a forward part that reads from the backward part.
    """
    schedule = asked(problem, samples, schedule, microbatches)
    _check(problem, placement)
    if problem.execution.options is not None:
        return _of_plan(PlanRun(problem, placement, decisions or {}, followers or {}), samples)
    samples = SAMPLES if samples is None else samples
    stages = virtual_stages(problem, placement, passes=schedule != "pipelined")
    _refuse_many(len(stages), samples)
    groups = _groups(stages, followers or {})
    arcs = arcs_of(problem, stages)
    batch = 0
    if schedule == "gpipe":
        batch = microbatches or MICROBATCHES * sum(map(len, groups.values()))
        run, costs = _batches(problem, stages, arcs, groups, samples, batch)
    else:
        run, costs = _stream(problem, stages, arcs, groups, samples, schedule)
    return _measured(problem, schedule, batch, stages, arcs, run, costs, lcm(*(len(own) for own in groups.values())))


def _of_plan(plan: PlanRun, samples: int | None) -> PipelineTimeline:
    """A plan runs as its ``parallelism`` says."""
    number = plan.samples() if samples is None else samples
    if samples is None:
        number = max(1, min(number, limits.count("samples") // len(plan.stages)))
    number = plan.whole_rounds(number)
    _refuse_many(len(plan.stages), number)
    done = plan_queues.run(plan, number)
    out = _measured(
        plan.problem, plan.schedule, plan.batch, plan.stages, plan.arcs, done.simulation, plan.times, plan.cycle
    )
    devices = range(len(plan.problem.machine.devices))
    out = replace(
        out, memory=np.array([done.memory.get(d, 0.0) for d in devices]),
        device_samples_in_flight=np.array([done.held.get(d, 0) for d in devices], dtype=np.int64),
    )  # fmt: skip
    return out if done.links is None else _with_links(out, done.links)


def _with_links(run: PipelineTimeline, times: LinkTimes) -> PipelineTimeline:
    """With what goes over links around clusters: a device is as busy as the busiest of those around it."""
    loads = run.loads.copy()
    for device, leader in run.work.leaders.items():
        loads[device] = max(loads[device], times.links.around(leader))
    total = float(np.nanmax([run.total, *times.ended.max(axis=1, initial=0.0, where=np.isfinite(times.ended))]))
    idle = run.idle
    if run.total > 0.0:
        idle = 1.0 - (1.0 - idle) * run.total / total
    out = replace(run, links=times, loads=loads, total=total, idle=idle)
    if run.microbatches:
        out = replace(out, time_per_sample=_by_batch(np.concatenate((run.ended, times.ended)), run.microbatches))
    return out


def _refuse_many(stages: int, samples: int) -> None:
    most = limits.count("samples")  # by default these take a gigabyte
    if stages * samples > most:
        raise UsageError(
            f"{samples} samples through {stages} pieces are too many: at most {most // stages} samples; "
            + limits.raising("samples", stages * samples)
        )


def _groups(stages: Sequence[VirtualStage], followers: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """By leader the devices that share its stages, the leader first; UsageError for what shares the stages of none."""
    out = {stage.device: [stage.device] for stage in stages}
    for device, leader in followers.items():
        if leader not in out or device in out:
            raise UsageError(f"device {device} cannot share the stages of device {leader}")
        out[leader].append(device)
    return {leader: tuple(members) for leader, members in out.items()}


def asked(problem: Problem, samples: int | None, schedule: str | None, microbatches: int | None) -> str:
    """The schedule that :func:`simulate` will take; UsageError for what cannot be asked of this problem.

    Under gpipe, devices that share stages exchange weights after a batch, also where there is no backward part.
    """
    if problem.execution.communication not in ENGINES:
        raise UsageError(f"timelines do not know 'communication = {problem.execution.communication}'")
    for name, number in (("samples", samples), ("microbatches", microbatches)):
        if number is not None and (not isinstance(number, Integral) or number < 1):
            raise UsageError(f"'{name}' is a whole number from 1 on, not {number}")
    sharing = problem.execution.data_parallelism
    if sharing is not None and sharing.options is not None:
        for name, given in (("schedule", schedule), ("microbatches", microbatches)):
            if given is not None:
                raise UsageError(f"'{name}' of a plan stands in the spec: parallelism {{ in_flight = {sharing.held} }}")
        return SCHEDULE_OF[sharing.held]
    training = bool(problem.graph.backward.any())
    if schedule is None:
        shared = problem.execution.order == "gpipe" and problem.execution.data_parallelism is not None
        schedule = problem.execution.order if training or shared else "pipelined"
    if schedule not in SCHEDULES:
        raise UsageError(f"there is no schedule '{schedule}': {nearest(str(schedule), SCHEDULES)}")
    if schedule.startswith("1f1b") and not training:
        raise UsageError(f"schedule {schedule} is for training, and the graph has no backward part: 'pipelined' fits")
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
    cycle: int,
) -> PipelineTimeline:
    """``cycle``: after so many samples all stages do the same again."""
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
        for place, device in ((place, d) for place, first in enumerate(members) for d in work.copy(first)):
            samples = np.flatnonzero(turn % len(members) == place)
            taken[device] = leader, samples
            passes = ((False,), (True,)) if batch else ((False, True),)
            loads[device] = sum(work.busy(leader, which) for which in passes)
            apart = work.apart.get(leader, 1)
            exchanged = np.flatnonzero(turn % apart == place % apart)
            held = [exchanged if work.operations[o].kind == "weights" else samples for o in stage_work]
            busy[device] = covered(
                np.concatenate([begun[o, at] for o, at in zip(stage_work, held, strict=True)]),
                np.concatenate([ended[o, at] for o, at in zip(stage_work, held, strict=True)]),
            )
    together, each = samples_in_flight(stages, start, end, taken, devices)
    tensors, sizes = tensors_in_flight(costs.stashes, end, taken, devices)
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
