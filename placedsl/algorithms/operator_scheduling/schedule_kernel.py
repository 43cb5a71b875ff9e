"""Compiled: the schedule that a placement and a sequence of nodes and transfers determine.

Nodes are taken in a topological order.  Each first triggers the transfers of its inputs that its device does not have
yet, then it starts.  Every task starts as early as the tasks before it in the sequence allow, in the order of the
sequence on each device and each resource.  A transfer may also be triggered earlier, right after some node.  Every
schedule in which no task could start earlier without changing the order on a device or resource (a semi-active
schedule) comes from such a sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.arrays import Floats, Integers, Integers32
from placedsl.problem.values import Values


class Times(NamedTuple):
    """Seconds: when nodes start and end (n each), and when each tensor leaves for and arrives at each device (t x D;
    inf: never).
    """

    begun: Floats
    ended: Floats
    sent: Floats
    arrived: Floats


class OperatorSequence(NamedTuple):
    """What determines a schedule.

    ``device``            n devices, one per node
    ``order``             n: all nodes in a topological order
    ``transfer_trigger``  t x D: the node right after which the transfer is triggered; -1: its first reader triggers it,
                          as it does if the trigger comes before the tensor's producer or after the first reader
    ``first_transfer``, ``next_transfer``   n and t * D: the transfers that a node triggers, in order: transfer
                          ``tensor * D + device`` is ``first_transfer[v]``, then ``next_transfer`` of it (-1: no more)
    """

    device: Integers
    order: Integers
    transfer_trigger: Integers32
    first_transfer: Integers32
    next_transfer: Integers32


def schedule_of(instance: SchedulingInstance, sequence: OperatorSequence) -> tuple[float, Times]:
    """The latency in seconds, inf if a device does not support its node or cannot be reached, and all times."""
    nodes, devices = instance.time.shape
    tensors = len(instance.producer)
    times = Times(
        np.zeros(nodes), np.zeros(nodes), np.full((tensors, devices), np.inf), np.full((tensors, devices), np.inf)
    )
    return float(simulate(instance, sequence, times)), times


@kernel(no_cpython_wrapper=True)
def move_time(instance: SchedulingInstance, tensor: int, source: int, target: int) -> float:
    """The seconds that a tensor takes from one device to another."""
    if instance.given.shape[0] > 0:
        return float(instance.given[tensor, source, target])
    return float(instance.fixed[source, target] + instance.per_size[source, target] * instance.size[tensor])


@kernel()
def departure(
    instance: SchedulingInstance, free: Floats, source: int, target: int, ready: float, duration: float
) -> float:
    """When a transfer that is ready can leave: once all its resources are free (``free``: D devices, then
    resources).
    """
    if duration > 0.0:
        devices = instance.time.shape[1]
        pair = source * devices + target
        for i in range(instance.resource_start[pair], instance.resource_start[pair + 1]):
            ready = max(ready, free[devices + instance.resource[i]])
    return ready


@kernel(no_cpython_wrapper=True)
def occupy(instance: SchedulingInstance, free: Floats, source: int, target: int, until: float) -> None:
    """Mark the resources of a transfer as busy."""
    devices = instance.time.shape[1]
    pair = source * devices + target
    for i in range(instance.resource_start[pair], instance.resource_start[pair + 1]):
        free[devices + instance.resource[i]] = until


@kernel(no_cpython_wrapper=True)
def read_on(instance: SchedulingInstance, device: Integers, tensor: int, target: int) -> bool:
    """Whether a reader of the tensor is on the device."""
    for i in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
        if device[instance.reader[i]] == target:
            return True
    return False


@kernel()
def _send(instance: SchedulingInstance, free: Floats, times: Times, tensor: int, source: int, target: int) -> None:
    duration = move_time(instance, tensor, source, target)
    leaves = departure(instance, free, source, target, times.ended[instance.producer[tensor]], duration)
    times.sent[tensor, target] = leaves
    times.arrived[tensor, target] = leaves + duration
    if duration > 0.0:
        occupy(instance, free, source, target, leaves + duration)


@kernel(allocates=True)
def simulate(instance: SchedulingInstance, sequence: OperatorSequence, times: Times) -> float:
    """Fill in the times; returns the latency in seconds."""
    nodes, devices = instance.time.shape
    free = np.zeros(devices + instance.resources)
    device = sequence.device
    times.sent[:] = np.inf
    times.arrived[:] = np.inf
    made = np.zeros(nodes, np.bool_)
    latency = 0.0
    for v in sequence.order:
        d = device[v]
        ready = 0.0
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            tensor = instance.input[i]
            source = device[instance.producer[tensor]]
            if source == d:
                ready = max(ready, times.ended[instance.producer[tensor]])
                continue
            if times.sent[tensor, d] == np.inf:
                _send(instance, free, times, tensor, source, d)
            ready = max(ready, times.arrived[tensor, d])
        duration = instance.time[v, d]
        if instance.sequential and duration > 0.0:
            ready = max(ready, free[d])
            free[d] = ready + duration
        times.begun[v] = ready
        times.ended[v] = ready + duration
        latency = max(latency, ready + duration)
        made[v] = True
        transfer = sequence.first_transfer[v]
        while transfer >= 0:
            tensor, target = transfer // devices, transfer % devices
            u = instance.producer[tensor]
            if (
                made[u] and device[u] != target and times.sent[tensor, target] == np.inf
                and read_on(instance, device, tensor, target)
            ):  # fmt: skip
                _send(instance, free, times, tensor, device[u], target)
            transfer = sequence.next_transfer[transfer]
    return latency


def sequence_of(
    instance: SchedulingInstance, device: Integers, begun: Floats, sent: Floats | None = None
) -> OperatorSequence:
    """The sequence of nodes by their starts ``begun`` (n); those that start together, in topological order.

    With ``sent`` (t x D seconds; inf: never) transfers are triggered in the order in which they leave, else by the
    first reader.
    """
    nodes, (tensors, devices) = len(device), (len(instance.producer), instance.time.shape[1])
    rank = np.empty(nodes, dtype=np.int64)
    rank[instance.topological] = np.arange(nodes)
    order = np.lexsort((rank, begun)).astype(np.int64)
    transfer_trigger = np.full((tensors, devices), -1, dtype=np.int32)
    first_transfer, next_transfer = np.full(nodes, -1, dtype=np.int32), np.full(tensors * devices, -1, dtype=np.int32)
    if sent is not None:
        position = np.empty(nodes, dtype=np.int64)
        position[order] = np.arange(nodes)
        tensor, target = np.nonzero(np.isfinite(sent))
        leaves = sent[tensor, target]
        place = np.searchsorted(begun[order], leaves, side="right") - 1
        calling = order[np.maximum(place, position[instance.producer[tensor]])]
        transfer_trigger[tensor, target] = calling
        for k in np.argsort(-leaves, kind="stable").tolist():
            transfer = int(tensor[k]) * devices + int(target[k])
            next_transfer[transfer] = first_transfer[calling[k]]
            first_transfer[calling[k]] = transfer
    return OperatorSequence(
        np.ascontiguousarray(device, dtype=np.int64), order, transfer_trigger, first_transfer, next_transfer
    )


@kernel(allocates=True)
def places_of_triggers(sequence: OperatorSequence) -> Floats:
    """t x D: after which position of the order each transfer is triggered, transfers of one position in their order;
    inf: by the first reader.  :func:`sequence_of` makes the same triggers of positions and these.
    """
    tensors, devices = sequence.transfer_trigger.shape
    out = np.full((tensors, devices), np.inf)
    for k in range(len(sequence.order)):
        transfer, number = sequence.first_transfer[sequence.order[k]], 0
        while transfer >= 0:
            number += 1
            out[transfer // devices, transfer % devices] = k + number / (number + 1.0)
            transfer = sequence.next_transfer[transfer]
    return out


def values_of(times: Times) -> Values:
    """The times as the values of an answer: ``start[v]`` and ``sent[t, d]``."""
    tensor, target = np.nonzero(np.isfinite(times.sent))
    sent = times.sent[tensor, target].tolist()
    return {
        "start": {(v,): begun for v, begun in enumerate(times.begun.tolist())},
        "sent": {(t, d): leaves for t, d, leaves in zip(tensor.tolist(), target.tolist(), sent, strict=True)},
    }


@kernel(allocates=True)
def ranks(instance: SchedulingInstance, work: Floats, moving: Floats) -> Floats:
    """n seconds: the longest path from the start of each node to the end, by times ``work`` (n) and ``moving`` (t)."""
    nodes = len(work)
    out = work.copy()
    for k in range(nodes - 1, -1, -1):
        v = instance.topological[k]
        longest = 0.0
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                longest = max(longest, moving[tensor] + out[instance.reader[j]])
        out[v] += longest
    return out


def mean_times(instance: SchedulingInstance) -> tuple[Floats, Floats]:
    """The mean time of each node over the devices that support it, and of each tensor over pairs of distinct
    devices.
    """
    finite = np.isfinite(instance.time)
    work = np.where(finite, instance.time, 0.0).sum(axis=1) / np.maximum(finite.sum(axis=1), 1)
    devices = instance.time.shape[1]
    apart = ~np.eye(devices, dtype=bool)
    if len(instance.given):
        pairs = instance.given[:, apart]
        reached = np.isfinite(pairs)
        return work, np.where(reached, pairs, 0.0).sum(axis=1) / np.maximum(reached.sum(axis=1), 1)
    reached = apart & np.isfinite(instance.fixed)
    count = max(int(reached.sum()), 1)
    fixed, per_size = instance.fixed[reached].sum() / count, instance.per_size[reached].sum() / count
    return work, fixed + per_size * instance.size
