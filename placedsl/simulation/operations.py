"""What the engines of the devices do: a stage in one, or its transfers beside its computation, and weight exchanges.

Where communication is sequential, a device is one engine, and a stage receives, computes and sends without a break.
Else a device computes on one engine and moves tensors on another (overlapped), or on one for each direction (full
duplex).  Devices that share a stage take samples in turn; after each of them has had one, all exchange the gradients of
their weights: on the engine that computes, or on one of its own where transfers are beside computation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

from placedsl.problem.execution import Communication
from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import Arcs, VirtualStage
from placedsl.simulation.stage_times import StageTimes

#: A stage (its computation, where transfers are beside it), its transfers, an exchange of weights.
OperationKind = Literal["stage", "receive", "send", "weights"]
Engine = Literal["device", "transfers", "in", "out", "weights"]
#: The engine of each kind of operation; timelines know these communication models.
ENGINES: Mapping[Communication, Mapping[OperationKind, Engine]] = {
    "sequential": {"stage": "device", "weights": "device"},
    "overlapped": {"stage": "device", "receive": "transfers", "send": "transfers", "weights": "weights"},
    "full_duplex": {"stage": "device", "receive": "in", "send": "out", "weights": "weights"},
}


@dataclass(frozen=True)
class Operation:
    """Something that an engine does for a sample, or where ``kind`` is ``"weights"`` for one sample of each replica.

    ``stage``     its position; of an exchange of weights -1
    ``device``    the one that holds the stage, of several the leader
    ``backward``  part of the backward pass; an exchange of weights always is
    ``period``    of an exchange of weights: after how many samples of all replicas it takes place (0: one of each)
    """

    kind: OperationKind
    stage: int
    device: int
    backward: bool
    engine: Engine
    duration: float
    period: int = 0


@dataclass(frozen=True)
class Work:
    """All operations of a run in a topological order; ``arcs``: the second needs what the first gives.

    ``groups``  by leader: the devices that share its stages, the leader first; where a copy has several devices, the
                first of each
    ``copies``  by the first device of a copy: all its devices, where they are several
    ``apart``   by leader: how many parts of its group exchange weights by themselves; they take samples in turn
    """

    operations: tuple[Operation, ...]
    arcs: Arcs
    groups: Mapping[int, tuple[int, ...]]
    copies: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    apart: Mapping[int, int] = field(default_factory=dict)

    @property
    def leaders(self) -> dict[int, int]:
        """The leader of every device that is used."""
        return {d: leader for leader, members in self.groups.items() for first in members for d in self.copy(first)}

    def copy(self, first: int) -> tuple[int, ...]:
        """The devices of a copy, by its first."""
        return self.copies.get(first, (first,))

    def exchanging(self, leader: int, turn: int) -> tuple[int, ...]:
        """The members of a group that exchange weights with the one whose turn it is."""
        apart = self.apart.get(leader, 1)
        return self.groups[leader][turn % apart :: apart]

    def replicas(self, operation: int) -> int:
        """How many devices take its samples in turn."""
        return len(self.groups[self.operations[operation].device])

    def exchanges(self, operation: int) -> bool:
        """Whether its engine also exchanges weights, for which its replicas wait for one another."""
        own = self.operations[operation]
        return any((o.kind, o.device, o.engine) == ("weights", own.device, own.engine) for o in self.operations)

    def busy(self, device: int, passes: Sequence[bool] = (False, True)) -> float:
        """How long the busiest engine of each device of a group is busy for each sample, in some of the passes."""
        by_engine: dict[Engine, list[float]] = {}
        for operation in self.operations:
            if operation.device == device and operation.backward in passes:
                often = len(self.groups[device]) / operation.period if operation.period else 1.0
                by_engine.setdefault(operation.engine, []).append(operation.duration * often)
        return max(map(fsum, by_engine.values()), default=0.0) / len(self.groups[device])


def work_of(
    problem: Problem,
    stages: Sequence[VirtualStage],
    arcs: Arcs,
    costs: StageTimes,
    order: Sequence[int],
    groups: Mapping[int, tuple[int, ...]],
) -> Work:
    """The operations of stages; ``order``: the stages in a topological order, by which ``costs`` says who receives."""
    engines = ENGINES[problem.execution.communication]
    accelerator = problem.accelerators.tolist()
    operations: list[Operation] = []
    first: dict[int, int] = {}  # of each stage the operation that needs what comes from elsewhere, and
    last: dict[int, int] = {}  # the one after which others have what it made; between them the one that computes
    middle: dict[int, int] = {}
    inner: set[tuple[int, int]] = set()
    for p in order:
        own = stages[p]
        parts: list[tuple[OperationKind, float]] = [("stage", costs.duration(p))]
        if "receive" in engines:
            parts = [("stage", costs.compute[p])]
            if accelerator[own.device]:
                parts = [("receive", costs.receive[p]), *parts, ("send", costs.send[p])]
        first[p] = len(operations)
        for kind, duration in parts:
            if kind == "stage":
                middle[p] = len(operations)
            if len(operations) > first[p]:
                inner.add((len(operations) - 1, len(operations)))
            operations.append(Operation(kind, p, own.device, own.backward, engines[kind], duration))
        last[p] = len(operations) - 1
    for q, p in arcs:
        apart = stages[q].device != stages[p].device
        inner.add((last[q], first[p]) if apart else (middle[q], middle[p]))
    if "receive" in engines or any(len(members) > 1 for members in groups.values()):
        # What one stage received, others of its device use; without these arcs rounds keep to ``order`` anyway.
        for stash in costs.stashes:
            inner |= {(middle[stash.since], middle[p]) for p in stash.until if stages[p].device == stash.device}
    for device, members in groups.items():
        due = _synchronisation(problem, stages, device) * (len(members) - 1)
        if due > 0.0:
            inner |= {(middle[p], len(operations)) for p in order if stages[p].device == device}
            operations.append(Operation("weights", -1, device, True, engines["weights"], due))
    return Work(tuple(operations), frozenset(inner), groups)


def _synchronisation(problem: Problem, stages: Sequence[VirtualStage], device: int) -> float:
    """How long the weights of all nodes of a device take over its link."""
    sharing = problem.execution.data_parallelism
    if sharing is None:
        return 0.0
    return fsum(
        float(sharing.synchronisation[v, device]) for stage in stages if stage.device == device for v in stage.nodes
    )
