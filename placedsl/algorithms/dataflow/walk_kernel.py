"""Compiled: a schedule that is changed step by step; a change is evaluated from the first node that it touches on.

The times of what comes before stay, as do the times at which resources become free there: these are kept at every
``STRIDE``-th place of the sequence.  An evaluation ends as soon as a node ends too late for the limit that it is given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from placedsl.algorithms.dataflow.arrays import Flow, floats
from placedsl.algorithms.dataflow.kernel import Narrow, Order, departure, move_time, occupy, read_on
from placedsl.algorithms.dataflow.relaxed_kernel import tails
from placedsl.graph.graph import Floats, Integers

#: Every so many places of the sequence the state of the resources is kept.
STRIDE = 16


class Frame(NamedTuple):
    """What is around a problem that is a stretch of a larger schedule; all 0 where there is nothing.

    ``release``   n x D: when what a node reads from outside is there
    ``delivery``  n x D: how much follows a node's end outside
    ``free``      devices, then resources: when they become free
    ``next``      D: how much follows on a device once it is free
    """

    release: Floats
    delivery: Floats
    free: Floats
    next: Floats


def alone(flow: Flow) -> Frame:
    """The frame of a problem with nothing around it."""
    shape = flow.time.shape
    return Frame(np.zeros(shape), np.zeros(shape), np.zeros(shape[1] + flow.resources), np.zeros(shape[1]))


class Walk(NamedTuple):
    """The schedule as it is, and beside it the one that is tried.

    ``device``, ``sequence``, ``caller``, ``first``, ``following`` as in Order; ``position`` of each node in the
    sequence; ``held`` memory a device
    ``ended``, ``arrived``   times; ``called`` t x D: the place at which the transfer was called for (n: never)
    ``sent_tensor``, ``sent_target``   the transfers in the order of their calls, ``numbers[0]`` of them
    ``kept``      the state of the resources before every STRIDE-th place, then the latency so far
    ``tail``      n x D: how much follows at least when a node has ended on a device
    ``trial_…``   the same of the trial; what it says of a transfer counts where ``stamp`` is ``numbers[1]``
    ``numbers``   transfers, stamp, transfers of the trial
    ``frame``     what is around
    """

    device: Integers
    sequence: Integers
    caller: Narrow
    first: Narrow
    following: Narrow
    position: Integers
    held: Floats
    ended: Floats
    arrived: Floats
    called: Narrow
    sent_tensor: Narrow
    sent_target: Narrow
    kept: Floats
    tail: Floats
    trial_ended: Floats
    trial_arrived: Floats
    trial_called: Narrow
    stamp: NDArray[np.int64]
    trial_tensor: Narrow
    trial_target: Narrow
    trial_kept: Floats
    numbers: Integers
    frame: Frame


def walk_from(flow: Flow, order: Order, frame: Frame | None = None) -> tuple[Walk, float]:
    """A walk that begins with a schedule, and its latency."""
    nodes, devices, tensors = flow.nodes, flow.devices, len(flow.producer)
    around = alone(flow) if frame is None else frame
    rows, width = nodes // STRIDE + 2, devices + flow.resources + 1
    position = np.empty(nodes, dtype=np.int64)
    position[order.sequence] = np.arange(nodes)
    places = np.full((tensors, devices), nodes, dtype=np.int32)
    walk = Walk(
        order.device.copy(), order.sequence.copy(), order.caller.copy(),
        order.first.copy(), order.following.copy(), position,
        floats(np.bincount(order.device, weights=flow.memory, minlength=devices)),
        np.zeros(nodes), np.zeros((tensors, devices)), places,
        np.zeros(tensors * devices, dtype=np.int32), np.zeros(tensors * devices, dtype=np.int32),
        np.zeros((rows, width)), tails(flow, around.delivery), np.zeros(nodes), np.zeros((tensors, devices)),
        places.copy(),
        np.zeros((tensors, devices), dtype=np.int64),
        np.zeros(tensors * devices, dtype=np.int32), np.zeros(tensors * devices, dtype=np.int32),
        np.zeros((rows, width)), np.zeros(3, dtype=np.int64), around,
    )  # fmt: skip
    walk.kept[0, : width - 1] = around.free
    latency = evaluate(flow, walk, 0, np.inf)
    keep(walk, 0)
    return walk, float(latency)


@njit(cache=True)
def _call(
    flow: Flow, walk: Walk, free: Floats, tensor: int, source: int, target: int, made: float, place: int
) -> float:
    """Send a tensor in the trial; when it arrives."""
    duration = move_time(flow, tensor, source, target)
    arrives = departure(flow, free, source, target, made, duration) + duration
    if duration > 0.0:
        occupy(flow, free, source, target, arrives)
    walk.trial_arrived[tensor, target] = arrives
    walk.trial_called[tensor, target] = place
    walk.stamp[tensor, target] = walk.numbers[1]
    count = walk.numbers[2]
    walk.trial_tensor[count], walk.trial_target[count] = tensor, target
    walk.numbers[2] = count + 1
    return float(arrives)


@njit(cache=True)
def evaluate(flow: Flow, walk: Walk, place: int, limit: float) -> float:
    """The latency of the walk's device, sequence and callers when nothing before ``place`` has changed.

    inf as soon as it is certain to lie above ``limit``.  :func:`keep` or :func:`forget` must follow.
    """
    nodes, devices = flow.time.shape
    row = place // STRIDE
    first = row * STRIDE
    width = walk.kept.shape[1]
    free = walk.kept[row].copy()
    latency = free[width - 1]
    walk.numbers[1] += 1
    walk.numbers[2] = 0
    device = walk.device
    for place_now in range(first, nodes):
        if place_now % STRIDE == 0:
            free[width - 1] = latency
            walk.trial_kept[place_now // STRIDE] = free
        v = walk.sequence[place_now]
        d = device[v]
        ready = walk.frame.release[v, d]
        for i in range(flow.input_start[v], flow.input_start[v + 1]):
            tensor = flow.input[i]
            u = flow.producer[tensor]
            if device[u] == d:
                ready = max(ready, walk.trial_ended[u])
            elif walk.called[tensor, d] < first:
                ready = max(ready, walk.arrived[tensor, d])
            elif walk.stamp[tensor, d] == walk.numbers[1]:
                ready = max(ready, walk.trial_arrived[tensor, d])
            else:
                ready = max(ready, _call(flow, walk, free, tensor, device[u], d, walk.trial_ended[u], place_now))
        duration = flow.time[v, d]
        if flow.sequential and duration > 0.0:
            ready = max(ready, free[d])
            free[d] = ready + duration
        ends = ready + duration
        walk.trial_ended[v] = ends
        if ends + walk.tail[v, d] > limit:
            return np.inf
        latency = max(latency, ends + walk.frame.delivery[v, d])
        transfer = walk.first[v]
        while transfer >= 0:
            tensor, target = transfer // devices, transfer % devices
            u = flow.producer[tensor]
            if (
                walk.position[u] <= place_now and device[u] != target
                and walk.called[tensor, target] >= first and walk.stamp[tensor, target] != walk.numbers[1]
                and read_on(flow, device, tensor, target)
            ):  # fmt: skip
                _call(flow, walk, free, tensor, device[u], target, walk.trial_ended[u], place_now)
            transfer = walk.following[transfer]
    for d in range(devices):
        if walk.frame.next[d] > 0.0:
            latency = max(latency, free[d] + walk.frame.next[d])
    return float(latency)


@njit(cache=True)
def keep(walk: Walk, place: int) -> None:
    """The trial becomes the schedule; it was evaluated from ``place`` on."""
    first = place // STRIDE * STRIDE
    nodes = len(walk.sequence)
    count = walk.numbers[0]
    while count > 0 and walk.called[walk.sent_tensor[count - 1], walk.sent_target[count - 1]] >= first:
        count -= 1
        walk.called[walk.sent_tensor[count], walk.sent_target[count]] = nodes
    for k in range(walk.numbers[2]):
        tensor, target = walk.trial_tensor[k], walk.trial_target[k]
        walk.called[tensor, target] = walk.trial_called[tensor, target]
        walk.arrived[tensor, target] = walk.trial_arrived[tensor, target]
        walk.sent_tensor[count], walk.sent_target[count] = tensor, target
        count += 1
    walk.numbers[0] = count
    for k in range(first, nodes):
        v = walk.sequence[k]
        walk.ended[v] = walk.trial_ended[v]
    for row in range(first // STRIDE, (nodes - 1) // STRIDE + 1):
        walk.kept[row] = walk.trial_kept[row]


@njit(cache=True)
def forget(walk: Walk, place: int) -> None:
    """Drop a trial that was evaluated from ``place`` on; device, sequence and callers must be as before again."""
    for k in range(place // STRIDE * STRIDE, len(walk.sequence)):
        v = walk.sequence[k]
        walk.trial_ended[v] = walk.ended[v]
