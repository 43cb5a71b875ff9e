"""Round-based schedules: in each round every device runs all its pieces, each on a sample of its own.

A piece with offset k works in round r on sample r - k.  Of two pieces of which one reads from the other, the reader
has the larger offset, or the same offset and comes later in the round.  That settles the order of work on every device;
when work begins is left to the simulation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from placedsl.problem.virtual_stages import Arcs, VirtualStage


@dataclass(frozen=True)
class MicrobatchOrder:
    """``sequence``: the pieces as they follow one another within a round; ``offset``: of each piece of the sequence."""

    sequence: tuple[int, ...]
    offset: tuple[int, ...]

    @property
    def depth(self) -> int:
        """How many rounds a sample takes."""
        return max(self.offset, default=0) + 1

    def rank(self) -> dict[int, tuple[int, int]]:
        """By piece: where it stands among all pieces in the course of one sample."""
        return {p: (k, place) for place, (p, k) in enumerate(zip(self.sequence, self.offset, strict=True))}


def pipelined(pieces: Sequence[VirtualStage], arcs: Arcs, among: Collection[int]) -> MicrobatchOrder:
    """The pipeline of virtual devices (Figure 5): a sample spends a round on each stage, and old samples go first.

    Pieces stand in a topological order.  What a piece reads from another device was made at least a round before: so
    no device waits for what another does in the same round, and rounds need last no longer than the largest load.
    """
    offset: dict[int, int] = {}
    for p in sorted(among):
        before = [q for q, reader in arcs if reader == p and q in offset]
        offset[p] = max((offset[q] + (pieces[q].device != pieces[p].device) for q in before), default=0)
    sequence = sorted(offset, key=lambda p: (-offset[p], p))
    return MicrobatchOrder(tuple(sequence), tuple(offset[p] for p in sequence))


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
    return MicrobatchOrder((*back, *forth), tuple(offset))


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
