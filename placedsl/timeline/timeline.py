"""Timelines: a placement simulated sample by sample, and what is measured on it.

Shares no code with what solves, nor with the evaluator: loads and time per sample are those of the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, UsageError, nearest
from placedsl.graph.graph import Floats, Integers
from placedsl.problem import Problem
from placedsl.timeline.costs import Costs, costs_of
from placedsl.timeline.eager import ramp_up
from placedsl.timeline.flight import samples_in_flight, tensors_in_flight
from placedsl.timeline.pieces import Arcs, Piece, arcs_of, pieces_of
from placedsl.timeline.rounds import Rounds, one_forward_one_backward, pipelined
from placedsl.timeline.running import Run

#: The schedules that can be simulated.
SCHEDULES = ("pipelined", "1f1b", "1f1b-eager", "gpipe")
#: So many samples, and so many microbatches for each device that is used, when nothing is said.
SAMPLES, MICROBATCHES = 100, 4
#: Schedules of a spec whose loads are those of a device that moves and computes one after the other.
_ONE_AFTER_THE_OTHER = ("pipedream", "gpipe")
#: Pieces times samples are at most so many: a gigabyte.
_MOST = 5_000_000


@dataclass(frozen=True, eq=False)
class Timeline:
    """When each of P pieces worked on each of n samples, and what that comes to on each of D devices.

    Times are seconds, or in the graph's own unit.

    ``schedule``         one of :data:`SCHEDULES`
    ``microbatches``     samples in a batch (gpipe), else 0
    ``pieces``           P pieces in a topological order
    ``arcs``             pairs of pieces: the second reads from the first
    ``costs``            times of each piece to receive, compute and send one sample
    ``start``, ``end``   P x n times
    ``loads``            D: busy time for each sample
    ``time_per_sample``  measured in the steady state (gpipe: over whole batches); nan when there were too few samples
    ``total``            when the last sample has left
    ``ramp_up``          when every piece has begun its first sample
    ``idle``             D: share of the total time in which the device does nothing (the bubble)
    ``samples_in_flight``         the most samples that have entered and not left at once
    ``device_samples_in_flight``  D: the most samples between their first and their last piece on the device at once
    ``tensors_in_flight``         D: the most tensors that lie on the device between pieces at once
    ``bytes_in_flight``           D: the most bytes of them; nan where the graph gives no sizes
    """

    problem: Problem
    schedule: str
    microbatches: int
    pieces: tuple[Piece, ...]
    arcs: Arcs
    costs: Costs
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
        for device, backward in {(piece.device, piece.backward) for piece in self.pieces}:
            own = (p for p, piece in enumerate(self.pieces) if (piece.device, piece.backward) == (device, backward))
            largest[backward] = max(largest[backward], fsum(map(self.costs.duration, own)))
        return sum(largest.values())

    @property
    def bubble(self) -> float:
        """The share of the total time in which a device does nothing, on average over the devices that are used."""
        used = sorted({piece.device for piece in self.pieces})
        return float(self.idle[used].mean()) if used else 0.0


def simulate(
    problem: Problem,
    placement: Sequence[int],
    *,
    samples: int = SAMPLES,
    schedule: str | None = None,
    microbatches: int | None = None,
) -> Timeline:
    """Run samples through a complete placement (a device position a node) whose devices support their nodes.

    ``schedule`` None: pipelined for inference, else gpipe or 1f1b as the spec says.  ``microbatches``: samples in a
    batch of gpipe (None: four for each device that is used).  UsageError for what cannot be asked for, InputError for
    a placement that cannot be run and for a forward part that reads from the backward part.
    """
    schedule = asked(problem, samples, schedule, microbatches)
    _check(problem, placement)
    pieces = pieces_of(problem, placement, passes=schedule != "pipelined")
    if len(pieces) * samples > _MOST:
        raise UsageError(
            f"{samples} samples through {len(pieces)} pieces are too many: at most {_MOST // len(pieces)} samples"
        )
    arcs = arcs_of(problem, pieces)
    batch = 0
    if schedule == "gpipe":
        batch = microbatches or MICROBATCHES * len({piece.device for piece in pieces})
        run, costs = _batches(problem, pieces, arcs, samples, batch)
    else:
        run, costs = _stream(problem, pieces, arcs, samples, schedule)
    return _measured(problem, schedule, batch, run, costs)


def asked(problem: Problem, samples: int, schedule: str | None, microbatches: int | None) -> str:
    """The schedule that :func:`simulate` will take; UsageError for what cannot be asked of this problem."""
    _known(problem)
    training = bool(problem.graph.backward.any())
    if schedule is None:
        schedule = "pipelined" if not training else "gpipe" if problem.schedule == "gpipe" else "1f1b"
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
    if problem.schedule not in _ONE_AFTER_THE_OTHER:
        raise UsageError(
            f"timelines do not know 'schedule {problem.schedule}', where a device moves tensors while it computes: "
            "with 'schedule pipedream' it does one after the other, and has a timeline"
        )
    if problem.replication is not None:
        raise UsageError(
            f"timelines do not know 'parallelism' ({problem.replication.span}), where several devices share the samples"
            " of a stage: without it there is a timeline"
        )
    if problem.machine.clusters:
        raise UsageError(
            "timelines do not know clusters, where transfers take the time of the slowest link on their way: "
            "with all devices outside of clusters there is a timeline"
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


def _stream(problem: Problem, pieces: Sequence[Piece], arcs: Arcs, samples: int, schedule: str) -> tuple[Run, Costs]:
    """Samples that follow one another without a pause."""
    straight = one_forward_one_backward(pieces, arcs) if schedule.startswith("1f1b") else None
    rounds = straight or pipelined(pieces, arcs, range(len(pieces)))
    costs = costs_of(problem, pieces, rounds.rank(), passes_read=False)
    run = Run(pieces, arcs, [costs.duration(p) for p in range(len(pieces))], samples)
    skipped = ramp_up(run, rounds) if schedule == "1f1b-eager" and straight else 0
    run.rounds(rounds, 0, samples, in_flight=rounds.depth, skipped=skipped)
    return run, costs


def _batches(problem: Problem, pieces: Sequence[Piece], arcs: Arcs, samples: int, batch: int) -> tuple[Run, Costs]:
    """Batch after batch: all forward passes, then all backward passes, then the next (Figure 7a)."""
    against = [(q, p) for q, p in arcs if pieces[q].backward and not pieces[p].backward]
    if against:
        q, p = against[0]
        message = (
            f"schedule gpipe: {pieces[p].name} reads from {pieces[q].name}, the forward part from the backward part"
        )
        raise InputError([Diagnostic(message, None, "forward and backward passes cannot follow one another")])
    passes: list[Rounds] = []
    rank: dict[int, tuple[int, int]] = {}
    for backward in (False, True):
        rounds = pipelined(pieces, arcs, [p for p, piece in enumerate(pieces) if piece.backward == backward])
        passes.append(rounds)
        rank |= rounds.rank()
    costs = costs_of(problem, pieces, rank, passes_read=True)
    run = Run(pieces, arcs, [costs.duration(p) for p in range(len(pieces))], samples)
    for first in range(0, samples, batch):
        for rounds in passes:
            past = min(first + batch, samples)
            run.rounds(rounds, first, past, in_flight=samples, not_before=max(run.free.values()))
    return run, costs


def _measured(problem: Problem, schedule: str, batch: int, run: Run, costs: Costs) -> Timeline:
    pieces, devices = tuple(run.pieces), len(problem.machine.devices)
    start, end = np.array(run.start), np.array(run.end)
    total = float(end.max())
    loads = np.zeros(devices)
    for device in {piece.device for piece in pieces}:
        own = (run.durations[p] for p, piece in enumerate(pieces) if piece.device == device)
        loads[device] = fsum(own)
    busy = loads * run.samples
    together, each = samples_in_flight(pieces, start, end, devices)
    tensors, sizes = tensors_in_flight(costs.holdings, end, devices)
    return Timeline(
        problem, schedule, batch, pieces, run.arcs, costs, start, end, loads,
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
