"""Compiled: a schedule that changes step by step; a change is evaluated where it matters, and nowhere else.

The order is cut into rows of ``STRIDE`` positions.  A row is evaluated if something in it has changed (it is marked),
if a node in it reads what comes at another time than before, or if a device, port or link that it uses becomes free at
another time.  All other rows stay as they are, and what becomes free at another time is carried past them.

An evaluation ends as soon as a node ends too late for the given limit: behind all that has changed by the longest path
that follows in the schedule, before that by the longest one whatever the schedule.
"""

from __future__ import annotations

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
from placedsl.algorithms.operator_scheduling.search.follows_kernel import follow
from placedsl.algorithms.operator_scheduling.search.incremental_state import (
    Boundary,
    IncrementalSchedule,
    no_boundary,
)
from placedsl.algorithms.operator_scheduling.search.trial_marks_kernel import (
    FEW,
    FIRST_ROW,
    LAST_MARKED,
    LAST_ROW,
    LAST_SHAPED,
    SENT,
    STRIDE,
    TRIAL,
    Marks,
    mark,
    mark_behind,
    next_trial,
    reshape,
)
from placedsl.arrays import Floats


def incremental_schedule(
    instance: SchedulingInstance, sequence: OperatorSequence, boundary: Boundary | None = None
) -> tuple[IncrementalSchedule, float]:
    """The incremental schedule of a sequence, and its latency in seconds."""
    nodes, devices, tensors = instance.nodes, instance.devices, len(instance.producer)
    around = no_boundary(instance) if boundary is None else boundary
    rows, width = (nodes - 1) // STRIDE + 2, devices + instance.resources
    only = np.full(nodes, -1, dtype=np.int64)
    position = np.empty(nodes, dtype=np.int64)
    position[sequence.order] = np.arange(nodes)
    places = np.full((tensors, devices), nodes, dtype=np.int32)
    none = np.full(tensors * devices, -1, dtype=np.int32)
    kept, used, longest = np.zeros((rows, width)), np.zeros((rows, width), dtype=np.bool_), np.zeros(rows)
    never_late = np.zeros((tensors, devices), dtype=np.bool_)
    first, never = np.ones(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    marks = Marks(first, first.copy(), first.copy(), never, never.copy(), np.array([1, 0, rows, 0, 0, rows - 2, 0]))
    schedule = IncrementalSchedule(
        sequence.device.copy(), sequence.order.copy(), sequence.transfer_trigger.copy(),
        sequence.first_transfer.copy(), sequence.next_transfer.copy(), position,
        floats(np.bincount(sequence.device, weights=instance.memory, minlength=devices)),
        np.zeros(nodes), np.zeros((tensors, devices)), places, np.full(rows, -1, dtype=np.int32), none, kept, used,
        longest, np.zeros(nodes), np.zeros((tensors, devices)), kept.copy(), never_late,
        tails(instance, only, paths_only(instance), around.delivery), np.zeros(nodes),
        np.zeros((tensors, devices)), places.copy(), never_late.copy(), np.zeros((tensors, devices), dtype=np.int64),
        none.copy(), none.copy(), kept.copy(), used.copy(), longest.copy(), marks, np.zeros(width), used[0].copy(),
        around,
    )  # fmt: skip
    schedule.kept[0] = around.free
    schedule.left[-1, :devices] = around.next
    latency = evaluate(instance, schedule, 0, np.inf)
    commit(instance, schedule)
    return schedule, float(latency)


@kernel(no_cpython_wrapper=True)
def _mark_readers(
    instance: SchedulingInstance, schedule: IncrementalSchedule, tensor: int, target: int, after: int, shaped: bool
) -> None:  # fmt: skip
    """Mark the readers of a tensor on a device behind a position."""
    for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
        w = instance.reader[j]
        if schedule.device[w] == target and schedule.position[w] > after:
            if shaped:
                reshape(schedule.marks, schedule.position[w])
            else:
                mark(schedule.marks, schedule.position[w])


@kernel()
def _call(
    instance: SchedulingInstance, schedule: IncrementalSchedule, free: Floats, tensor: int, source: int, target: int,
    made: float, place: int, late: bool,
) -> float:  # fmt: skip
    """Send a tensor in the trial; returns when it arrives."""
    devices = instance.time.shape[1]
    row, trial = place // STRIDE, schedule.marks.numbers[TRIAL]
    duration = move_time(instance, tensor, source, target)
    arrives = departure(instance, free, source, target, made, duration) + duration
    if duration > 0.0:
        occupy(instance, free, source, target, arrives)
        pair = source * devices + target
        for i in range(instance.resource_start[pair], instance.resource_start[pair + 1]):
            schedule.trial_used[row, devices + instance.resource[i]] = True
    before, nodes = schedule.called[tensor, target], len(schedule.order)
    if nodes > FEW:
        if before == nodes or arrives != schedule.arrived[tensor, target]:
            _mark_readers(instance, schedule, tensor, target, place, False)
        if before // STRIDE != row or before == nodes:
            reshape(schedule.marks, place)
            if before < nodes and before // STRIDE > row:
                reshape(schedule.marks, before)
    schedule.trial_arrived[tensor, target] = arrives
    schedule.trial_called[tensor, target], schedule.trial_late[tensor, target] = place, late
    schedule.stamp[tensor, target] = trial
    count = schedule.marks.numbers[SENT]
    schedule.trial_tensor[count], schedule.trial_target[count] = tensor, target
    schedule.marks.numbers[SENT] = count + 1
    return float(arrives)


@kernel(no_cpython_wrapper=True)
def _stays(marks: Marks, called: int, row: int) -> bool:
    """Whether a tensor called at a position is sent before a row, where nothing has been evaluated."""
    before = called // STRIDE
    return bool(before < row and marks.evaluated[before] != marks.numbers[TRIAL])


@kernel(no_cpython_wrapper=True, inline="always")
def _evaluate_row(
    instance: SchedulingInstance, schedule: IncrementalSchedule, free: Floats, row: int, limit: float
) -> bool:  # fmt: skip
    """Evaluate one row from when resources are free; False as soon as a node ends too late."""
    nodes, devices = instance.time.shape
    marks, device = schedule.marks, schedule.device
    trial = marks.numbers[TRIAL]
    marks.evaluated[row] = trial
    for m in range(len(free)):
        schedule.trial_kept[row, m], schedule.trial_used[row, m] = free[m], False
    longest = 0.0
    for place in range(row * STRIDE, min((row + 1) * STRIDE, nodes)):
        v = schedule.order[place]
        d = device[v]
        ready = schedule.boundary.release[v, d]
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            tensor = instance.input[i]
            u = instance.producer[tensor]
            if device[u] == d:
                ready = max(ready, schedule.trial_ended[u])
            elif schedule.stamp[tensor, d] == trial:
                ready = max(ready, schedule.trial_arrived[tensor, d])
            elif _stays(marks, schedule.called[tensor, d], row):
                ready = max(ready, schedule.arrived[tensor, d])
            else:
                ready = max(
                    ready, _call(instance, schedule, free, tensor, device[u], d, schedule.trial_ended[u], place, False)
                )
        duration = instance.time[v, d]
        if instance.sequential and duration > 0.0:
            ready = max(ready, free[d])
            free[d] = ready + duration
            schedule.trial_used[row, d] = True
        ends = ready + duration
        if ends != schedule.ended[v]:
            schedule.trial_ended[v] = ends
            after = schedule.follows[v] if row > marks.numbers[LAST_SHAPED] else schedule.tail[v, d]
            if ends + after > limit:
                return False
            if nodes > FEW:
                _mark_dependents(instance, schedule, v, row)
        longest = max(longest, ends + schedule.boundary.delivery[v, d])
        transfer = schedule.first_transfer[v]
        while transfer >= 0:
            tensor, target = transfer // devices, transfer % devices
            u = instance.producer[tensor]
            if (
                schedule.position[u] <= place and device[u] != target and schedule.stamp[tensor, target] != trial
                and not _stays(marks, schedule.called[tensor, target], row)
                and read_on(instance, device, tensor, target)
            ):  # fmt: skip
                _call(instance, schedule, free, tensor, device[u], target, schedule.trial_ended[u], place, True)
            transfer = schedule.next_transfer[transfer]
    schedule.trial_longest[row] = longest
    if nodes > FEW:
        _mark_lost(instance, schedule, row)
    return True


@kernel(no_cpython_wrapper=True)
def _mark_dependents(instance: SchedulingInstance, schedule: IncrementalSchedule, v: int, row: int) -> None:
    """Mark what reads a node, or sends what it makes, behind a row."""
    device, nodes = schedule.device, len(schedule.order)
    for i in range(instance.output_start[v], instance.output_start[v + 1]):
        tensor = instance.output[i]
        for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
            w = instance.reader[j]
            after = schedule.position[w] if device[w] == device[v] else schedule.called[tensor, device[w]]
            if row < after // STRIDE and after < nodes:
                mark(schedule.marks, after)


@kernel(no_cpython_wrapper=True)
def _mark_lost(instance: SchedulingInstance, schedule: IncrementalSchedule, row: int) -> None:
    """Mark where transfers may be called for that are called in a row no longer."""
    devices = schedule.called.shape[1]
    last = min((row + 1) * STRIDE, len(schedule.order)) - 1
    transfer = schedule.first_sent[row]
    while transfer >= 0:
        tensor, target = transfer // devices, transfer % devices
        if schedule.stamp[tensor, target] != schedule.marks.numbers[TRIAL]:
            reshape(schedule.marks, last)
            _mark_readers(instance, schedule, tensor, target, last, True)
            trigger = schedule.transfer_trigger[tensor, target]
            if trigger >= 0 and schedule.position[trigger] > last:
                reshape(schedule.marks, schedule.position[trigger])
        transfer = schedule.next_sent[transfer]


@kernel()
def evaluate(instance: SchedulingInstance, schedule: IncrementalSchedule, place: int, limit: float) -> float:
    """The latency of the trial: the schedule's current device, order and triggers, unchanged before position ``place``
    and in rows that are not marked.

    It is inf as soon as it is certain to exceed ``limit`` seconds.  :func:`commit` or :func:`rollback` must follow.
    """
    nodes, devices = instance.time.shape
    rows, width = (nodes - 1) // STRIDE + 1, schedule.kept.shape[1]
    marks = schedule.marks
    trial = marks.numbers[TRIAL]
    marks.numbers[SENT] = 0
    free, differs, different = schedule.state, schedule.differs, 0
    for m in range(width):
        differs[m] = False
    row = place // STRIDE
    marks.numbers[FIRST_ROW] = row
    every = nodes <= FEW
    while row < rows and (every or different > 0 or row <= marks.numbers[LAST_MARKED]):
        needed = every or marks.evaluate[row] == trial
        if not needed and different == 0:
            row += 1
            continue
        for m in range(width):
            if not differs[m]:
                free[m] = schedule.kept[row, m]
            elif schedule.used[row, m]:
                needed = True
        if needed:
            if not _evaluate_row(instance, schedule, free, row, limit):
                marks.numbers[LAST_ROW] = row
                return np.inf
            different = 0
            for m in range(width):
                differs[m] = free[m] != schedule.kept[row + 1, m]
                different += differs[m]
            if different > 0 and row >= marks.numbers[LAST_SHAPED]:
                for m in range(width):
                    if free[m] + schedule.left[row + 1, m] > limit:
                        marks.numbers[LAST_ROW] = row
                        return np.inf
        else:
            marks.carried[row] = trial
            for m in range(width):
                schedule.trial_kept[row, m] = free[m]
        row += 1
    marks.numbers[LAST_ROW] = row
    if different > 0:
        for m in range(width):
            if not differs[m]:
                free[m] = schedule.kept[rows, m]
            schedule.trial_kept[rows, m] = free[m]
        marks.carried[rows] = trial
    latency = 0.0
    for k in range(rows):
        latency = max(latency, schedule.trial_longest[k] if marks.evaluated[k] == trial else schedule.longest[k])
    for d in range(devices):
        if schedule.boundary.next[d] > 0.0:
            ends = free[d] if different > 0 else schedule.kept[rows, d]
            latency = max(latency, ends + schedule.boundary.next[d])
    return float(latency)


@kernel()
def commit(instance: SchedulingInstance, schedule: IncrementalSchedule) -> None:
    """The trial becomes the schedule."""
    nodes, devices, width = len(schedule.order), schedule.called.shape[1], schedule.kept.shape[1]
    marks = schedule.marks
    trial = marks.numbers[TRIAL]
    for row in range(marks.numbers[FIRST_ROW], marks.numbers[LAST_ROW] + 1):
        if marks.evaluated[row] == trial:
            transfer = schedule.first_sent[row]
            while transfer >= 0:
                schedule.called[transfer // devices, transfer % devices] = nodes
                if schedule.stamp[transfer // devices, transfer % devices] != trial:
                    mark_behind(marks, schedule.position[instance.producer[transfer // devices]])
                transfer = schedule.next_sent[transfer]
            schedule.first_sent[row] = -1
            for k in range(row * STRIDE, min((row + 1) * STRIDE, nodes)):
                v = schedule.order[k]
                schedule.ended[v] = schedule.trial_ended[v]
            for m in range(width):
                schedule.used[row, m] = schedule.trial_used[row, m]
            schedule.longest[row] = schedule.trial_longest[row]
        if marks.evaluated[row] == trial or marks.carried[row] == trial:
            for m in range(width):
                schedule.kept[row, m] = schedule.trial_kept[row, m]
    for k in range(marks.numbers[SENT]):  # in each row the last one comes first
        tensor, target = schedule.trial_tensor[k], schedule.trial_target[k]
        schedule.called[tensor, target] = schedule.trial_called[tensor, target]
        schedule.arrived[tensor, target] = schedule.trial_arrived[tensor, target]
        schedule.late[tensor, target] = schedule.trial_late[tensor, target]
        row = schedule.trial_called[tensor, target] // STRIDE
        schedule.next_sent[tensor * devices + target] = schedule.first_sent[row]
        schedule.first_sent[row] = tensor * devices + target
    if nodes > FEW:
        follow(instance, schedule)
    next_trial(marks, nodes)


@kernel(no_cpython_wrapper=True)
def rollback(schedule: IncrementalSchedule) -> None:
    """Discard a trial; its device, order and triggers must be restored only afterwards."""
    nodes, marks = len(schedule.order), schedule.marks
    for row in range(marks.numbers[FIRST_ROW], min(marks.numbers[LAST_ROW], (nodes - 1) // STRIDE) + 1):
        if marks.evaluated[row] == marks.numbers[TRIAL]:
            for k in range(row * STRIDE, min((row + 1) * STRIDE, nodes)):
                v = schedule.order[k]
                schedule.trial_ended[v] = schedule.ended[v]
    next_trial(marks, nodes)
