"""What each piece takes for one sample, and what lies on its device between pieces: an account of its own.

An accelerator moves a tensor in when its first piece reads it and out when it was made and others read it; it keeps
what later pieces read.  Under GPipe's schedule nothing is kept from one pass for the other: each reads for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite

from placedsl.problem import Problem
from placedsl.timeline.pieces import Piece


@dataclass(frozen=True)
class Holding:
    """Tensors that lie on a device, for one sample, from the end of piece ``since`` to the last end of ``until``.

    ``size`` is their sum in bytes, or nan where the graph does not say.
    """

    device: int
    since: int
    until: tuple[int, ...]
    tensors: int
    size: float


@dataclass(frozen=True)
class Costs:
    """Per piece the times to receive, compute and send one sample; and what is held."""

    receive: tuple[float, ...]
    compute: tuple[float, ...]
    send: tuple[float, ...]
    holdings: tuple[Holding, ...]

    def duration(self, piece: int) -> float:
        """How long the piece works on one sample."""
        return fsum((self.receive[piece], self.compute[piece], self.send[piece]))


def costs_of(
    problem: Problem, pieces: Sequence[Piece], rank: Mapping[int, tuple[int, int]], *, passes_read: bool
) -> Costs:
    """Times and holdings of the pieces; ``rank`` is their order for one sample, the first that reads pays.

    ``passes_read``: each pass of a device reads for itself what comes from elsewhere (GPipe).
    """
    graph, time, transfer = problem.graph, problem.time.tolist(), problem.transfer.tolist()
    accelerator = problem.accelerators.tolist()
    sizes = graph.tensor_bytes.tolist()
    piece_of = {v: p for p, piece in enumerate(pieces) for v in piece.nodes}
    readers: list[set[int]] = [set() for _ in range(graph.tensors)]
    for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        readers[tensor].add(piece_of[reader])
    receive: list[list[float]] = [[] for _ in pieces]
    send: list[list[float]] = [[] for _ in pieces]
    held: dict[tuple[int, int, tuple[int, ...]], list[float]] = {}
    for tensor, producer in enumerate(graph.tensor_producer.tolist()):
        home = piece_of[producer]
        device = pieces[home].device
        until = {p for p in readers[tensor] if pieces[p].device == device and p != home}
        elsewhere: dict[tuple[int, bool], list[int]] = {}
        for p in readers[tensor]:
            if pieces[p].device != device:
                elsewhere.setdefault((pieces[p].device, passes_read and pieces[p].backward), []).append(p)
        for (other, _), group in elsewhere.items():
            first = min(group, key=rank.__getitem__)
            until.add(first)
            if accelerator[other]:
                receive[first].append(transfer[tensor][other])
            if len(group) > 1:
                later = tuple(sorted(p for p in group if p != first))
                held.setdefault((other, first, later), []).append(sizes[tensor])
        if elsewhere and accelerator[device]:
            send[home].append(transfer[tensor][device])
        if until:
            held.setdefault((device, home, tuple(sorted(until))), []).append(sizes[tensor])
    holdings = tuple(
        Holding(device, since, until, len(every), fsum(every) if all(map(isfinite, every)) else float("nan"))
        for (device, since, until), every in held.items()
    )
    compute = (fsum(time[v][piece.device] for v in piece.nodes) for piece in pieces)
    return Costs(tuple(map(fsum, receive)), tuple(compute), tuple(map(fsum, send)), holdings)
