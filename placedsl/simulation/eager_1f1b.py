"""The ramp-up of 1F1B as Figure 7b draws it: a stage that would wait runs a forward pass that is there."""

from __future__ import annotations

from math import inf, isnan

from placedsl.simulation.clock import Simulation
from placedsl.simulation.microbatch_order import MicrobatchOrder
from placedsl.simulation.operations import Engine


def ramp_up(run: Simulation, rounds: MicrobatchOrder) -> int:
    """Run the first rounds, event by event, and say how many; what follows is in the order of the rounds.

    Only forward passes of the samples that fill the pipeline are run early, one a stage.  So the steady state is that
    of the rounds; at its beginning a stage holds more samples than it needs.
    """
    work, engines = run.work, sorted(run.free)
    until = 2 * len(engines)
    queues: dict[tuple[int, Engine], list[tuple[int, int]]] = {engine: [] for engine in engines}
    for number in range(until):
        for p, offset in zip(rounds.sequence, rounds.offset, strict=True):
            if 0 <= number - offset < run.samples:
                queues[run.engines(p)[0]].append((p, number - offset))
    reads = {p: [q for q, reader in work.arcs if reader == p] for p in rounds.sequence}

    def ready(engine: tuple[int, Engine], operation: int, sample: int) -> float:
        """When it could begin; inf while something that it reads has not been run."""
        arrived = [run.end[q][sample] for q in reads[operation]]
        return inf if any(map(isnan, arrived)) else max([run.free[engine], *arrived])

    def early(queue: list[tuple[int, int]]) -> int:
        """The first forward pass of the samples that fill the pipeline, beyond what is next; 0: none."""
        forward = (k for k, (p, i) in enumerate(queue) if not work.operations[p].backward and i < len(engines))
        return next((k for k in forward if k), 0)

    while any(queues.values()):
        best = (inf, 0, 0, 0)
        for number, engine in enumerate(engines):
            queue = queues[engine]
            for place in (0, early(queue)) if queue else ():
                best = min(best, (ready(engine, *queue[place]), int(place > 0), number, place))
        begin, _, number, place = best
        p, i = queues[engines[number]].pop(place)
        run.start[p][i] = begin
        run.end[p][i] = run.free[engines[number]] = begin + work.operations[p].duration
    return until
