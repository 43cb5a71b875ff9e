"""What each stage takes for one sample, and what lies on its device between stages: an account of its own.

An accelerator moves a tensor in when its first stage reads it and out when it was made and others read it; it keeps
what later stages read.  A device in clusters also pays for each of them that the tensor leaves or enters; where tensors
go from device to device, either end pays for the way between them.  Under GPipe's schedule nothing is kept from one
pass for the other: each reads for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite

from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import VirtualStage
from placedsl.simulation.streamed_parameters import streaming_times


@dataclass(frozen=True)
class ActivationStash:
    """Tensors that lie on a device, for one sample, from the end of stage ``since`` to the last end of ``until``.

    ``size`` is their sum in bytes, or nan where the graph does not say.
    """

    device: int
    since: int
    until: tuple[int, ...]
    tensors: int
    size: float


@dataclass(frozen=True)
class StageTimes:
    """Per stage the times to receive, compute and send one sample; and what is held.

    ``stream``: per stage how long the device streams what does not fit of its memory, with the first of its stages
    (empty: nothing).
    """

    receive: tuple[float, ...]
    compute: tuple[float, ...]
    send: tuple[float, ...]
    stashes: tuple[ActivationStash, ...]
    stream: tuple[float, ...] = ()

    def duration(self, stage: int) -> float:
        """How long the stage works on one sample."""
        streaming = self.stream[stage] if self.stream else 0.0
        return fsum((self.receive[stage], self.compute[stage], self.send[stage], streaming))


def times_of(
    problem: Problem, stages: Sequence[VirtualStage], rank: Mapping[int, tuple[int, int]], *, passes_read: bool
) -> StageTimes:
    """Times and stashes of the stages; ``rank`` is their order for one sample, the first that reads pays.

    ``passes_read``: each pass of a device reads for itself what comes from elsewhere (GPipe).
    """
    graph, time = problem.graph, problem.time.tolist()
    accelerator, moving = problem.accelerators.tolist(), Moving(problem)
    sizes = graph.tensor_bytes.tolist()
    stage_of = {v: p for p, stage in enumerate(stages) for v in stage.nodes}
    readers: list[set[int]] = [set() for _ in range(graph.tensors)]
    for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        readers[tensor].add(stage_of[reader])
    receive: list[list[float]] = [[] for _ in stages]
    send: list[list[float]] = [[] for _ in stages]
    held: dict[tuple[int, int, tuple[int, ...]], list[float]] = {}
    for tensor, producer in enumerate(graph.tensor_producer.tolist()):
        home = stage_of[producer]
        device = stages[home].device
        until = {p for p in readers[tensor] if stages[p].device == device and p != home}
        elsewhere: dict[tuple[int, bool], list[int]] = {}
        for p in readers[tensor]:
            if stages[p].device != device:
                elsewhere.setdefault((stages[p].device, passes_read and stages[p].backward), []).append(p)
        for (other, _), group in elsewhere.items():
            first = min(group, key=rank.__getitem__)
            until.add(first)
            if accelerator[other]:
                receive[first] += moving.into(tensor, other, device)
            if len(group) > 1:
                later = tuple(sorted(p for p in group if p != first))
                held.setdefault((other, first, later), []).append(sizes[tensor])
        if elsewhere and accelerator[device]:
            send[home] += moving.out_of(tensor, device, {other for other, _ in elsewhere})
        if until:
            held.setdefault((device, home, tuple(sorted(until))), []).append(sizes[tensor])
    stashes = tuple(
        ActivationStash(device, since, until, len(every), fsum(every) if all(map(isfinite, every)) else float("nan"))
        for (device, since, until), every in held.items()
    )
    compute = (fsum(time[v][stage.device] for v in stage.nodes) for stage in stages)
    return StageTimes(
        tuple(map(fsum, receive)), tuple(compute), tuple(map(fsum, send)), stashes, _streamed(problem, stages, rank)
    )  # fmt: skip


def _streamed(
    problem: Problem, stages: Sequence[VirtualStage], rank: Mapping[int, tuple[int, int]]
) -> tuple[float, ...]:
    """Per stage: all that its device streams for a sample, where it is the device's first; empty where none streams."""
    if not problem.streaming.any:
        return ()
    placement = [0] * problem.graph.nodes
    first: dict[int, int] = {}
    for p in sorted(range(len(stages)), key=rank.__getitem__):
        first.setdefault(stages[p].device, p)
        for v in stages[p].nodes:
            placement[v] = stages[p].device
    each = streaming_times(problem, placement).tolist()
    return tuple(each[stage.device] if first[stage.device] == p else 0.0 for p, stage in enumerate(stages))


class Moving:
    """How long tensors take into a device and out of it: over its own link, or over the ways between devices."""

    def __init__(self, problem: Problem) -> None:
        self.transfer, self.beyond = problem.transfer.tolist(), _beyond_clusters(problem)
        self.ways = problem.device_to_device
        self.at_once = problem.execution.transfers == "broadcast"

    def into(self, tensor: int, device: int, home: int) -> list[float]:
        """To read a tensor that another device has made."""
        if self.ways is not None:
            return [float(self.ways.time(tensor, home, device))]
        return [self.transfer[tensor][device], *self.beyond(tensor, device, {home})]

    def out_of(self, tensor: int, device: int, readers: set[int]) -> list[float]:
        """To let other devices have a tensor."""
        if self.ways is not None:
            each = [float(self.ways.time(tensor, device, reader)) for reader in sorted(readers)]
            return [max(each)] if self.at_once else each
        return [self.transfer[tensor][device], *self.beyond(tensor, device, readers)]


def _beyond_clusters(problem: Problem) -> Callable[[int, int, set[int]], list[float]]:
    """By tensor, device and the devices that it exchanges the tensor with: what leaving each of its clusters adds.

    A cluster is left once, however many of the others are outside of it.
    """
    leaving = problem.cluster_surcharge.tolist()
    inside: dict[int, list[tuple[int, frozenset[int]]]] = {}
    for device, cluster in problem.machine.memberships():
        members = frozenset(problem.machine.clusters[cluster].devices)
        inside.setdefault(device, []).append((cluster, members))

    def beyond(tensor: int, device: int, others: set[int]) -> list[float]:
        return [leaving[cluster][tensor] for cluster, members in inside.get(device, ()) if not others <= members]

    return beyond
