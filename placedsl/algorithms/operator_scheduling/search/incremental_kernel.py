"""Compiled: a schedule that changes step by step; a change is evaluated from the first node that it affects.

The times before that node stay, as do the times at which resources become free there: these are saved at every
``STRIDE``-th position of the order.  An evaluation ends as soon as a node ends too late for the given limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import paths_only, tails
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats
from placedsl.algorithms.operator_scheduling.schedule_kernel import (
    OperatorSequence,
    departure,
    move_time,
    occupy,
    read_on,
)
from placedsl.arrays import Floats, Integers, Integers32

#: The state of the resources is saved at every STRIDE-th position of the order.
STRIDE = 16


class Boundary(NamedTuple):
    """The boundary of an instance that is a window of a larger schedule; all 0 where there is none.

    ``release``   n x D seconds: when the inputs from outside are there
    ``delivery``  n x D seconds: how much follows a node's end outside
    ``free``      D devices, then resources: when they become free
    ``next``      D seconds: how much follows on a device once it is free
    """

    release: Floats
    delivery: Floats
    free: Floats
    next: Floats


def no_boundary(instance: SchedulingInstance) -> Boundary:
    """The boundary of an instance that is not part of another."""
    shape = instance.time.shape
    return Boundary(np.zeros(shape), np.zeros(shape), np.zeros(shape[1] + instance.resources), np.zeros(shape[1]))


class IncrementalSchedule(NamedTuple):
    """The current schedule, and beside it the trial that is being evaluated.

    ``device``, ``order``, ``transfer_trigger``, ``first_transfer``, ``next_transfer``  as in OperatorSequence
    ``position``  n: of each node in the order; ``memory_used``: D bytes
    ``ended``, ``arrived``   n and t x D seconds; ``called`` t x D: the position of a transfer's trigger (n: never)
    ``sent_tensor``, ``sent_target``   the transfers in the order of their triggers, ``numbers[0]`` of them
    ``kept``      the state of the resources before every STRIDE-th position, then the latency so far
    ``tail``      n x D seconds: how much follows at least when a node has ended on a device
    ``trial_…``   the same of the trial; its entries for a transfer are valid if ``stamp`` is ``numbers[1]``
    ``numbers``   transfers, stamp, transfers of the trial
    ``boundary``  the times around the instance
    """

    device: Integers
    order: Integers
    transfer_trigger: Integers32
    first_transfer: Integers32
    next_transfer: Integers32
    position: Integers
    memory_used: Floats
    ended: Floats
    arrived: Floats
    called: Integers32
    sent_tensor: Integers32
    sent_target: Integers32
    kept: Floats
    tail: Floats
    trial_ended: Floats
    trial_arrived: Floats
    trial_called: Integers32
    stamp: Integers
    trial_tensor: Integers32
    trial_target: Integers32
    trial_kept: Floats
    numbers: Integers
    boundary: Boundary


def incremental_schedule(
    instance: SchedulingInstance, sequence: OperatorSequence, boundary: Boundary | None = None
) -> tuple[IncrementalSchedule, float]:
    """The incremental schedule of a sequence, and its latency in seconds."""
    nodes, devices, tensors = instance.nodes, instance.devices, len(instance.producer)
    around = no_boundary(instance) if boundary is None else boundary
    rows, width = nodes // STRIDE + 2, devices + instance.resources + 1
    only = np.full(nodes, -1, dtype=np.int64)
    position = np.empty(nodes, dtype=np.int64)
    position[sequence.order] = np.arange(nodes)
    places = np.full((tensors, devices), nodes, dtype=np.int32)
    schedule = IncrementalSchedule(
        sequence.device.copy(), sequence.order.copy(), sequence.transfer_trigger.copy(),
        sequence.first_transfer.copy(), sequence.next_transfer.copy(), position,
        floats(np.bincount(sequence.device, weights=instance.memory, minlength=devices)),
        np.zeros(nodes), np.zeros((tensors, devices)), places,
        np.zeros(tensors * devices, dtype=np.int32), np.zeros(tensors * devices, dtype=np.int32),
        np.zeros((rows, width)), tails(instance, only, paths_only(instance), around.delivery), np.zeros(nodes),
        np.zeros((tensors, devices)),
        places.copy(),
        np.zeros((tensors, devices), dtype=np.int64),
        np.zeros(tensors * devices, dtype=np.int32), np.zeros(tensors * devices, dtype=np.int32),
        np.zeros((rows, width)), np.zeros(3, dtype=np.int64), around,
    )  # fmt: skip
    schedule.kept[0, : width - 1] = around.free
    latency = evaluate(instance, schedule, 0, np.inf)
    commit(schedule, 0)
    return schedule, float(latency)


@kernel()
def _call(
    instance: SchedulingInstance,
    schedule: IncrementalSchedule,
    free: Floats,
    tensor: int,
    source: int,
    target: int,
    made: float,
    place: int,
) -> float:
    """Send a tensor in the trial; returns when it arrives."""
    duration = move_time(instance, tensor, source, target)
    arrives = departure(instance, free, source, target, made, duration) + duration
    if duration > 0.0:
        occupy(instance, free, source, target, arrives)
    schedule.trial_arrived[tensor, target] = arrives
    schedule.trial_called[tensor, target] = place
    schedule.stamp[tensor, target] = schedule.numbers[1]
    count = schedule.numbers[2]
    schedule.trial_tensor[count], schedule.trial_target[count] = tensor, target
    schedule.numbers[2] = count + 1
    return float(arrives)


@kernel(allocates=True)
def evaluate(instance: SchedulingInstance, schedule: IncrementalSchedule, place: int, limit: float) -> float:
    """The latency of the trial: the schedule's current device, order and triggers, unchanged before position
    ``place``.

    It is inf as soon as it is certain to exceed ``limit`` seconds.  :func:`commit` or :func:`rollback` must follow.
    """
    nodes, devices = instance.time.shape
    row = place // STRIDE
    first = row * STRIDE
    width = schedule.kept.shape[1]
    free = schedule.kept[row].copy()
    latency = free[width - 1]
    schedule.numbers[1] += 1
    schedule.numbers[2] = 0
    device = schedule.device
    for place_now in range(first, nodes):
        if place_now % STRIDE == 0:
            free[width - 1] = latency
            schedule.trial_kept[place_now // STRIDE] = free
        v = schedule.order[place_now]
        d = device[v]
        ready = schedule.boundary.release[v, d]
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            tensor = instance.input[i]
            u = instance.producer[tensor]
            if device[u] == d:
                ready = max(ready, schedule.trial_ended[u])
            elif schedule.called[tensor, d] < first:
                ready = max(ready, schedule.arrived[tensor, d])
            elif schedule.stamp[tensor, d] == schedule.numbers[1]:
                ready = max(ready, schedule.trial_arrived[tensor, d])
            else:
                ready = max(
                    ready, _call(instance, schedule, free, tensor, device[u], d, schedule.trial_ended[u], place_now)
                )
        duration = instance.time[v, d]
        if instance.sequential and duration > 0.0:
            ready = max(ready, free[d])
            free[d] = ready + duration
        ends = ready + duration
        schedule.trial_ended[v] = ends
        if ends + schedule.tail[v, d] > limit:
            return np.inf
        latency = max(latency, ends + schedule.boundary.delivery[v, d])
        transfer = schedule.first_transfer[v]
        while transfer >= 0:
            tensor, target = transfer // devices, transfer % devices
            u = instance.producer[tensor]
            if (
                schedule.position[u] <= place_now and device[u] != target
                and schedule.called[tensor, target] >= first and schedule.stamp[tensor, target] != schedule.numbers[1]
                and read_on(instance, device, tensor, target)
            ):  # fmt: skip
                _call(instance, schedule, free, tensor, device[u], target, schedule.trial_ended[u], place_now)
            transfer = schedule.next_transfer[transfer]
    for d in range(devices):
        if schedule.boundary.next[d] > 0.0:
            latency = max(latency, free[d] + schedule.boundary.next[d])
    return float(latency)


@kernel(allocates=True)
def commit(schedule: IncrementalSchedule, place: int) -> None:
    """The trial, evaluated from position ``place`` on, becomes the schedule."""
    first = place // STRIDE * STRIDE
    nodes = len(schedule.order)
    count = schedule.numbers[0]
    while count > 0 and schedule.called[schedule.sent_tensor[count - 1], schedule.sent_target[count - 1]] >= first:
        count -= 1
        schedule.called[schedule.sent_tensor[count], schedule.sent_target[count]] = nodes
    for k in range(schedule.numbers[2]):
        tensor, target = schedule.trial_tensor[k], schedule.trial_target[k]
        schedule.called[tensor, target] = schedule.trial_called[tensor, target]
        schedule.arrived[tensor, target] = schedule.trial_arrived[tensor, target]
        schedule.sent_tensor[count], schedule.sent_target[count] = tensor, target
        count += 1
    schedule.numbers[0] = count
    for k in range(first, nodes):
        v = schedule.order[k]
        schedule.ended[v] = schedule.trial_ended[v]
    for row in range(first // STRIDE, (nodes - 1) // STRIDE + 1):
        schedule.kept[row] = schedule.trial_kept[row]


@kernel(no_cpython_wrapper=True)
def rollback(schedule: IncrementalSchedule, place: int) -> None:
    """Discard a trial evaluated from position ``place`` on; device, order and triggers must have been restored."""
    for k in range(place // STRIDE * STRIDE, len(schedule.order)):
        v = schedule.order[k]
        schedule.trial_ended[v] = schedule.ended[v]
