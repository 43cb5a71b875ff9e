"""Running rounds: each stage begins as soon as its device is free and all that it reads has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placedsl.problem.virtual_stages import Arcs, VirtualStage
from placedsl.simulation.microbatch_order import MicrobatchOrder


@dataclass
class Simulation:
    """A simulation under way.

    ``start``, ``end``  by stage and sample (nan: not yet run)
    ``free``            by device: when it has ended what it did last
    """

    stages: Sequence[VirtualStage]
    arcs: Arcs
    durations: Sequence[float]
    samples: int
    start: list[list[float]] = field(init=False)
    end: list[list[float]] = field(init=False)
    free: dict[int, float] = field(init=False)

    def __post_init__(self) -> None:
        self.start = [[float("nan")] * self.samples for _ in self.stages]
        self.end = [[float("nan")] * self.samples for _ in self.stages]
        self.free = {stage.device: 0.0 for stage in self.stages}

    def rounds(
        self,
        rounds: MicrobatchOrder,
        first: int,
        past: int,
        *,
        in_flight: int,
        not_before: float = 0.0,
        skipped: int = 0,
    ) -> None:
        """Run the samples from ``first`` to before ``past``; nothing begins before ``not_before``.

        A sample enters when the one ``in_flight`` (at least the depth) before it has left.  What there is to do in the
        first ``skipped`` rounds has been done already.
        """
        among = set(rounds.sequence)
        free = {device: max(time, not_before) for device, time in self.free.items()}
        writers = {q for q, p in self.arcs if p in among}
        last = [self.end[p] for p in among if p not in writers]
        work = []
        for p, offset in zip(rounds.sequence, rounds.offset, strict=True):
            reads = [self.end[q] for q, reader in self.arcs if reader == p and q in among]
            work.append((offset, self.stages[p].device, self.durations[p], reads, self.start[p], self.end[p]))
        for number in range(first + skipped, past + rounds.depth - 1):
            for offset, device, duration, reads, start, end in work:
                i = number - offset
                if not first <= i < past:
                    continue
                begin = free[device]
                if reads:
                    for arrived in reads:
                        begin = max(begin, arrived[i])
                elif i - in_flight >= first:
                    for left in last:
                        begin = max(begin, left[i - in_flight])
                start[i] = begin
                end[i] = free[device] = begin + duration
        self.free = free
