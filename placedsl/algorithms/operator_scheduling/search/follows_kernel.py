"""Compiled: how much follows each node and transfer in an incremental schedule, along paths of reads and of what
devices, ports and links do next.

With it a trial is rejected where it is late by too much, and not only where the last node is.  As times do not matter
for it, it changes where nodes, devices or transfers do, and before.
"""

from __future__ import annotations

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import move_time
from placedsl.algorithms.operator_scheduling.search.incremental_state import IncrementalSchedule
from placedsl.algorithms.operator_scheduling.search.trial_marks_kernel import (
    FIRST_BEHIND,
    STRIDE,
    TRIAL,
    mark_behind,
)
from placedsl.arrays import Floats


@kernel()
def follow(instance: SchedulingInstance, schedule: IncrementalSchedule) -> None:
    """Find out what follows where that may have changed, from the end to the begin."""
    width, trial = schedule.kept.shape[1], schedule.marks.numbers[TRIAL]
    left, differs, different = schedule.state, schedule.differs, 0
    for m in range(width):
        differs[m] = False
    row = (len(schedule.order) - 1) // STRIDE
    while row >= 0 and (different > 0 or row >= schedule.marks.numbers[FIRST_BEHIND]):
        needed = schedule.marks.behind[row] == trial
        if needed or different > 0:
            for m in range(width):
                if not differs[m]:
                    left[m] = schedule.left[row + 1, m]
                elif schedule.used[row, m]:
                    needed = True
            if needed:
                _follow_row(instance, schedule, left, row)
            different = 0
            for m in range(width):
                if needed or differs[m]:
                    differs[m] = left[m] != schedule.left[row, m]
                    schedule.left[row, m] = left[m]
                different += differs[m]
        row -= 1


@kernel(no_cpython_wrapper=True, inline="always")
def _follow_row(instance: SchedulingInstance, schedule: IncrementalSchedule, left: Floats, row: int) -> None:
    """What follows the nodes and transfers of a row; ``left``: what follows on each resource."""
    nodes, devices = instance.time.shape
    device, trial = schedule.device, schedule.marks.numbers[TRIAL]
    transfer = schedule.first_sent[row]
    for place in range(min((row + 1) * STRIDE, nodes) - 1, row * STRIDE - 1, -1):
        v = schedule.order[place]
        d = device[v]
        if transfer >= 0 and schedule.called[transfer // devices, transfer % devices] == place:
            transfer = _follow_transfers(instance, schedule, left, transfer, place, True)
        duration = instance.time[v, d]
        longest = schedule.boundary.delivery[v, d]
        if instance.sequential and duration > 0.0:
            longest = max(longest, left[d])
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                w = instance.reader[j]
                e = device[w]
                if e == d:
                    longest = max(longest, instance.time[w, d] + schedule.follows[w])
                elif schedule.called[tensor, e] < nodes:
                    longest = max(longest, move_time(instance, tensor, d, e) + schedule.after_arrival[tensor, e])
        if instance.sequential and duration > 0.0:
            left[d] = longest + duration
        if longest != schedule.follows[v] or schedule.marks.shaped[row] == trial:
            schedule.follows[v] = longest
            for i in range(instance.input_start[v], instance.input_start[v + 1]):
                tensor = instance.input[i]
                u = instance.producer[tensor]
                before = schedule.position[u] if device[u] == d else schedule.called[tensor, d]
                if before < row * STRIDE:
                    mark_behind(schedule.marks, before)
        if transfer >= 0 and schedule.called[transfer // devices, transfer % devices] == place:
            transfer = _follow_transfers(instance, schedule, left, transfer, place, False)


@kernel(no_cpython_wrapper=True)
def _follow_transfers(
    instance: SchedulingInstance, schedule: IncrementalSchedule, left: Floats, transfer: int, place: int, late: bool
) -> int:  # fmt: skip
    """What follows the transfers called at a position, after or for its node; returns the next one before them."""
    devices = schedule.called.shape[1]
    while transfer >= 0:
        tensor, target = transfer // devices, transfer % devices
        if schedule.called[tensor, target] != place or schedule.late[tensor, target] != late:
            break
        u = instance.producer[tensor]
        source = schedule.device[u]
        longest = 0.0
        for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
            w = instance.reader[j]
            if schedule.device[w] == target:
                longest = max(longest, instance.time[w, target] + schedule.follows[w])
        duration = move_time(instance, tensor, source, target)
        pair = source * devices + target
        if duration > 0.0:
            for i in range(instance.resource_start[pair], instance.resource_start[pair + 1]):
                longest = max(longest, left[devices + instance.resource[i]])
            for i in range(instance.resource_start[pair], instance.resource_start[pair + 1]):
                left[devices + instance.resource[i]] = longest + duration
        if (
            longest != schedule.after_arrival[tensor, target]
            or schedule.marks.shaped[place // STRIDE] == schedule.marks.numbers[TRIAL]
        ):
            schedule.after_arrival[tensor, target] = longest
            mark_behind(schedule.marks, schedule.position[u])
        transfer = schedule.next_sent[transfer]
    return int(transfer)
