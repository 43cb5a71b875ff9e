"""Round-based schedules: in each round every engine runs all its operations, each on a sample of its own.

An operation with offset k works in round r on sample r - k.  Of two operations of which one needs the other, the later
one has the larger offset, or the same offset and comes later in the round.  That settles the order of work on every
engine; when work begins is left to the simulation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from placedsl.problem.virtual_stages import Arcs, VirtualStage
from placedsl.simulation.operations import Engine, Work


@dataclass(frozen=True)
class MicrobatchOrder:
    """``sequence``: the operations as they follow one another within a round; ``offset``: of each of the sequence;
    ``depth``: how many rounds a sample takes."""

    sequence: tuple[int, ...]
    offset: tuple[int, ...]
    depth: int

    def rank(self) -> dict[int, tuple[int, int]]:
        """By operation: where it stands among all in the course of one sample."""
        return {p: (k, place) for place, (p, k) in enumerate(zip(self.sequence, self.offset, strict=True))}


def stage_order(stages: Sequence[VirtualStage], arcs: Arcs, among: Collection[int]) -> dict[int, tuple[int, int]]:
    """By stage: where it stands among all stages in the course of one sample.  Stages stand in a topological order."""
    offset: dict[int, int] = {}
    for p in sorted(among):
        before = [q for q, reader in arcs if reader == p and q in offset]
        offset[p] = max((offset[q] + (stages[q].device != stages[p].device) for q in before), default=0)
    return {p: (k, p) for p, k in offset.items()}


def pipelined(work: Work, among: Collection[int]) -> MicrobatchOrder:
    """The pipeline of virtual devices (Figure 5): a sample spends a round on each engine, and old samples go first.

    What an operation needs from another engine was made at least a round before: so no engine waits for what another
    does in the same round, and rounds need last no longer than the largest load.  Of r devices that share a stage each
    takes every r-th sample and has r rounds for it.  Where they exchange weights on the same engine, they wait for one
    another: up to r - 1 rounds more.
    """
    offset: dict[int, int] = {}
    rounds: dict[int, int] = {}
    phase: dict[tuple[int, Engine], int] = {}
    engine = [(operation.device, operation.engine) for operation in work.operations]
    for p in sorted(among):
        before = [q for q, reader in work.arcs if reader == p and q in offset]
        least = max((offset[q] + rounds[q] * (engine[q] != engine[p]) for q in before), default=0)
        replicas = work.replicas(p)
        # A replica runs all its operations in the same rounds: every r-th one.
        offset[p] = least + (phase.setdefault(engine[p], least) - least) % replicas
        rounds[p] = 2 * replicas - 1 if work.exchanges(p) else replicas
    weights = {p for p in offset if work.operations[p].kind == "weights"}
    sequence = sorted(offset, key=lambda p: (p in weights, -offset[p], p))
    depth = max((offset[p] + rounds[p] for p in offset if p not in weights), default=1)
    return MicrobatchOrder(tuple(sequence), tuple(offset[p] for p in sequence), depth)


def one_forward_one_backward(pieces: Sequence[VirtualStage], arcs: Arcs) -> MicrobatchOrder | None:
    """PipeDream's 1F1B (Figure 7b) of a pipeline: forward passes run through the devices, backward passes in reverse.

    Stage s of S runs the backward pass of a sample and then the forward pass of the sample S - s later (s from 0).
    None where a device has several pieces of one pass, or where the passes are no such pipeline.
    """
    owners = [(piece.device, piece.backward) for piece in pieces]
    if len(set(owners)) < len(owners):
        return None
    ahead: set[tuple[int, int]] = set()
    for q, p in arcs:
        a, b = pieces[q], pieces[p]
        if a.backward and not b.backward:
            return None
        if a.backward == b.backward:
            ahead.add((b.device, a.device) if a.backward else (a.device, b.device))
    stages = _line(list(dict.fromkeys(piece.device for piece in pieces)), ahead)
    if stages is None:
        return None
    stage = {device: s for s, device in enumerate(stages)}
    back = sorted((p for p in range(len(pieces)) if pieces[p].backward), key=lambda p: -stage[pieces[p].device])
    forth = [p for p in range(len(pieces)) if not pieces[p].backward]
    offset = [len(stages)] * len(back) + [stage[pieces[p].device] for p in forth]
    return MicrobatchOrder((*back, *forth), tuple(offset), max(offset, default=0) + 1)


def _line(devices: Sequence[int], ahead: set[tuple[int, int]]) -> list[int] | None:
    """The devices in an order that all pairs agree with, or None."""
    out: list[int] = []
    left = list(devices)
    while left:
        first = next((d for d in left if not any(b == d and a in left for a, b in ahead)), None)
        if first is None:
            return None
        out.append(first)
        left.remove(first)
    return out
