"""The ramp-up of 1F1B as Figure 7b draws it: a stage that would wait runs a forward pass that is there."""

from __future__ import annotations

from math import inf, isnan

from placedsl.simulation.clock import Simulation
from placedsl.simulation.microbatch_order import MicrobatchOrder


def ramp_up(run: Simulation, rounds: MicrobatchOrder) -> int:
    """Run the first rounds, event by event, and say how many; what follows is in the order of the rounds.

    Only forward passes of the samples that fill the pipeline are run early, one a stage.  So the steady state is that
    of the rounds; at its beginning a stage holds more samples than it needs.
    """
    stages = len(run.free)
    until = 2 * stages
    queues: dict[int, list[tuple[int, int]]] = {device: [] for device in run.free}
    for number in range(until):
        for p, offset in zip(rounds.sequence, rounds.offset, strict=True):
            if 0 <= number - offset < run.samples:
                queues[run.stages[p].device].append((p, number - offset))
    reads = {p: [q for q, reader in run.arcs if reader == p] for p in rounds.sequence}

    def ready(device: int, piece: int, sample: int) -> float:
        """When it could begin; inf while something that it reads has not been run."""
        arrived = [run.end[q][sample] for q in reads[piece]]
        return inf if any(map(isnan, arrived)) else max([run.free[device], *arrived])

    while any(queues.values()):
        best = (inf, 0, 0, 0)
        for device, queue in queues.items():
            early = next((k for k, (p, i) in enumerate(queue) if k and not run.stages[p].backward and i < stages), 0)
            for place in (0, early) if queue else ():
                best = min(best, (ready(device, *queue[place]), int(place > 0), device, place))
        begin, _, device, place = best
        p, i = queues[device].pop(place)
        run.start[p][i] = begin
        run.end[p][i] = run.free[device] = begin + run.durations[p]
    return until
