"""Compiled: the schedule of a placement and an order of nodes and transfers.

Nodes are taken in a topological order.  Each first sends for the tensors that it reads and that have not been sent
to its
device, then it begins: everything as early as what came before it in the order allows, in the order's sequence on each
device and each resource.  A transfer may also be called for before, right after some node's turn.  Every schedule
in which
nothing could begin earlier in the same sequences comes from an order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.graph.graph import Floats, Integers

Narrow = NDArray[np.int32]


class Times(NamedTuple):
    """When nodes begin and end (n), and when each tensor leaves for and arrives at each device (t x D, inf: never)."""

    begun: Floats
    ended: Floats
    sent: Floats
    arrived: Floats


class Order(NamedTuple):
    """What a schedule is made of.

    ``device``    n devices; ``sequence`` all nodes in a topological order
    ``caller``    t x D: after whose turn the transfer is called for; -1: when it is the first reader's turn, and
                  also where
                  the caller comes before the tensor's maker or after the first reader
    ``first``, ``following``   what a node calls for, in order: transfer ``t * D + d`` is ``first[v]``, then
                  ``following`` (-1: no more)
    """

    device: Integers
    sequence: Integers
    caller: Narrow
    first: Narrow
    following: Narrow


def schedule(flow: Flow, order: Order) -> tuple[float, Times]:
    """The latency, inf where a device does not support its node or cannot be reached, and all times."""
    nodes, devices = flow.time.shape
    tensors = len(flow.producer)
    times = Times(
        np.zeros(nodes), np.zeros(nodes), np.full((tensors, devices), np.inf), np.full((tensors, devices), np.inf)
    )
    return float(simulate(flow, order, times)), times


@njit(cache=True)
def move_time(flow: Flow, tensor: int, source: int, target: int) -> float:
    """How long a tensor takes from device to device."""
    if flow.given.shape[0] > 0:
        return float(flow.given[tensor, source, target])
    return float(flow.fixed[source, target] + flow.per_size[source, target] * flow.size[tensor])


@njit(cache=True)
def departure(flow: Flow, free: Floats, source: int, target: int, ready: float, duration: float) -> float:
    """When a transfer that is ready can leave: once all of its resources are free (``free`` after the D devices)."""
    if duration > 0.0:
        devices = flow.time.shape[1]
        pair = source * devices + target
        for i in range(flow.resource_start[pair], flow.resource_start[pair + 1]):
            ready = max(ready, free[devices + flow.resource[i]])
    return ready


@njit(cache=True)
def occupy(flow: Flow, free: Floats, source: int, target: int, until: float) -> None:
    """Keep the resources of a transfer busy."""
    devices = flow.time.shape[1]
    pair = source * devices + target
    for i in range(flow.resource_start[pair], flow.resource_start[pair + 1]):
        free[devices + flow.resource[i]] = until


@njit(cache=True)
def read_on(flow: Flow, device: Integers, tensor: int, target: int) -> bool:
    """Whether somebody on a device reads a tensor."""
    for i in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
        if device[flow.reader[i]] == target:
            return True
    return False


@njit(cache=True)
def _send(flow: Flow, free: Floats, times: Times, tensor: int, source: int, target: int) -> None:
    duration = move_time(flow, tensor, source, target)
    leaves = departure(flow, free, source, target, times.ended[flow.producer[tensor]], duration)
    times.sent[tensor, target] = leaves
    times.arrived[tensor, target] = leaves + duration
    if duration > 0.0:
        occupy(flow, free, source, target, leaves + duration)


@njit(cache=True)
def simulate(flow: Flow, order: Order, times: Times) -> float:
    """Fill in the times; the latency."""
    nodes, devices = flow.time.shape
    free = np.zeros(devices + flow.resources)
    device = order.device
    times.sent[:] = np.inf
    times.arrived[:] = np.inf
    made = np.zeros(nodes, np.bool_)
    latency = 0.0
    for v in order.sequence:
        d = device[v]
        ready = 0.0
        for i in range(flow.input_start[v], flow.input_start[v + 1]):
            tensor = flow.input[i]
            source = device[flow.producer[tensor]]
            if source == d:
                ready = max(ready, times.ended[flow.producer[tensor]])
                continue
            if times.sent[tensor, d] == np.inf:
                _send(flow, free, times, tensor, source, d)
            ready = max(ready, times.arrived[tensor, d])
        duration = flow.time[v, d]
        if flow.sequential and duration > 0.0:
            ready = max(ready, free[d])
            free[d] = ready + duration
        times.begun[v] = ready
        times.ended[v] = ready + duration
        latency = max(latency, ready + duration)
        made[v] = True
        transfer = order.first[v]
        while transfer >= 0:
            tensor, target = transfer // devices, transfer % devices
            u = flow.producer[tensor]
            if (
                made[u] and device[u] != target and times.sent[tensor, target] == np.inf
                and read_on(flow, device, tensor, target)
            ):  # fmt: skip
                _send(flow, free, times, tensor, device[u], target)
            transfer = order.following[transfer]
    return latency


def order_of(flow: Flow, device: Integers, begun: Floats, sent: Floats | None = None) -> Order:
    """The order in which nodes begin; those that begin at once, in topological order.

    With ``sent`` (t x D, inf: never) transfers are called for in the order in which they leave, else when the first
    reader's turn comes.
    """
    nodes, (tensors, devices) = len(device), (len(flow.producer), flow.time.shape[1])
    rank = np.empty(nodes, dtype=np.int64)
    rank[flow.topological] = np.arange(nodes)
    sequence = np.lexsort((rank, begun)).astype(np.int64)
    caller = np.full((tensors, devices), -1, dtype=np.int32)
    first, following = np.full(nodes, -1, dtype=np.int32), np.full(tensors * devices, -1, dtype=np.int32)
    if sent is not None:
        position = np.empty(nodes, dtype=np.int64)
        position[sequence] = np.arange(nodes)
        tensor, target = np.nonzero(np.isfinite(sent))
        leaves = sent[tensor, target]
        place = np.searchsorted(begun[sequence], leaves, side="right") - 1
        calling = sequence[np.maximum(place, position[flow.producer[tensor]])]
        caller[tensor, target] = calling
        for k in np.argsort(-leaves, kind="stable").tolist():
            transfer = int(tensor[k]) * devices + int(target[k])
            following[transfer] = first[calling[k]]
            first[calling[k]] = transfer
    return Order(np.ascontiguousarray(device, dtype=np.int64), sequence, caller, first, following)


def values_of(times: Times) -> dict[str, dict[tuple[int, ...], float]]:
    """The times as the values of an answer: ``start[v]`` and ``sent[t, d]``."""
    tensor, target = np.nonzero(np.isfinite(times.sent))
    sent = times.sent[tensor, target].tolist()
    return {
        "start": {(v,): begun for v, begun in enumerate(times.begun.tolist())},
        "sent": {(t, d): leaves for t, d, leaves in zip(tensor.tolist(), target.tolist(), sent, strict=True)},
    }


@njit(cache=True)
def ranks(flow: Flow, work: Floats, moving: Floats) -> Floats:
    """The longest way from the beginning of each node to the end: ``work`` a node, ``moving`` a tensor on top."""
    nodes = len(work)
    out = work.copy()
    for k in range(nodes - 1, -1, -1):
        v = flow.topological[k]
        longest = 0.0
        for i in range(flow.output_start[v], flow.output_start[v + 1]):
            tensor = flow.output[i]
            for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                longest = max(longest, moving[tensor] + out[flow.reader[j]])
        out[v] += longest
    return out


def mean_times(flow: Flow) -> tuple[Floats, Floats]:
    """The mean time of each node over the devices that support it, and of each tensor over pairs of unlike devices."""
    finite = np.isfinite(flow.time)
    work = np.where(finite, flow.time, 0.0).sum(axis=1) / np.maximum(finite.sum(axis=1), 1)
    devices = flow.time.shape[1]
    apart = ~np.eye(devices, dtype=bool)
    if len(flow.given):
        pairs = flow.given[:, apart]
        reached = np.isfinite(pairs)
        return work, np.where(reached, pairs, 0.0).sum(axis=1) / np.maximum(reached.sum(axis=1), 1)
    reached = apart & np.isfinite(flow.fixed)
    count = max(int(reached.sum()), 1)
    fixed, per_size = flow.fixed[reached].sum() / count, flow.per_size[reached].sum() / count
    return work, fixed + per_size * flow.size
