"""Compiled: units of one device that annealing moves together, in one step."""

from __future__ import annotations

from typing import NamedTuple

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.search.incremental_state import IncrementalSchedule
from placedsl.arrays import Floats, Integers


class UndoRecord(NamedTuple):
    """Units of one step and their previous devices, to undo it; ``mark``: u stamps of the units collected; ``origin``,
    ``place``: n positions of nodes that were pulled forward, one after the other, before and after.
    """

    units: Integers
    devices: Integers
    mark: Integers
    origin: Integers
    place: Integers


@kernel(no_cpython_wrapper=True)
def connected_units(
    instance: SchedulingInstance, schedule: IncrementalSchedule, v: int, most: int, undo: UndoRecord, stamp: int
) -> int:
    """Collect up to ``most`` connected units on the device of ``v``, beginning with its own; returns their number."""
    home = schedule.device[v]
    undo.units[0] = instance.unit[v]
    undo.mark[instance.unit[v]] = stamp
    count, at = 1, 0
    while at < count < most:
        unit = undo.units[at]
        at += 1
        for m in range(instance.member_start[unit], instance.member_start[unit + 1]):
            w = instance.member[m]
            for i in range(instance.input_start[w], instance.input_start[w + 1]):
                u = instance.producer[instance.input[i]]
                if schedule.device[u] == home and undo.mark[instance.unit[u]] != stamp and count < most:
                    undo.mark[instance.unit[u]] = stamp
                    undo.units[count] = instance.unit[u]
                    count += 1
            for i in range(instance.output_start[w], instance.output_start[w + 1]):
                tensor = instance.output[i]
                for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                    u = instance.reader[j]
                    if schedule.device[u] == home and undo.mark[instance.unit[u]] != stamp and count < most:
                        undo.mark[instance.unit[u]] = stamp
                        undo.units[count] = instance.unit[u]
                        count += 1
    return count


@kernel(no_cpython_wrapper=True)
def consecutive_units(
    instance: SchedulingInstance, schedule: IncrementalSchedule, v: int, most: int, undo: UndoRecord, stamp: int
) -> int:
    """Collect up to ``most`` units of the nodes that follow ``v`` on its device; returns their number."""
    home = schedule.device[v]
    count = 0
    for k in range(schedule.position[v], min(schedule.position[v] + 4 * most, len(schedule.order))):
        w = schedule.order[k]
        if schedule.device[w] == home and undo.mark[instance.unit[w]] != stamp:
            undo.mark[instance.unit[w]] = stamp
            undo.units[count] = instance.unit[w]
            count += 1
            if count == most:
                break
    return count


@kernel(no_cpython_wrapper=True)
def costly_cluster(
    instance: SchedulingInstance, schedule: IncrementalSchedule, cost: Floats, v: int, over: float, low: int, high: int,
    target: int, undo: UndoRecord, stamp: int,
) -> int:  # fmt: skip
    """Collect the units joined with that of ``v`` by tensors whose transfers cost more than ``over`` seconds; returns
    their number.

    Only nodes at positions ``low`` to ``high`` and not yet on device ``target`` count.
    """
    undo.units[0] = instance.unit[v]
    undo.mark[instance.unit[v]] = stamp
    count, at = 1, 0
    while at < count:
        unit = undo.units[at]
        at += 1
        for m in range(instance.member_start[unit], instance.member_start[unit + 1]):
            w = instance.member[m]
            for i in range(instance.input_start[w], instance.input_start[w + 1]):
                if cost[instance.input[i]] > over:
                    u = instance.producer[instance.input[i]]
                    if undo.mark[instance.unit[u]] != stamp and low <= schedule.position[u] <= high:
                        undo.mark[instance.unit[u]] = stamp
                        undo.units[count] = instance.unit[u]
                        count += 1
            for i in range(instance.output_start[w], instance.output_start[w + 1]):
                tensor = instance.output[i]
                if cost[tensor] <= over:
                    continue
                for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                    u = instance.reader[j]
                    if undo.mark[instance.unit[u]] != stamp and low <= schedule.position[u] <= high:
                        undo.mark[instance.unit[u]] = stamp
                        undo.units[count] = instance.unit[u]
                        count += 1
    kept = 0
    for k in range(count):
        if schedule.device[instance.member[instance.member_start[undo.units[k]]]] != target:
            undo.units[kept] = undo.units[k]
            kept += 1
    return kept
