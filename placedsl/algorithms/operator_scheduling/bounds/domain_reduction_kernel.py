"""Compiled: domain reduction: the devices and the transfers that a limit on the latency leaves."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import (
    Reachability,
    heads,
    single_device,
    tails,
)
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.arrays import Booleans, Floats


@kernel(no_cpython_wrapper=True, allocates=True)
def _unit_span(instance: SchedulingInstance, unit: int, d: int, early: Floats, late: Floats) -> float:
    """The least time from the start to the end of all, for a unit's nodes on one device: heads, their times, tails
    (seconds).
    """
    low, high = instance.member_start[unit], instance.member_start[unit + 1]
    members = instance.member[low:high]
    most = 0.0
    keys = np.empty(len(members))
    for k in range(len(members)):
        keys[k] = early[members[k], d]
    total, last = 0.0, np.inf
    for k in np.argsort(-keys):
        if instance.time[members[k], d] > 0.0:
            total += instance.time[members[k], d]
            last = min(last, late[members[k], d])
            most = max(most, keys[k] + total + last)
    for k in range(len(members)):
        keys[k] = late[members[k], d]
    total, first = 0.0, np.inf
    for k in np.argsort(-keys):
        if instance.time[members[k], d] > 0.0:
            total += instance.time[members[k], d]
            first = min(first, early[members[k], d])
            most = max(most, keys[k] + total + first)
    return most


@kernel(no_cpython_wrapper=True)
def _drop_devices(instance: SchedulingInstance, early: Floats, late: Floats, limit: float) -> tuple[bool, bool]:
    """Remove devices on which a unit would be too late; returns whether there were any, and whether every unit has one
    left.
    """
    devices = instance.time.shape[1]
    changed = False
    for unit in range(len(instance.member_start) - 1):
        low, high = instance.member_start[unit], instance.member_start[unit + 1]
        left = 0
        for d in range(devices):
            fits, some = True, False
            for m in range(low, high):
                v = instance.member[m]
                some = some or instance.time[v, d] < np.inf
                fits = fits and early[v, d] + instance.time[v, d] + late[v, d] <= limit
            if fits and instance.sequential and high - low > 1:
                fits = _unit_span(instance, unit, d, early, late) <= limit
            if fits:
                left += 1
            elif some:
                changed = True
                for m in range(low, high):
                    instance.time[instance.member[m], d] = np.inf
        if left == 0:
            return True, False
    return changed, True


@kernel(no_cpython_wrapper=True)
def _drop_moves(instance: SchedulingInstance, early: Floats, late: Floats, limit: float, apart: Booleans) -> bool:
    """Remove transfers after which every reader would be too late; returns whether there were any.  Fills in
    ``apart``.
    """
    devices = instance.time.shape[1]
    changed = False
    for tensor in range(len(instance.producer)):
        u = instance.producer[tensor]
        low, high = instance.reader_start[tensor], instance.reader_start[tensor + 1]
        for j in range(low, high):
            apart[j] = False
        for a in range(devices):
            for b in range(devices):
                if a == b or instance.given[tensor, a, b] == np.inf:
                    continue
                possible = False
                for j in range(low, high):
                    w = instance.reader[j]
                    if (
                        instance.time[u, a] == np.inf
                        or instance.time[w, b] == np.inf
                        or instance.unit[u] == instance.unit[w]
                    ):
                        continue
                    takes = (
                        early[u, a]
                        + instance.time[u, a]
                        + instance.given[tensor, a, b]
                        + instance.time[w, b]
                        + late[w, b]
                    )
                    if takes <= limit:
                        apart[j] = True
                        possible = True
                if not possible:
                    instance.given[tensor, a, b] = np.inf
                    changed = True
    return changed


@kernel(allocates=True)
def reduce(instance: SchedulingInstance, limit: float, reach: Reachability, apart: Booleans) -> bool:
    """Set to inf, in ``instance.time`` and ``instance.given``, what no schedule within the limit can use, until nothing
    changes; returns whether every unit has a device left.

    ``limit`` seconds.  ``apart`` (one flag per entry of ``instance.reader``) is filled in: whether the reader can be on
    another device than the producer.
    """
    nothing = np.zeros(instance.time.shape)
    while True:
        only = single_device(instance)
        early = heads(instance, only, reach)
        late = tails(instance, only, reach, nothing)
        fewer, left = _drop_devices(instance, early, late, limit)
        if not left:
            return False
        if not _drop_moves(instance, early, late, limit, apart) and not fewer:
            return True
