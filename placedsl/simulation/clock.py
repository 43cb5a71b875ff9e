"""Running rounds: each operation begins as soon as its engine is free and all that it needs has arrived."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan

from placedsl.simulation.microbatch_order import MicrobatchOrder
from placedsl.simulation.operations import Engine, Work


@dataclass
class Simulation:
    """A simulation under way.

    ``start``, ``end``  by operation and sample (nan: not yet run); an exchange of weights stands at the last sample
                        of those after which it takes place
    ``free``            by device and engine: when it has ended what it did last
    """

    work: Work
    samples: int
    start: list[list[float]] = field(init=False)
    end: list[list[float]] = field(init=False)
    free: dict[tuple[int, Engine], float] = field(init=False)

    def __post_init__(self) -> None:
        operations = self.work.operations
        self.start = [[nan] * self.samples for _ in operations]
        self.end = [[nan] * self.samples for _ in operations]
        self.free = {(device, operation.engine): 0.0 for operation in operations
                     for device in self.work.groups[operation.device]}  # fmt: skip

    def engines(self, operation: int) -> list[tuple[int, Engine]]:
        """The engine that runs it, of each replica."""
        own = self.work.operations[operation]
        return [(device, own.engine) for device in self.work.groups[own.device]]

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
        operations, among = self.work.operations, set(rounds.sequence)
        names = list(self.free)
        free = [max(time, not_before) for time in self.free.values()]
        weights = {p for p in among if operations[p].kind == "weights"}
        writers = {q for q, p in self.work.arcs if p in among - weights}
        last = [self.end[p] for p in among - weights if p not in writers]
        work = []
        for p, offset in zip(rounds.sequence, rounds.offset, strict=True):
            reads = [self.end[q] for q, reader in self.work.arcs if reader == p and q in among]
            engines = [names.index(engine) for engine in self.engines(p)]
            work.append((offset, p in weights, engines, operations[p].duration, reads, self.start[p], self.end[p]))
        for number in range(first + skipped, past + max(rounds.offset, default=0)):
            for offset, together, engines, duration, reads, start, end in work:
                i = number - offset
                if not first <= i < past:
                    continue
                turn = (i - first) % len(engines)
                if together:
                    if turn < len(engines) - 1 and i < past - 1:
                        continue
                    began = [arrived[j] for arrived in reads for j in range(i - turn, i + 1)]
                    start[i] = max([*began, *(free[engine] for engine in engines)])
                    end[i] = start[i] + duration
                    for engine in engines:
                        free[engine] = end[i]
                    continue
                begin = free[engines[turn]]
                if reads:
                    for arrived in reads:
                        begin = max(begin, arrived[i])
                elif i - in_flight >= first:
                    for left in last:
                        begin = max(begin, left[i - in_flight])
                start[i] = begin
                end[i] = free[engines[turn]] = begin + duration
        self.free = dict(zip(names, free, strict=True))
