"""What keeps a device busy: computation, transfers in, transfers out; and how the communication model combines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import assert_never

from placedsl.evaluation.planned_stages import PlannedStages
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.tolerance import total
from placedsl.problem.execution import Communication
from placedsl.records import dataclass


@dataclass(frozen=True)
class Components:
    """The work of one device in one phase of the run, as lists of durations.

    ``computation``  per node
    ``received``     per tensor that the device reads from elsewhere (nothing on hosts)
    ``sent``         per tensor that it makes for others (nothing on hosts)
    ``streamed``     what does not fit of its memory, if that is streamed (nothing beside computation)
    """

    computation: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    streamed: list[float] = field(default_factory=list)

    @property
    def transfers(self) -> list[float]:
        """Both directions together."""
        return [*self.received, *self.sent]

    def busy(self, communication: Communication) -> float:
        """How long the device is busy: transfers follow computation, run beside it, or run beside it both ways."""
        if communication == "sequential":
            return total([*self.computation, *self.transfers, *self.streamed])
        if communication == "overlapped":
            return max(total(self.computation), total(self.transfers))
        if communication == "full_duplex":
            return max(total(self.computation), total(self.received), total(self.sent))
        assert_never(communication)


def shared(communication: Communication, alone: float, copies: float, synchronisation: float) -> float:
    """How long each of several devices is busy that share the samples of a stage (Appendix C.2).

    ``alone``: how long one copy would be; ``synchronisation``: how long the weights of the stage take over a link, per
    sample.
    """
    share, others = alone / max(1.0, copies), (copies - 1) / copies if copies >= 1 else 0.0
    weights = synchronisation * others
    return share + weights if communication == "sequential" else max(share, weights)


def computing(data: ProblemData, placement: Sequence[int]) -> list[Components]:
    """Per device the running times of its nodes, and no transfers."""
    out = [Components() for _ in range(data.devices)]
    for node, device in enumerate(placement):
        if device >= 0:
            out[device].computation.append(data.time[node][device])
    return out


def of_pipeline(
    data: ProblemData,
    placement: Sequence[int],
    phases: int,
    phase: Callable[[int], int],
    stages: PlannedStages | None = None,
) -> list[list[Components]]:
    """Per phase and device; ``phase`` of a node is from 0.

    A tensor read into a device counts in every phase that reads it there; one written out of it counts in the phase of
    its producer: once, or once for every reading device where tensors go directly.  Through RAM a device pays besides
    for what crosses the boundaries of its clusters.  ``stages``: how the stages of a plan run.
    """
    out = [[Components() for _ in range(data.devices)] for _ in range(phases)]
    for node, device in enumerate(placement):
        if device >= 0:
            time = data.time[node][device] if stages is None else stages.time(node, device)
            out[phase(node)][device].computation.append(time)
    for tensor, producer in enumerate(data.producer):
        home = placement[producer]
        reading = {(phase(r), placement[r]) for r in data.readers[tensor] if placement[r] != home}
        touched = {home, *(device for _, device in reading)}
        if data.problem.execution.transfers != "through_host":
            for when, device in reading:
                if device >= 0 and data.accelerator[device] and home >= 0:
                    out[when][device].received.append(data.between(tensor, home, device))
            if home >= 0 and data.accelerator[home]:
                out[phase(producer)][home].sent.extend(_sent_directly(data, tensor, home, touched - {home, -1}))
            continue
        for when, device in reading:
            if device >= 0 and data.accelerator[device]:
                out[when][device].received.extend(transfer_durations(data, tensor, device, {home}))
                if stages is not None:
                    out[when][device].received.append(stages.received(tensor, device))
        if reading and home >= 0 and data.accelerator[home]:
            out[phase(producer)][home].sent.extend(transfer_durations(data, tensor, home, touched))
            if stages is not None:
                out[phase(producer)][home].sent.append(stages.sent(tensor, home))
    return out


def _sent_directly(data: ProblemData, tensor: int, home: int, readers: set[int]) -> list[float]:
    """What sending a tensor to other devices takes: one after another, or all at once as long as the longest."""
    each = [data.between(tensor, home, device) for device in sorted(readers)]
    return [max(each)] if each and data.problem.execution.transfers == "broadcast" else each


def transfer_durations(data: ProblemData, tensor: int, device: int, others: set[int]) -> list[float]:
    """The transfer of a tensor over a device's link, and what its clusters charge where ``others`` lie outside them."""
    members = data.members["cluster"]
    surcharges = [
        data.cluster_surcharge[tensor][c] for c in data.clusters_of[device] if not others.issubset(members[c])
    ]
    return [data.transfer[tensor][device], *surcharges]


def of_calls(data: ProblemData, placement: Sequence[int], piece: Sequence[int]) -> list[Components]:
    """Per device, with what every subgraph call transfers in and out; a call is a device and its number."""
    out = computing(data, placement)
    unit = [
        (d, p if d >= 0 and data.accelerator[d] else -v)
        for v, (d, p) in enumerate(zip(placement, piece, strict=True))
    ]  # fmt: skip
    for tensor, producer in enumerate(data.producer):
        reading = {unit[reader] for reader in data.readers[tensor]} - {unit[producer]}
        home, _ = unit[producer]
        for device, _ in reading:
            if device >= 0 and data.accelerator[device]:
                out[device].received.extend(transfer_durations(data, tensor, device, {home}))
        if reading and home >= 0 and data.accelerator[home]:
            touched = {home, *(device for device, _ in reading)}
            out[home].sent.extend(transfer_durations(data, tensor, home, touched))
    return out
