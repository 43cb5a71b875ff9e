"""Compiled: the boundary of a window of a schedule, so that it can be searched as an instance of its own."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, Times, move_time
from placedsl.arrays import Floats, Integers


@kernel(allocates=True)
def tail_times(instance: SchedulingInstance, sequence: OperatorSequence) -> Floats:
    """n seconds: how much follows a node's end in the schedule, along tensors and along the order of its device."""
    nodes, devices = instance.time.shape
    out = np.zeros(nodes)
    after = np.zeros(devices)
    for k in range(nodes - 1, -1, -1):
        v = sequence.order[k]
        d = sequence.device[v]
        out[v] = after[d] if instance.sequential else 0.0
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                w = instance.reader[j]
                e = sequence.device[w]
                follows = instance.time[w, e] + out[w]
                if e != d:
                    follows += move_time(instance, tensor, d, e)
                out[v] = max(out[v], follows)
        if instance.time[v, d] > 0.0:
            after[d] = out[v] + instance.time[v, d]
    return out


@kernel(allocates=True)
def boundary_times(
    instance: SchedulingInstance, sequence: OperatorSequence, times: Times, follows: Floats, low: int, high: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """The boundary of the nodes at positions ``low`` to ``high`` - 1 of the order: the fields of ``Boundary``.

    These are release and delivery times of each node there on each device, when devices and resources become free, and
    how much follows on each device.  ``follows``: n, see :func:`tail_times`.
    """
    nodes, devices = instance.time.shape
    count = high - low
    inside = np.zeros(nodes, np.bool_)
    for k in range(low, high):
        inside[sequence.order[k]] = True
    release, delivery = np.zeros((count, devices)), np.zeros((count, devices))
    for k in range(count):
        v = sequence.order[low + k]
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            tensor = instance.input[i]
            u = instance.producer[tensor]
            if inside[u]:
                continue
            a = sequence.device[u]
            for d in range(devices):
                there = times.ended[u]
                if a != d:
                    there += move_time(instance, tensor, a, d)
                    sent_before = False
                    if times.arrived[tensor, d] < np.inf:
                        # Somebody who is not in the stretch has had it sent.
                        for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                            w = instance.reader[j]
                            sent_before = sent_before or (not inside[w] and sequence.device[w] == d)
                    if sent_before or sequence.device[v] == d:
                        there = times.arrived[tensor, d]
                release[k, d] = max(release[k, d], there)
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                w = instance.reader[j]
                if inside[w]:
                    continue
                e = sequence.device[w]
                left = instance.time[w, e] + follows[w]
                for d in range(devices):
                    moving = 0.0 if d == e else move_time(instance, tensor, d, e)
                    delivery[k, d] = max(delivery[k, d], moving + left)
    free = np.zeros(devices + instance.resources)
    if instance.sequential:
        for k in range(low):
            v = sequence.order[k]
            if instance.time[v, sequence.device[v]] > 0.0:
                free[sequence.device[v]] = max(free[sequence.device[v]], times.ended[v])
    after_window = np.zeros(devices)
    if instance.sequential:
        for k in range(nodes - 1, high - 1, -1):
            v = sequence.order[k]
            d = sequence.device[v]
            if instance.time[v, d] > 0.0:
                after_window[d] = instance.time[v, d] + follows[v]
    return release, delivery, free, after_window


@kernel(allocates=True)
def memory_outside(instance: SchedulingInstance, device: Integers, inside: np.ndarray) -> Floats:
    """D bytes: the memory of the nodes that are not ``inside`` (n flags)."""
    out = np.zeros(instance.time.shape[1])
    for v in range(len(device)):
        if not inside[v]:
            out[device[v]] += instance.memory[v]
    return out
