"""The order in which ranks run the microbatches of a batch: 1F1B or GPipe, for any assignment of stages to ranks.

1F1B after Narayanan et al. 2019 (PipeDream): stage s of S holds at most S - s microbatches at once, backward work goes
before forward work.  A backward pass is taken to be twice as long as a forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from placedsl.problem.execution import Order

_DURATION = {"F": 1, "B": 2}


@dataclass(frozen=True, order=True)
class Action:
    """A pass of a microbatch through a stage; ``kind``: F forward, B backward."""

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


def orders(rank_of: Sequence[int], microbatches: int, order: Order) -> list[list[Action]]:
    """What each rank runs, in order; ``rank_of``: the rank of each stage, ranks from 0."""
    stages, ranks = len(rank_of), max(rank_of) + 1
    forward, backward = [0] * stages, [0] * stages  # passes that have begun
    forward_done, backward_done = [0] * stages, [0] * stages
    out: list[list[Action]] = [[] for _ in range(ranks)]
    busy = [False] * ranks
    running: list[tuple[int, int, Action]] = []

    def ready(stage: int) -> str:
        b = backward[stage]
        behind = stage == stages - 1 or backward_done[stage + 1] > b
        if b < forward_done[stage] and behind and (order == "1f1b" or forward_done[stage] == microbatches):
            return "B"
        f = forward[stage]
        held = f - backward_done[stage]
        room = order == "gpipe" or held < stages - stage
        before = stage == 0 or forward_done[stage - 1] > f
        return "F" if f < microbatches and before and room else ""

    now = 0
    while True:
        for rank in range(ranks):
            own = [(ready(s), s) for s in range(stages) if rank_of[s] == rank] if not busy[rank] else []
            chosen = max(((kind == "F", s) for kind, s in own if kind == "F"), default=None)
            back = min((s for kind, s in own if kind == "B"), default=None)
            if back is None and chosen is None:
                continue
            kind, stage = ("B", back) if back is not None else ("F", chosen[1] if chosen else 0)
            begun = backward if kind == "B" else forward
            action = Action(stage, kind, begun[stage])
            begun[stage] += 1
            busy[rank] = True
            out[rank].append(action)
            heappush(running, (now + _DURATION[kind], rank, action))
        if not running:
            return out
        now = running[0][0]
        while running and running[0][0] == now:
            _, rank, action = heappop(running)
            (forward_done if action.kind == "F" else backward_done)[action.stage] += 1
            busy[rank] = False
